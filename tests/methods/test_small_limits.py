"""Runs that a limit ends say what they know, and a limit never makes a success of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ccmac
from adversarial.suite import make as adversarial
from ccmac import Agent, Network, Problem
from ccmac.objectives import Custom, Quadratic
from checker.judge import judge
from methods.interior.problems import make, violation

SUCCESS = ("optimal", "converged")
LIMITS = range(1, 16)


@pytest.mark.parametrize("seed", [1, 2, 3, 8])
def test_bounded_problems_at_each_of_the_first_iterations(seed: int) -> None:
    """Feasible, infeasible and unbounded ones, as the sweep draws them."""
    made = make(seed)
    allowed = {made.kind, "max_iterations", "stalled", "diverged"}
    for limit in LIMITS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Network.path(made.problem.n)
            result = ccmac.solve(made.problem, path, "cross-ipm", 1e-6, max_iterations=limit)
        if made.kind != "solvable":
            assert result.status in allowed, limit
            if result.status != "max_iterations":
                return  # with a larger limit it is the same run
            continue
        assert result.status not in ("infeasible", "unbounded"), limit
        if result.status in SUCCESS:
            assert abs(result.objective - made.value) <= 1e-6 * max(1.0, abs(made.value)), limit
            assert violation(made.problem, result) <= 1e-6, limit
            return


@pytest.mark.parametrize("family", ["across-shared", "too-many", "flat", "row-scales"])
@pytest.mark.parametrize("method", ["cross-apapc", "cross-cg"])
def test_equations_at_each_of_the_first_iterations(family: str, method: str) -> None:
    """Against rational arithmetic: whatever is said is true."""
    case = adversarial(family, 0)
    for limit in LIMITS:
        verdict = judge(case, method, max_iterations=limit)
        assert not verdict.false, (limit, verdict)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_contradiction_with_bounds_is_not_optimal(limit: int) -> None:
    """Three rows, eight variables in [0, 1], sides out of reach."""
    random = np.random.default_rng(0)
    A = random.standard_normal((3, 8))
    halves = [A[:, :4], A[:, 4:]]
    agents = [
        Agent(
            Quadratic(np.ones(4), random.standard_normal(4)),
            A=half,
            b=np.full(3, 20.0),
            lower=np.zeros(4),
            upper=np.ones(4),
        )
        for half in halves
    ]
    result = ccmac.solve(Problem(agents, q=0), Network.complete(2), max_iterations=limit)
    assert result.status in ("infeasible", "max_iterations")


def _kinked(strong_convexity: float) -> Custom:
    """|x|^2 / 2 within 30 of zero, nearly flat beyond: probes near zero see nothing of that."""

    def slope(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near = np.clip(x, -30, 30)
        return near + 1e-3 * (x - near), 0 * z

    def value(x: np.ndarray, z: np.ndarray) -> float:
        far = np.maximum(np.abs(x) - 30, 0)
        near = np.minimum(np.abs(x), 30)
        return float(np.sum(0.5 * near**2 + 30 * far + 0.5e-3 * far**2))

    return Custom(value, slope, smoothness=1.0, strong_convexity=strong_convexity)


@pytest.mark.parametrize("true", [True, False])
def test_gradients_of_a_run_refute_declared_constants(true: bool) -> None:
    mu = 1e-3 if true else 1.0
    agents = [Agent(_kinked(mu), A=[[1.0, 2.0]], b=[150.0]) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ccmac.solve(
            Problem(agents, q=0), Network.complete(2), "cross-apapc", 1e-6, max_iterations=5000
        )
    if true:
        assert (result.status, result.certificates["rests_on"]) == ("optimal", "supplied")
        assert not result.warnings
        return
    assert result.status != "optimal"
    assert np.isnan(result.error_bound)
    assert any("less than the declared strong convexity" in text for text in result.warnings)


def test_an_infinite_value_proves_no_gap() -> None:
    """min -x on x >= 0 by proximal steps: F falls without end, and no gap is small beside it."""
    flat = Problem([Agent(Quadratic([0.0], [1.0]), A=[[1.0]], b=[0.0]) for _ in range(2)], q=0)
    result = ccmac.solve(flat, Network.complete(2), "cross-sliding", 1e-3, max_iterations=50)
    assert result.status in ("optimal", "converged", "max_iterations", "stalled")
    free = Problem([Agent(Quadratic([0.0], [float(k + 1)])) for k in range(2)], q=0)
    result = ccmac.solve(free, Network.complete(2), "cross-sliding", 1e-3, max_iterations=50)
    assert result.status not in SUCCESS
