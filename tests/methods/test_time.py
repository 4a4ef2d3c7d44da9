"""max_seconds counts from the call, and the setup is left between two agents' pieces of it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import api
from ccmac.objectives import Box, Separable
from ccmac.paper.instances import random_quadratic


@pytest.mark.parametrize("method", ["auto", "cross-apapc", "cross-cg"])
def test_what_comes_before_the_run_counts_too(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Placing the problem on its network takes longer than the limit."""
    placed = api.placed

    def slowly(*given: Any) -> Any:
        time.sleep(0.3)
        return placed(*given)

    monkeypatch.setattr(api, "placed", slowly)
    problem = random_quadratic(0, 3, kappa_f=10.0)
    result = ccmac.solve(problem, "ring", method, max_seconds=0.25)
    assert (result.status, result.iterations) == ("max_iterations", 0)
    assert result.seconds >= 0.3
    assert result.warnings == ["the time limit passed during the setup; raise max_seconds"]
    assert ccmac.solve(problem, "ring", method, max_seconds=60.0).status == "optimal"


@pytest.mark.parametrize("reach", [2.0, 10.0])
def test_a_tenth_of_the_time_is_kept_for_contradictions(reach: float) -> None:
    """Six entries in [-1, 1] add up to 6 at most, and should to 3 ``reach``."""
    box = Separable(Box(-np.ones(2), np.ones(2)), Box(-np.ones(1), np.ones(1)))
    agents = [ccmac.Agent(box, A=[[1.0, 1.0]], B=[[0.0]], b=[reach]) for _ in range(3)]
    result = ccmac.solve(ccmac.Problem(agents), "ring", "cross-sliding", 1e-15, max_seconds=2.0)
    assert (result.status == "infeasible") == (reach > 2.0)
    if result.infeasibility is not None:
        lam = result.infeasibility.coupled
        assert abs(float(lam[0]) * 3 * reach) > 6 * abs(float(lam[0]))
