"""cross-cg where z follows from the coupled price: closed forms, bounds, counts, prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from ccmac import vfl
from ccmac.methods import CrossCg
from ccmac.objectives import Quadratic, Separable, SquaredDistance
from ccmac.paper.instances import solve_kkt
from ccmac.workspace.dual import LARGEST, planned_size


def table(seed: int = 0, rows: int = 60, columns: int = 20) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns)) * np.logspace(0, -2, columns)
    return X, X @ random.standard_normal(columns) + 0.1 * random.standard_normal(rows)


def exact(X: np.ndarray, y: np.ndarray, ridge: float = 1e-2) -> np.ndarray:
    gram = X.T @ X / len(y) + ridge * np.eye(X.shape[1])
    return np.linalg.solve(gram, X.T @ y / len(y))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 6),
    chi=st.sampled_from([1.0, 3.0, 30.0]),
    owner=st.booleans(),
    sketch=st.sampled_from([None, 1, 7, 40]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
)
def test_the_bound_holds_for_ridge(
    seed: int, n: int, chi: float, owner: bool, sketch: int | None, tol: float
) -> None:
    X, y = table(seed)
    problem = vfl.problem(
        X, y, n, alpha=("cross_factor", chi), label_owner=n - 1 if owner else None
    )
    result = ccmac.solve(problem, ccmac.Network.path(n), CrossCg(sketch=sketch), tol)
    weights = exact(X, y)
    off = np.concatenate([problem.weights(result) - weights, result.z - X @ weights / np.sqrt(60)])
    size = np.linalg.norm(np.concatenate([*result.x, result.z]))
    assert result.plan is not None
    assert (result.status, result.plan.realization) == ("optimal", "eliminated")
    assert result.certificates["rests_on"] == "proved"
    assert np.linalg.norm(off) <= result.error_bound + 1e-13
    assert result.error_bound <= tol * max(1.0, size)


def general(seed: int, n: int = 4, q: int = 9) -> ccmac.Problem:
    """Dense and sparse Hessians, unequal beta_i and h_i, right-hand sides, both ways to say f_i."""
    random = np.random.default_rng(seed)
    agents = []
    for i in range(n):
        d = int(random.integers(1, 6))
        F = random.standard_normal((d, d))
        H = F @ F.T + 0.3 * np.eye(d)
        g = random.standard_normal(d)
        h = float(i % 3)
        g_z = random.standard_normal(q)
        if i % 2:
            whole = np.zeros((d + q, d + q))
            whole[:d, :d], whole[d:, d:] = H, h * np.eye(q)
            f: Any = Quadratic(whole, np.concatenate([g, g_z if h else 0 * g_z]))
        else:
            f = Separable(Quadratic(H, g), SquaredDistance(h, g_z))
        B = None if i == 1 else sp.eye_array(q, format="csr") * (i - 0.5)
        agents.append(
            ccmac.Agent(f, A=random.standard_normal((q, d)), B=B, b=random.standard_normal(q))
        )
    return ccmac.Problem(agents, q=q, m=q)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_general_quadratics_agree_with_the_dense_solution(seed: int) -> None:
    problem = general(seed)
    reference = solve_kkt(problem)
    result = ccmac.solve(problem, "ring", CrossCg(sketch=2), 1e-8)
    assert result.plan is not None
    assert (result.status, result.plan.realization) == ("optimal", "eliminated")
    off = np.concatenate([*result.x, result.z]) - reference.vector
    assert np.linalg.norm(off) <= result.error_bound + 1e-12 * np.linalg.norm(reference.vector)
    values = [
        a.objective.value(x, result.z)
        for a, x in zip(problem.agents.values(), result.x, strict=True)
    ]
    assert result.objective == pytest.approx(sum(values), rel=1e-9)
    assert result.multipliers.consensus.sum(axis=0) == pytest.approx(np.zeros(9), abs=1e-6)
    for i, agent in problem.agents.items():
        on_x, on_z = agent.objective.gradient(result.x[i], result.z)
        on_x = on_x + agent.A.T @ result.multipliers.coupled
        on_z = on_z + result.multipliers.consensus[i]
        if agent.B is not None:
            on_z = on_z + agent.B.T @ result.multipliers.coupled
        assert np.linalg.norm(np.concatenate([on_x, on_z])) <= 1e-9 * (1 + np.linalg.norm(on_x))


def test_what_it_costs() -> None:
    """Setup: declarations, equations (where small) and one block; a step: one averaging; a proof:
    one.
    """
    X, y = table()
    problem = vfl.problem(X, y, 8, alpha=("cross_factor", 3.0))
    result = ccmac.solve(problem, ccmac.Network.ring(8), CrossCg(sketch=10), 1e-6)
    rounds = [result.ledger.of(phase)["rounds"] for phase in ("setup", "solve", "monitor")]
    assert rounds == [12, 4 * result.iterations, 4]
    assert result.ledger["argmins"] == result.iterations
    assert result.ledger["A"] == 2 * result.iterations


def test_chi_plays_no_role() -> None:
    X, y = table()
    counts = set()
    for chi in (1.0, 8.0, 100.0):
        problem = vfl.problem(X, y, 5, alpha=("cross_factor", chi))
        counts.add(ccmac.solve(problem, "ring", CrossCg(sketch=10), 1e-6).iterations)
    assert len(counts) == 1


def test_own_equations_and_other_shapes_keep_the_two_channels() -> None:
    problem = general(3)
    agents = list(problem.agents.values())
    for changed in (
        replace(agents[0], D=np.ones((1, 9))),
        replace(agents[0], B=np.ones((9, 9))),
        replace(
            agents[0],
            objective=Separable(
                agents[0].objective.x_part, Quadratic(np.arange(1.0, 10.0), np.zeros(9))
            ),
        ),
    ):
        plan = ccmac.plan(ccmac.Problem([changed, *agents[1:]]), "ring", "cross-cg")
        assert plan.realization == "averaged"


def test_the_size_is_planned_by_rounds_and_bytes() -> None:
    runtime = ccmac.InProcess(ccmac.Network.ring(8))
    row = 8 * 1000 * runtime.averaging.floats_sent
    sizes = [
        planned_size(runtime, 1000, ccmac.Costs(byte=price * 4 / row))
        for price in (0.0, 0.1, 1.0, 10.0, 100.0)
    ]
    assert sizes == [LARGEST, LARGEST, 32, 4, 0]
    assert planned_size(runtime, 1000, ccmac.Costs(round=0.0)) == 0
    assert planned_size(runtime, 100, ccmac.Costs()) == 25


def test_sums_over_many_agents_are_multiplied_out_at_the_same_charge() -> None:
    X, y = table(3, columns=90)
    X[np.abs(X) < 0.3 * np.abs(X).max(axis=0)] = 0.0
    network = ccmac.Network.random_regular(90, 4, seed=0)
    problem = vfl.problem(sp.csr_array(X), y, 90)
    apart, fused = (
        ccmac.solve(problem, runtime=ccmac.InProcess(network, fused=fused), tol=1e-9)
        for fused in (False, True)
    )
    assert apart.ledger.as_dict() == fused.ledger.as_dict()
    np.testing.assert_allclose(problem.weights(fused), problem.weights(apart), rtol=0, atol=1e-12)
    weights = exact(X, y)
    for result in (apart, fused):
        off = np.linalg.norm(problem.weights(result) - weights)
        assert result.status == "optimal"
        assert off <= result.error_bound + 1e-13
