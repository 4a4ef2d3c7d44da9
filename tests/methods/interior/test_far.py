"""Halfspaces that are nearly parallel meet, and end a fall, far away.

a'w <= 0 and (-a + t b)'w <= -1 hold together where t b'w <= -1; with right-hand sides 0 and 1, b'w
is at most 1/t. With t = 0 there is no point in the first case, and no largest b'w in the second.
A point farther away than R = 1e6 is none, by convention.
"""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.objectives import L1, MaxAffine, Quadratic, SquaredDistance
from ccmac.objectives.function import Function

ALONG = np.array([2.0, -2.0, -3.0, -1.0])
ACROSS = np.array([-1.0, 2.0, 0.0, -3.0])
TURNS = [2.0**-k for k in (14, 24, 36)]
PLACES = ["coupled", "local", "shared"]


def problem(cost: str, where: str, turn: float, right: list[float], g: Array) -> ccmac.Problem:
    """Two agents; the rows are coupled ones, one agent's, or of z."""
    rows = np.vstack([ALONG, turn * ACROSS - ALONG])
    side = np.array(right)

    def f(at: slice) -> ccmac.objectives.Objective:
        linear = Quadratic(np.zeros(len(g[at])), g[at])
        return {"flat": linear, "kinks": linear + L1(2.0**-10), "square": SquaredDistance()}[cost]

    one = slice(0, 2)
    two = slice(2, 4)
    whole = slice(0, 4)
    if where == "coupled":
        agents = [ccmac.Agent(f(one), A=rows[:, one], b=side), ccmac.Agent(f(two), A=rows[:, two])]
        return ccmac.Problem(agents, q=0, sense="<=")
    if where == "local":
        first = ccmac.Agent(f(whole), C=rows, c=side, C_sense="<=")
        return ccmac.Problem([first, ccmac.Agent(SquaredDistance(), A=[[1.0]], b=[1.0])], q=0)
    agents = [
        ccmac.Agent(f(whole), D=rows[k : k + 1], e=side[k : k + 1], D_sense="<=") for k in (0, 1)
    ]
    return ccmac.Problem(agents, q=4)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("cost", ["flat", "kinks", "square"])
def test_points_that_are_far_away_exist(cost: str, where: str) -> None:
    for turn in TURNS:
        result = ccmac.solve(
            problem(cost, where, turn, [0.0, -1.0], np.zeros(4)), method="cross-ipm"
        )
        allowed = {"optimal"} if turn > 1e-6 else {"optimal", "infeasible", "stalled"}
        assert result.status in allowed, turn
    for right in (-1.0, -1e-4):
        result = ccmac.solve(
            problem(cost, where, 0.0, [0.0, right], np.zeros(4)), method="cross-ipm"
        )
        assert result.status == "infeasible"
        assert result.infeasibility.radius > 1e6


@pytest.mark.parametrize("shared", [-0.5, -2.0])
@pytest.mark.parametrize("cost", [L1(1.0), MaxAffine(np.eye(4)) + L1(1.0)])
def test_an_inequality_that_is_far_from_active(cost: Function, shared: float) -> None:
    """Its slack is large where all points are small; a row 0 = 0 has no price that counts."""
    rows = [[0.0, 0.0], [2.0**-20, 2.0**-20]]
    f = Quadratic(np.eye(4), np.zeros(4))
    one = ccmac.Agent(cost, C=np.zeros((1, 2)), c=[0.0])
    two = ccmac.Agent(
        f, C=rows, c=[0.0, -2.5], C_sense=">=", D=[[1.0, -2.0]], e=[shared], D_sense=">="
    )
    result = ccmac.solve(ccmac.Problem([one, two], q=2), method="cross-ipm")
    assert result.status in ("optimal", "stalled")
