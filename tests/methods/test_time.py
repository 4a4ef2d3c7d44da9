"""max_seconds counts from the call, and the setup is left between two agents' pieces of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

import ccmac
from ccmac import api
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
