"""Inequalities and bounds: solved as stated, priced with the right signs, no slack to be seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

import ccmac
from ccmac.certificates.users_rows import violations
from ccmac.errors import InputError
from ccmac.limits import Reduction
from ccmac.limits.reduction import coupled_misfit
from ccmac.objectives import LeastSquares, Quadratic, Separable, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from limits.cases import kkt, random_limited, reference


@pytest.mark.parametrize("seed", [2, 3, 6, 9, 10])
def test_every_mix_of_senses_and_bounds_against_clarabel(seed: int) -> None:
    problem = random_limited(seed)
    result = ccmac.solve(problem, "complete", tol=1e-7)
    right = reference(problem)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(right.value, rel=1e-6, abs=1e-6)
    for mine, other in zip(result.x, right.x, strict=True):
        assert mine == pytest.approx(other, abs=2e-6)
    assert max(result.residuals[k] for k in ("coupled", "local", "shared", "limits")) <= 2e-7
    assert [len(x) for x in result.x] == list(problem.d.values())
    found = kkt(problem, result)
    assert found["signs"] == 0.0
    assert max(found.values()) <= 1e-5


def one_sided(sense: str, target: float, **limits: Any) -> ccmac.Problem:
    """min (x - target)^2/2 over two agents who share one row x_0 + x_1 (sense) 2."""
    f = Separable(SquaredDistance(1.0, [target]))
    agents = [ccmac.Agent(f, A=[[1.0]], b=[1.0], **limits) for _ in range(2)]
    return ccmac.Problem(agents, q=0, sense=sense)


@pytest.mark.parametrize(
    ("sense", "target", "x", "price"),
    [
        ("<=", 3.0, 1.0, 2.0),
        ("<=", 0.5, 0.5, 0.0),
        (">=", 0.0, 1.0, -1.0),
        (">=", 4.0, 4.0, 0.0),
        ("==", 3.0, 1.0, 2.0),
        ("==", 0.0, 1.0, -1.0),
    ],
)
def test_the_price_of_a_row_is_that_of_the_lagrangian(
    sense: str, target: float, x: float, price: float
) -> None:
    result = ccmac.solve(one_sided(sense, target), tol=1e-9)
    assert result.x[0] == pytest.approx([x], abs=1e-7)
    assert result.multipliers.coupled == pytest.approx([price], abs=1e-6)


def test_rows_that_hold_at_no_price_have_none_of_the_wrong_sign() -> None:
    """Four rows meet in a point of three variables, and two of them need cost nothing."""
    random = np.random.default_rng(17)
    x = random.integers(-3, 4, 3).astype(float)
    C = random.integers(-3, 4, (4, 3)).astype(float)
    root = random.integers(-2, 3, (3, 3))
    H = root.T @ root + np.eye(3)
    f = Quadratic(H, H @ x + C.T @ [1.0, 2.0, 0.0, 0.0])
    problem = ccmac.Problem([ccmac.Agent(f, C=C, c=C @ x, C_sense="<=")], q=0)
    result = ccmac.solve(problem, tol=1e-6)
    assert result.status == "optimal"
    assert result.multipliers.local[0].min() >= 0.0
    paid = C.T @ result.multipliers.local[0]  # the prices themselves are not unique
    assert paid == pytest.approx(C.T @ [1.0, 2.0, 0.0, 0.0], abs=1e-4)


def test_bounds_have_prices_of_their_own() -> None:
    low = ccmac.solve(one_sided("<=", -1.0, lower=0.25), tol=1e-9)
    assert low.x[0] == pytest.approx([0.25], abs=1e-8)
    assert low.multipliers.lower[0] == pytest.approx([1.25], abs=1e-6)
    assert low.multipliers.upper[0] == pytest.approx([0.0], abs=1e-6)
    high = ccmac.solve(one_sided("<=", 3.0, upper=0.5), tol=1e-9)
    assert high.multipliers.upper[1] == pytest.approx([2.5], abs=1e-6)


def test_the_price_is_the_slope_of_the_optimal_value() -> None:
    """d value / d b = -lambda, by finite differences."""

    def value(b: float) -> Any:
        f = Separable(SquaredDistance(1.0, [2.0, 1.0]), SquaredDistance(1.0, [3.0]))
        agent = ccmac.Agent(
            f, A=[[1.0, 1.0]], B=[[1.0]], b=[b], lower=0.0, C=[[1.0, -1.0]], c=[0.2], C_sense="<="
        )
        return ccmac.solve(ccmac.Problem([agent], sense="<=", z_upper=1.5), tol=1e-10)

    slope = (value(2.01).objective - value(1.99).objective) / 0.02
    assert -slope == pytest.approx(value(2.0).multipliers.coupled[0], rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_feasible_point_stays_one_and_comes_back(seed: int) -> None:
    """Lifted with its slacks it satisfies the equations; without them it is itself."""
    problem = random_limited(seed)
    runtime = InProcess(ccmac.Network.complete(problem.n))
    way = Reduction.of(problem, runtime)
    rng = np.random.default_rng(seed)
    x = [rng.standard_normal(d) for d in problem.d.values()]
    z = rng.standard_normal(problem.q)
    lifted = way.lifted(x, z, runtime)
    assert all(np.array_equal(a, b) for a, b in zip(way.x(lifted), x, strict=True))
    wide = [
        coupled_misfit(a, v, z, way.problem.m)
        for v, a in zip(lifted, way.problem.agents.values(), strict=True)
    ]
    plain = [
        coupled_misfit(a, v, z, problem.m) for v, a in zip(x, problem.agents.values(), strict=True)
    ]
    gap = np.sum(wide, axis=0)
    misfit = np.sum(plain, axis=0)
    sign = {"==": 0.0, "<=": 1.0, ">=": -1.0}
    for j in range(problem.m):
        s = 0.0 if problem.sense is None else sign[str(problem.sense[j])]
        violated = misfit[j] if s == 0 else s * max(s * misfit[j], 0.0)
        assert gap[j] == pytest.approx(violated, abs=1e-12)
    for v, (i, agent), image in zip(
        lifted, problem.agents.items(), way.problem.agents.values(), strict=True
    ):
        assert image.objective.x_size == len(v) == way.problem.d[i]
        if agent.C is not None and agent.C_sense is not None:
            rest = image.C @ v - agent.c
            for j, word in enumerate(agent.C_sense):
                s = sign[str(word)]
                g = float((agent.C @ v[: problem.d[i]] - agent.c)[j])
                assert rest[j] == pytest.approx(g if s == 0 else s * max(s * g, 0.0), abs=1e-12)


def test_what_has_no_prox_is_taken_apart() -> None:
    """A loss of Mx within bounds: gradients for the loss, the prox for the box.

    Two equal agents share a row x_0 + x_0' <= 0.2, which is x_0 <= 0.1 for each.
    """
    rng = np.random.default_rng(1)
    M = rng.standard_normal((6, 3))
    y = rng.standard_normal(6) + 1.0
    f = Separable(LeastSquares(M, y))
    agents = [ccmac.Agent(f, A=np.eye(3)[:1], b=[0.1], lower=0.0, upper=0.3) for _ in range(2)]
    result = ccmac.solve(ccmac.Problem(agents, q=0, sense="<="), "complete", tol=1e-8)
    right = lsq_linear(M, y, bounds=(0.0, [0.1, 0.3, 0.3]), tol=1e-14)
    assert result.objective == pytest.approx(2 * right.cost, abs=1e-6)
    assert result.x[1] == pytest.approx(right.x, abs=1e-5)


def test_saved_and_loaded_it_is_the_same_to_the_bit(tmp_path: Path) -> None:
    problem = random_limited(9)
    problem.save(tmp_path / "p")
    again = ccmac.Problem.load(tmp_path / "p")
    assert "version: 2" in (tmp_path / "p" / "problem.yaml").read_text()
    for i, agent in problem.agents.items():
        other = again.agents[i]
        assert other.name == agent.name
        for name in ("lower", "upper", "C_sense", "D_sense"):
            a = getattr(agent, name)
            b = getattr(other, name)
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a, b)
    first, second = (ccmac.solve(p, "complete", tol=1e-6) for p in (problem, again))
    assert all(np.array_equal(a, b) for a, b in zip(first.x, second.x, strict=True))
    assert np.array_equal(first.multipliers.coupled, second.multipliers.coupled)


def test_a_problem_without_limits_keeps_its_format(tmp_path: Path) -> None:
    agent = ccmac.Agent(SquaredDistance(), A=[[1.0]], b=[1.0])
    ccmac.Problem([agent], q=0).save(tmp_path / "p")
    assert "version: 1" in (tmp_path / "p" / "problem.yaml").read_text()


def test_a_warm_start_begins_where_the_solution_was() -> None:
    problem = random_limited(0)
    cold = ccmac.solve(problem, "complete", "cross-sliding", 1e-7)
    warm = ccmac.solve(problem, "complete", "cross-sliding", 1e-7, warm_start=cold)
    assert warm.iterations <= cold.iterations / 3
    seen = ccmac.solve(problem, "complete", tol=1e-10, reference=cold, max_iterations=2000)
    assert seen.relative_error <= 1e-10


def test_a_checkpoint_of_other_senses_is_refused(tmp_path: Path) -> None:
    first = one_sided("<=", 3.0)
    known = {"method": "cross-sliding", "tol": 1e-12, "checkpoint": tmp_path / "c"}
    ccmac.solve(first, max_iterations=1, **known)
    with pytest.raises(InputError, match="the data of agent 0"):
        ccmac.solve(one_sided(">=", 3.0), **known)


def test_the_geometry_is_that_of_rows_with_their_slacks() -> None:
    f = Separable(SquaredDistance(1.0, [2.0]), SquaredDistance(1.0, [2.0]))
    rows = np.array([[1.0], [1.0]])
    agents = [ccmac.Agent(f, A=rows, B=(1 + i) * rows, b=[1.0, 50.0], lower=-5.0) for i in range(2)]
    problem = ccmac.Problem(agents, sense="<=")
    equations = []
    for i, slack in enumerate(([[2.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]])):
        A = np.hstack([rows, slack])
        equations.append(ccmac.Agent(SquaredDistance(1.0), A=A, B=(1 + i) * rows))
    same = ccmac.geometry(ccmac.Problem(equations))
    assert ccmac.geometry(problem).cross_factor == pytest.approx(same.cross_factor)


def test_violations_of_any_point_are_those_of_the_rows_as_stated() -> None:
    """Two agents at x = (3, -4) and z = 5; rows of every kind, each off by its own amount."""
    f = Quadratic(np.eye(2), np.array([1.0, 0.0]))
    agents = [
        ccmac.Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0], C=[[2.0]], c=[1.0], C_sense="<=", lower=-1.0),
        ccmac.Agent(f, A=[[2.0]], B=[[1.0]], b=[1.0], D=[[3.0]], e=[3.0], D_sense="<=", upper=1.0),
    ]
    work = Workspace(
        ccmac.Problem(agents, sense="<=", z_upper=3.0), InProcess(ccmac.Network.path(2))
    )
    assert work.reduction is not None
    for x, coupled, local, limits in (
        ((3.0, -4.0), 3.0, 5.0, 2.0),
        ((-3.0, -4.0), 0.0, 0.0, 8**0.5),
    ):
        pieces = [np.array([v]) for v in x]
        z = np.array([5.0])
        norms, value = violations(work.reduction, work.runtime, pieces, z)
        assert norms["coupled"] == pytest.approx(coupled)  # x_0 + 2 x_1 + 10 - 2 <= 0
        assert norms["local"] == pytest.approx(local)
        assert norms["shared"] == pytest.approx(12.0)
        assert norms["limits"] == pytest.approx(limits)
        assert value == pytest.approx(sum(v * v / 2 - v for v in x) + 25.0)


@pytest.mark.parametrize("seed", [2, 5])
def test_units_of_rows_change_little(seed: int) -> None:
    """Slacks are of the size of x: rows times 2^-10 to 2^10 take about as many steps."""
    problem = random_limited(seed, "linear")
    rng = np.random.default_rng(seed)
    coupled = np.exp2(rng.integers(-10, 11, problem.m))
    agents = []
    for i, agent in problem.agents.items():
        A = agent.A.toarray() if sp.issparse(agent.A) else agent.A
        own = {"A": coupled[:, None] * A, "B": coupled[:, None] * agent.B, "b": coupled * agent.b}
        if agent.C is not None:
            on_C, on_D = (np.exp2(rng.integers(-10, 11, k)) for k in (problem.p[i], problem.r[i]))
            own |= {"C": on_C[:, None] * agent.C, "c": on_C * agent.c}
            own |= {"D": on_D[:, None] * agent.D, "e": on_D * agent.e}
        agents.append(replace(agent, **own))
    bounds = {"z_lower": problem.z_lower, "z_upper": problem.z_upper}
    scaled = ccmac.Problem(agents, q=problem.q, m=problem.m, sense=problem.sense, **bounds)
    plain, other = (ccmac.solve(p, "complete", tol=1e-9) for p in (problem, scaled))
    assert other.status == "optimal"
    assert abs(other.iterations - plain.iterations) <= 3
    assert other.objective == pytest.approx(plain.objective, rel=1e-8, abs=1e-8)
    assert other.multipliers.coupled * coupled == pytest.approx(plain.multipliers.coupled, abs=1e-6)
