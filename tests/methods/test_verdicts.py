"""What a result says: statuses, bounds and estimates, warnings, limits, residuals, corners."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import scipy.sparse as sp

import ccmac
from adversarial.exact import Exact
from adversarial.families import base
from ccmac.errors import AssumptionWarning
from ccmac.objectives import Custom, Quadratic
from ccmac.paper.instances import random_quadratic
from ccmac.paper.instances.reference import solve_kkt
from ccmac.results import ADVICE
from ccmac.vfl import problem as vertical


def small(*objectives: object, **changes: object) -> ccmac.Problem:
    """x_i + z summed over the agents is as many as there are."""
    blocks = {"A": [[1.0]], "B": [[1.0]], "b": [1.0], **changes}
    return ccmac.Problem([ccmac.Agent(f, **blocks) for f in objectives])  # type: ignore[arg-type]


def half_square(scale: float = 1.0, declared: float = 1.0) -> Custom:
    """|u|^2 / 2 whose gradient is off by a factor."""
    return Custom(
        lambda x, z: 0.5 * float(x @ x + z @ z),
        lambda x, z: (scale * x, scale * z),
        declared,
        declared,
    )


# -- stalled -------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["cross-cg", "cross-direct"])
def test_nothing_more_to_gain_is_said_to_be_stalled(method: str) -> None:
    problem = random_quadratic(0, 3, kappa_f=1e7)
    result = ccmac.solve(problem, "ring", method, 1e-13)
    assert result.status == "stalled"
    assert result.message == ADVICE["stalled"]
    assert result.error_bound > 1e-13
    reference = solve_kkt(problem)
    exact = np.concatenate([*reference.x, reference.z])
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert error <= result.error_bound
    assert max(result.residuals[k] for k in ("coupled", "local", "shared")) < 1e-12


def test_auto_goes_on_after_a_stall_and_returns_what_was_proved_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
    problem = random_quadratic(0, 3, kappa_f=1e3)
    alone = ccmac.solve(problem, "ring", "cross-cg", 1e-16)
    assert alone.status == "stalled"
    result = ccmac.solve(problem, "ring", "auto", 1e-16, max_iterations=60)
    assert "cross-cg stalled; went on with cross-apapc" in result.warnings
    assert result.status == "stalled"
    assert result.error_estimate == pytest.approx(alone.error_estimate)
    assert result.plan is not None
    assert result.plan.method == "cross-cg"


def test_auto_goes_on_after_cross_direct_to_a_method_whose_bound_suffices() -> None:
    """Nearly dependent C_i; tol between what cross-direct and what cross-cg can prove."""
    went_on = 0
    for seed in range(16):
        random = np.random.default_rng([9, seed])
        draft = base(random, int(random.integers(1, 4)), d=3, p=2, r=0)
        for C in draft.C:
            C[1] = C[0]
            C[1, -1] += 2.0**-30
        problem = draft.plant().problem()
        first, second = (
            ccmac.solve(problem, None, name, 1e-13) for name in ("cross-direct", "cross-cg")
        )
        assert first.status == "stalled"
        if not second.error_bound < 0.9 * first.error_bound:
            continue
        size = max(1.0, float(np.linalg.norm(np.concatenate([*first.x, first.z]))))
        tol = math.sqrt(first.error_bound * second.error_bound) / size
        result = ccmac.solve(problem, None, "auto", tol)
        assert result.status == "optimal"
        exact = Exact(draft)
        assert (
            exact.error(exact.point(result.x, result.z)) <= result.error_bound <= tol * size * 1.01
        )
        # an earlier refinement of cross-direct may have been the better one
        assert result.warnings in ([], ["cross-direct stalled; went on with cross-cg"])
        went_on += bool(result.warnings)
    assert went_on


# -- converged -----------------------------------------------------------------------------------
def test_constants_that_do_not_hold_make_the_bound_an_estimate() -> None:
    with pytest.warns(AssumptionWarning):
        result = ccmac.solve(small(half_square(2.0), half_square()), "path")
    assert result.status == "converged"
    assert math.isnan(result.error_bound)
    assert 0 < result.error_estimate < 1e-5
    assert result.certificates["rests_on"] == "estimated"
    assert any("agent 0" in text and "smoothness" in text for text in result.warnings)


def test_constants_that_hold_keep_the_bound() -> None:
    result = ccmac.solve(small(half_square(), half_square()), "path")
    assert result.status == "optimal"
    assert result.error_bound <= 1e-6 * max(1.0, math.sqrt(3) / 2)
    assert math.isnan(result.error_estimate)
    assert result.certificates["rests_on"] == "supplied"
    assert not result.warnings
    assert result.z == pytest.approx([0.5], abs=1e-6)  # x_1 = x_2 = z


def test_an_estimated_interval_gives_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coupled rows too many for Lanczos to exhaust, and not gathered."""
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
    problem = random_quadratic(1, 4, d=60, q=40, m=60, p=0, r=0)
    result = ccmac.solve(problem, "complete", "cross-apapc", 1e-4)
    assert result.certificates["rests_on"] == "estimated"
    assert result.status == "converged"
    assert math.isnan(result.error_bound)
    reference = solve_kkt(problem)
    exact = np.concatenate([*reference.x, reference.z])
    error = np.linalg.norm(np.concatenate([*result.x, result.z]) - exact)
    assert error <= result.error_estimate


