"""Random problems of every kind against Clarabel: the proved criterion is met by true values."""

from __future__ import annotations

import pytest

import ccmac
from methods.convex_problems import KINDS, case

TOL = 1e-3
QUICK, ALL = 2, 10
SEEDS = [pytest.param(seed, marks=[] if seed < QUICK else pytest.mark.slow) for seed in range(ALL)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_criterion_is_met_by_true_values(kind: str, seed: int) -> None:
    """F - F* <= eps and nearly feasible, as proved for the radius that was supplied."""
    sample = case(kind, seed)
    method = ccmac.methods.Auto(radius=sample.radius)
    result = ccmac.solve(sample.problem, sample.network, tol=TOL, method=method)
    epsilon = TOL * max(1.0, abs(result.objective))
    assert result.status == "optimal"
    assert abs(result.objective - sample.value) <= epsilon
    assert result.certificates["gap"] <= epsilon * (1 + 1e-9)
    assert result.certificates["feasibility"] <= epsilon * (1 + 1e-9)
    # With the multiplier the true gap is bounded below too; both sides are seen above.
    assert max(result.residuals[k] for k in ("coupled", "local", "consensus")) <= epsilon
