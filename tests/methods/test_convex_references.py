"""Random problems of every kind against Clarabel: the proved criterion is met by true values."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from methods.convex_problems import KINDS, case

TOL = 1e-3
CLARABEL = 1e-6  # relative accuracy of its points


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_criterion_is_met_by_true_values(kind: str, seed: int) -> None:
    """F - F* <= eps and nearly feasible, as proved for the radius that was supplied.

    Where the only solution is known to be one, its distance is proved instead.
    """
    sample = case(kind, seed)
    method = ccmac.methods.Auto(radius=sample.radius)
    result = ccmac.solve(sample.problem, sample.network, tol=TOL, method=method)
    epsilon = TOL * max(1.0, abs(result.objective))
    assert result.status == "optimal"
    assert abs(result.objective - sample.value) <= epsilon
    if "gap" in result.certificates:
        assert result.certificates["gap"] <= epsilon * (1 + 1e-9)
        assert result.certificates["feasibility"] <= epsilon * (1 + 1e-9)
    else:
        assert kind == "least-squares"
        point = np.concatenate([*result.x, result.z])
        far = np.linalg.norm(point - sample.solution)
        assert far <= result.error_bound + CLARABEL * sample.radius
        assert result.error_bound <= TOL * max(1.0, np.linalg.norm(point))
    # With the multiplier the true gap is bounded below too; both sides are seen above.
    assert max(result.residuals[k] for k in ("coupled", "local", "consensus")) <= epsilon