# -- time ----------------------------------------------------------------------------------------
def test_time_counts_from_the_call_and_the_setup_with_it() -> None:
    problem = random_quadratic(0, 30, d=(30, 40), q=30, m=20)
    begun = time.perf_counter()
    result = ccmac.solve(problem, "path", "cross-apapc", 1e-12, max_seconds=1e-9)
    assert time.perf_counter() - begun < 10
    assert result.status == "max_iterations"
    assert result.iterations == 0
    assert any("max_seconds" in text for text in result.warnings)
    assert math.isnan(result.error_bound)


def test_time_limits_the_iterations_too() -> None:
    problem = random_quadratic(0, 4, kappa_f=1e3)
    result = ccmac.solve(problem, "path", "papc", 1e-15, max_seconds=1.5)
    assert result.status == "max_iterations"
    assert result.iterations > 0
    assert 1.5 <= result.seconds < 5


# -- residuals -----------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["cross-direct", "cross-cg", "cross-apapc", "papc", "dpmm"])
def test_residuals_are_those_of_the_point_returned(method: str) -> None:
    problem = random_quadratic(2, 4)
    result = ccmac.solve(problem, "ring", method, 1e-4, max_iterations=40)
    coupled = np.zeros(problem.m)
    local = []
    shared = []
    for i, agent in problem.agents.items():
        coupled += agent.A @ result.x[i] + agent.B @ result.z - agent.b
        local.append(agent.C @ result.x[i] - agent.c)
        shared.append(agent.D @ result.z - agent.e)
    for kind, parts in (("coupled", coupled), ("local", local), ("shared", shared)):
        true = float(np.linalg.norm(np.concatenate([np.ravel(p) for p in parts])))
        assert result.residuals[kind] == pytest.approx(true, rel=1e-6, abs=1e-13)
    value = sum(agent.objective.value(result.x[i], result.z) for i, agent in problem.agents.items())
    assert result.objective == pytest.approx(value, rel=1e-12)


# -- corners -------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["coupled", "C", "D"])
def test_zero_equals_a_millionth_is_infeasible(where: str) -> None:
    f = Quadratic(np.eye(2), np.ones(2))
    if where == "coupled":
        problem = small(f, f, A=[[0.0]], B=[[0.0]], b=[5e-7])
    else:
        right = {"C": "c", "D": "e"}[where]
        problem = small(f, f, **{where: [[0.0]], right: [1e-6]})
    result = ccmac.solve(problem, "path")
    assert result.status == "infeasible"
    # Contradictions of several agents' own rows add up.
    assert abs(result.infeasibility.value) == pytest.approx(1e-6 if where == "coupled" else 2e-6)
    assert result.infeasibility.radius == math.inf


def test_nothing_to_minimise() -> None:
    zero = Quadratic(np.zeros((2, 2)), np.zeros(2))
    result = ccmac.solve(small(zero, zero), "path")
    assert result.status == "optimal"
    assert result.objective == 0.0
    assert result.residuals["coupled"] <= 1e-6 * np.sqrt(6)  # the length of the row (1, 1, 2)


def test_linear_objectives_bounded_by_the_equations() -> None:
    """Slopes (1, 1, 2) are the coupled row itself: every feasible point is a solution."""
    linear = Quadratic(np.zeros((2, 2)), np.ones(2))
    result = ccmac.solve(small(linear, linear), "path")
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-2.0, abs=1e-5)


def test_an_objective_declared_without_any_curvature() -> None:
    linear = [
        Custom(lambda x, z: float(x[0]), lambda x, z: (np.ones(1), np.zeros(1)), 0.0)
        for _ in range(2)
    ]
    problem = small(*linear, B=[[0.0]])
    result = ccmac.solve(problem, "path", tol=1e-3, max_iterations=2000)
    assert result.status in ("optimal", "converged", "max_iterations")
    assert result.objective == pytest.approx(2.0, abs=1e-2)


def test_a_sparse_identity_at_one_agent_and_none_at_another() -> None:
    f = Quadratic(np.eye(4), np.ones(4))
    blocks = {"A": [[1.0, 2.0]], "b": [1.0]}
    agents = [
        ccmac.Agent(f, **blocks, D=sp.identity(2, format="csr"), e=[1.0, 2.0]),  # type: ignore[arg-type]
        ccmac.Agent(f, **blocks),  # type: ignore[arg-type]
    ]
    for method in ("auto", "cross-apapc", "joint-apapc"):
        result = ccmac.solve(ccmac.Problem(agents), "path", method, 1e-8)
        assert result.status == "optimal"
        assert result.z == pytest.approx([1.0, 2.0], abs=1e-7)


def test_five_hundred_equal_agents() -> None:
    """The curvature that an augmentation recovers has its root at an end of the bracket."""
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 500))
    y = random.standard_normal(20)
    problem = vertical(X, y, 500, regularization=1.0)
    plan = ccmac.plan(problem, "star", "cross-apapc", 1e-3)
    assert plan.predicted is not None
