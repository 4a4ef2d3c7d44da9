"""Prices of a warm start that make no sense: they may cost iterations, never the truth."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.certificates.multipliers import Multipliers
from ccmac.errors import InputError
from ccmac.paper.instances import dispatch
from ccmac.results import Solution


def absurd(problem: ccmac.Problem, size: float) -> Multipliers:
    """Random multipliers of that size."""
    rng = np.random.default_rng(0)
    local = [size * rng.standard_normal(p) for p in problem.p.values()]
    shared = [size * rng.standard_normal(r) for r in problem.r.values()]
    consensus = size * rng.standard_normal((problem.n, problem.q))
    return Multipliers(size * rng.standard_normal(problem.m), local, shared, consensus)


@pytest.mark.parametrize("method", ["cross-apapc", "cross-cg", "cross-lbfgs", "papc", "auto"])
@pytest.mark.parametrize("size", [1e8, 1e30])
def test_a_feasible_problem_stays_feasible(method: str, size: float) -> None:
    problem = dispatch(hours=2).problem
    cold = ccmac.solve(problem, "ring", tol=1e-8)
    start = Solution(cold.x, cold.z, absurd(problem, size))
    result = ccmac.solve(problem, "ring", method, warm_start=start, max_iterations=400)
    assert result.status in ("optimal", "max_iterations", "stalled")
    assert result.infeasibility is None
    gap = np.linalg.norm(np.concatenate([*result.x, result.z]) - np.concatenate([*cold.x, cold.z]))
    assert result.error_bound >= gap - 1e-6


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e60])
def test_a_start_must_be_numbers(entry: float) -> None:
    problem = dispatch(hours=2).problem
    x = [np.zeros(d) for d in problem.d.values()]
    x[3][0] = entry
    with pytest.raises(InputError, match="warm_start, x of agent 3"):
        ccmac.solve(problem, "ring", warm_start=Solution(x, np.zeros(problem.q)))
