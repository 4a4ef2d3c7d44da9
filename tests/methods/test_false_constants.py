"""False constants that a user vouches for: whatever a run says all the same is true."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.methods import CrossApapc, apapc
from ccmac.methods.apapc import WIDEN_LIMIT
from ccmac.paper.instances import random_quadratic
from ccmac.paper.instances.reference import solve_kkt

FALSE = [
    ({"h": 0.01}, "certified", 3),  # overflows between two looks; then steps become long ones
    ({"h": 0.3, "mu_HC": 0.01}, "averaged", WIDEN_LIMIT),
    ({"h": 1e4, "mu_HC": 1e3}, "averaged", WIDEN_LIMIT),
    ({"cross_factor": 1.0}, "averaged", WIDEN_LIMIT),
    ({"cross_factor": 1.0}, "canonical", WIDEN_LIMIT),
]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize(("constants", "realization", "widened"), FALSE, ids=str)
def test_false_constants_are_refuted_or_harmless(
    constants: dict[str, float], realization: str, widened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apapc, "WIDEN_LIMIT", widened)
    problem = random_quadratic(0, 4)
    method = CrossApapc(certificates=ccmac.Certificates(**constants), realization=realization)
    result = ccmac.solve(problem, "ring", method, 1e-4, max_iterations=150)
    reference = solve_kkt(problem)
    exact = np.concatenate([*reference.x, reference.z])
    point = np.concatenate([*result.x, result.z])
    assert result.status in ("optimal", "converged", "max_iterations", "diverged")
    if result.status == "optimal":
        assert np.linalg.norm(point - exact) <= result.error_bound
        assert result.error_bound <= 1e-4 * max(1.0, float(np.linalg.norm(point)))
