"""cross-direct against dense KKT systems: points, prices, counts, refinement, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmac
from adversarial.direct import reference
from adversarial.draft import Draft
from adversarial.exact import Exact
from adversarial.families import base, dependent_rows
from ccmac.errors import MethodRefused
from ccmac.methods.base import Request
from ccmac.methods.direct import STEPS, CrossDirect, Direct
from ccmac.methods.run import starting_point
from ccmac.objectives import Quadratic
from ccmac.paper.instances import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.workspace import Workspace
from certificates.points import pieces, workspace

SEEDS = st.integers(0, 10**4)


def error(problem: ccmac.Problem, result: ccmac.Result) -> float:
    dense = solve_kkt(problem)
    exact = np.concatenate([*dense.x, dense.z])
    return float(np.linalg.norm(np.concatenate([*result.x, result.z]) - exact))


@given(SEEDS, st.floats(1, 6), st.integers(1, 5), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_random_problems_of_every_condition(
    seed: int, power: float, n: int, redundant: bool, overlap: bool
) -> None:
    problem = random_quadratic(
        seed,
        n,
        kappa_f=10**power,
        rank_deficient=redundant,
        B="overlap" if overlap and n > 1 else "generic",
    )
    network = ccmac.Network.path(n)
    result = ccmac.solve(problem, network, "cross-direct", 1e-6)
    assert result.status == "optimal", result.message
    off = error(problem, result)
    assert off <= result.error_bound + 1e-11 * 10**power
    assert off <= 1e-12 * 10**power
    assert result.iterations <= STEPS


@pytest.mark.parametrize("absent", ["A", "B", "C", "D", "AB", "CD", "BD", "AC", "ABCD"])
def test_absent_blocks(absent: str) -> None:
    problem = random_quadratic(3, 3, absent=tuple(absent))
    result = ccmac.solve(problem, "ring", "cross-direct", 1e-9)
    assert result.status == "optimal"
    assert error(problem, result) <= 1e-11


def test_blocks_absent_here_and_there() -> None:
    for seed in range(6):
        problem = random_quadratic(seed, 4, absent=0.4)
        result = ccmac.solve(problem, "ring", "cross-direct", 1e-9)
        assert result.status == "optimal"
        assert error(problem, result) <= 1e-11


def redundant(seed: int) -> Draft:
    """Dependent rows in every C_i and D_i."""
    random = np.random.default_rng(seed)
    draft = base(random, p=1, r=1)
    draft.C = [dependent_rows(random, C) for C in draft.C]
    draft.D = [dependent_rows(random, D) for D in draft.D]
    return draft.plant()


@pytest.mark.parametrize("seed", range(8))
def test_redundant_rows_in_exact_arithmetic(seed: int) -> None:
    draft = redundant(seed)
    result = ccmac.solve(draft.problem(), method="cross-direct", tol=1e-9)
    exact = Exact(draft)
    assert result.status == "optimal"
    assert exact.error(exact.point(result.x, result.z)) <= min(result.error_bound, 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_prices_are_the_multipliers_of_a_dense_system(seed: int) -> None:
    """grad_x f + A'y + C'kappa = 0 and sum of grad_z f + B'y + D'delta = 0, the y unique."""
    problem = random_quadratic(seed, 3, m=2, p=1, r=0)
    result = ccmac.solve(problem, "path", "cross-direct", 1e-9)
    prices = result.multipliers
    assert prices is not None
    d = [problem.d[i] for i in range(3)]
    q = problem.q
    size = sum(d) + q
    starts = np.cumsum([0, *d])
    H = np.zeros((size, size))
    g = np.zeros(size)
    K = np.zeros((2 + 3, size))
    v = np.zeros(5)
    for i, agent in problem.agents.items():
        at = np.r_[starts[i] : starts[i + 1], size - q : size]
        block, linear, _ = agent.objective.quadratic(d[i], q)
        H[np.ix_(at, at)] += block
        g[at] += linear
        K[:2, at] += np.hstack([agent.A, agent.B])
        v[:2] += agent.b
        K[2 + i, starts[i] : starts[i + 1]], v[2 + i] = agent.C[0], agent.c[0]
    kkt = np.block([[H, K.T], [K, np.zeros((5, 5))]])
    dual = np.linalg.solve(kkt, np.concatenate([g, v]))[size:]
    assert prices.coupled == pytest.approx(dual[:2], rel=1e-9, abs=1e-10)
    assert np.concatenate(prices.local) == pytest.approx(dual[2:], rel=1e-9, abs=1e-10)


# -- steps and counts ----------------------------------------------------------------------------
def prepared(draft: Draft, network: ccmac.Network | None = None) -> tuple[Workspace, Direct]:
    work = workspace(draft, network)
    with work.ledger.phase("setup"):
        found = CrossDirect().prepare(work, Request(1e-6, *starting_point(work, None)))
    assert isinstance(found.iteration, Direct)
    return work, found.iteration


def distance(draft: Draft, iteration: Direct, state: object) -> float:
    exact = Exact(draft)
    x, z = iteration.point(state)  # type: ignore[arg-type]
    assert np.array_equal(z, np.broadcast_to(z[0], z.shape))
    return exact.error(exact.point(pieces(draft, x), z[0]))


def test_the_first_step_solves_and_further_ones_refine() -> None:
    """kappa 2^20: the first solution carries condition times rounding, refinement removes it."""
    gains = []
    for seed in range(6):
        draft = base(np.random.default_rng(seed), 3, p=1, r=1)
        for i, H in enumerate(draft.H):
            scale = 2.0 ** np.linspace(0, 10, len(H)).round()
            draft.H[i] = scale[:, None] * np.diag(np.diag(H)) * scale
        draft.plant()
        _, iteration = prepared(draft)
        state = iteration.start(np.zeros(sum(draft.d)), np.zeros((3, draft.q)))
        errors = []
        bounds = []
        for count in range(STEPS):
            assert iteration.finished(state) is False
            assert state.count == count
            state = iteration.step(state)
            errors.append(distance(draft, iteration, state))
            assert iteration.found is not None
            bounds.append(iteration.found.error)
        assert iteration.finished(state)
        assert errors[0] <= 1e-7
        assert errors[-1] <= 1e-10
        gains.append(bounds[0] / bounds[-1])
    assert min(gains) >= 1
    assert max(gains) >= 100


def test_averagings_are_counted_exactly() -> None:
    """The triangle of a matrix of size q + m and a vector travel with the equations."""
    draft = base(np.random.default_rng(4), 4, q=3, m=2, p=1, r=1).plant()
    work = workspace(draft, ccmac.Network.ring(4))
    size = draft.q + draft.m
    runtime = work.runtime
    before = work.ledger.of("setup")
    with work.ledger.phase("setup"):
        _ = work.announce_schur()
        assert work.gather_constraints() is not None
        iteration = Direct(work, work.gather_constraints())
    setup = work.ledger.of("setup") - before
    other = workspace(draft, ccmac.Network.ring(4))
    before = other.ledger.of("setup")
    assert other.gather_constraints() is not None
    alone = other.ledger.of("setup") - before
    assert setup["averagings"] == alone["averagings"] == 1
    floats = size * (size + 1) // 2 + size
    one = runtime.average_cost(1)["bytes"] - runtime.average_cost(0, 0)["bytes"]
    assert setup["bytes"] - alone["bytes"] == floats * one
    assert setup["argmins"] == 1
    assert setup["A"] == draft.m
    state = iteration.start(np.zeros(sum(draft.d)), np.zeros((4, draft.q)))
    for _ in range(2):
        before = work.ledger.of("solve")
        state = iteration.step(state)
        assert work.ledger.of("solve") - before == iteration.cost
    assert iteration.cost["averagings"] == 1
    width = 3 * (draft.m + draft.q) + 9
    assert iteration.cost["bytes"] == runtime.gather_cost(width)["bytes"]


def averagings(result: ccmac.Result) -> int:
    return sum(result.ledger.of(p)["averagings"] for p in ("setup", "solve", "monitor"))


@pytest.mark.parametrize("kappa", [10.0, 1e6])
def test_certified_in_four_averagings(kappa: float) -> None:
    """n = 8, d = 60, q = 80, m = 60 with C and D, all phases; the short form of the script."""
    problem = random_quadratic(3, 8, d=60, q=80, m=60, p=20, r=3, kappa_f=kappa)
    result = ccmac.solve(problem, "ring", tol=1e-6)
    assert result.status == "optimal"
    assert result.plan is not None
    assert result.plan.method == "cross-direct"
    assert averagings(result) <= 4
    exact = reference(problem)
    off = np.concatenate([*result.x, result.z]) - exact
    assert float(np.linalg.norm(off.astype(np.float64))) <= result.error_bound


def test_a_resumed_run_that_was_over_is_judged_again(tmp_path: Path) -> None:
    problem = random_quadratic(0, 4)
    first = ccmac.solve(
        problem, "ring", "cross-direct", 1e-9, max_iterations=1, checkpoint=tmp_path / "kept"
    )
    again = ccmac.solve(
        problem, "ring", "cross-direct", 1e-9, max_iterations=1, checkpoint=tmp_path / "kept"
    )
    assert first.status == again.status == "optimal"
    assert np.allclose(np.concatenate(first.x), np.concatenate(again.x), atol=1e-12)


def test_one_step_is_enough_where_all_is_well_conditioned() -> None:
    problem = random_quadratic(0, 4)
    result = ccmac.solve(problem, "ring", "cross-direct", 1e-6)
    assert result.iterations == 1
    assert result.plan is not None
    assert result.plan.settings["rows"] == 5  # three coupled, and the D_i span two
    assert result.ledger.of("solve")["rounds"] == 2


def test_nothing_to_solve_for_all() -> None:
    """No shared variable and no coupled row: every agent by itself."""
    agents = [ccmac.Agent(Quadratic(np.diag([2.0, 4.0]), np.array([1.0, k]))) for k in (2.0, 4.0)]
    result = ccmac.solve(ccmac.Problem(agents, q=0), "path", "cross-direct", 1e-9)
    assert result.status == "optimal"
    assert result.x[0] == pytest.approx([0.5, 0.5])
    assert result.x[1] == pytest.approx([0.5, 1.0])


# -- refusals ------------------------------------------------------------------------------------
def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 1)
    problem = random_quadratic(0, 3)
    with pytest.raises(MethodRefused, match="few enough to be known to all"):
        ccmac.solve(problem, "ring", "cross-direct")
    advised = ccmac.solve(problem, "ring", "cross-cg", 1e-6)
    assert advised.status in ("optimal", "converged")  # proved only where rows are known apart
    assert error(problem, advised) <= 1e-5


def test_other_objectives_are_refused() -> None:
    loss = ccmac.objectives.Logistic(np.eye(2), np.ones(2), ridge=1.0)
    problem = ccmac.Problem([ccmac.Agent(loss, A=[[1.0]], B=[[1.0]], b=[0.0])])
    with pytest.raises(MethodRefused, match="quadratic"):
        ccmac.solve(problem, method="cross-direct")
