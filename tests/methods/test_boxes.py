"""Active, unreachable and open boxes: values, gaps and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from ccmac.objectives import Box, Quadratic


def boxed(low: list[float], high: list[float], b: float, **linear: object) -> ccmac.Problem:
    """Two agents: half squares (or -x) on a box of (x, z), and x_1 + x_2 + 2 z = 2 b."""
    f = Quadratic(np.eye(2), np.zeros(2))
    if linear:
        f = Quadratic(np.zeros((2, 2)), np.array([1.0, 0.0]))
    blocks = {"A": [[1.0]], "B": [[1.0]], "b": [b], **linear}
    agents = [ccmac.Agent(f + Box(np.array(low), np.array(high)), **blocks) for _ in range(2)]
    return ccmac.Problem(agents)


@pytest.mark.parametrize("method", ["auto", "cross-sliding"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_at_an_active_box_value_and_gap_are_finite_and_small(method: str, tol: float) -> None:
    """z = 1/10 holds at its bound, x_i = 19/10: F = 3.62."""
    result = ccmac.solve(boxed([-5.0, -1.0], [5.0, 0.1], 2.0), "path", method, tol)
    assert result.status == "optimal"
    assert math.isfinite(result.objective)
    found = result.certificates
    assert found["epsilon"] == pytest.approx(tol * 3.62, rel=0.05)
    assert found["gap"] <= found["epsilon"] * (1 + 1e-9)
    assert found["feasibility"] <= found["epsilon"] * (1 + 1e-9)
    assert abs(result.objective - 3.62) <= 2 * found["epsilon"]


def test_a_box_out_of_reach_is_infeasible() -> None:
    """x_1 + x_2 + 2 z is at most 10.2, and should be 40."""
    problem = boxed([-5.0, -1.0], [5.0, 0.1], 20.0)
    result = ccmac.solve(problem, "path")
    assert result.status == "infeasible"
    assert result.infeasibility.radius > 1e5
    assert "bounds" in result.message


def test_a_box_within_reach_is_not_called_infeasible_by_a_limit() -> None:
    problem = boxed([-5.0, -1.0], [5.0, 0.1], 2.0)
    result = ccmac.solve(problem, "path", "cross-sliding", max_iterations=3)
    assert result.status == "max_iterations"
    assert result.infeasibility is None


def test_an_open_box_in_which_the_objective_falls_is_unbounded() -> None:
    """-x_1 - x_2 with x >= 0 that no equation holds back."""
    free = {"A": [[0.0]], "B": [[1.0]]}
    result = ccmac.solve(boxed([0.0, -1.0], [math.inf, 1.0], 0.5, **free), "path")
    assert result.status == "unbounded"
    assert result.objective == -math.inf
