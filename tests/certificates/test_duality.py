"""Gaps and contradictions of bounded problems: their formulas and their words."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import ccmac
from ccmac.certificates.farkas import crossing
from ccmac.certificates.gap import DualityGap, Goal
from ccmac.objectives import Quadratic

NAMED = {
    "coupled": "the coupled equation",
    "C": "the local equations C of agents 1 ",
    "bounds": "the bounds of agents 0 ",
    "shared": "the shared equations D",
    "z": "the bounds on z",
}


def test_bounds_on_z_that_cross() -> None:
    """Agent 0 wants z_1 >= 5, agent 1 z_1 <= 3; z_0 is free enough."""
    bounds = np.array([[0.0, 5.0, 1.0, 9.0], [0.0, 0.0, 1.0, 3.0]])
    found = crossing(bounds, 4)
    assert found is not None
    assert (found.value, found.z_bounds.tolist(), len(found.coupled)) == (2.0, [0.0, 1.0], 4)
    assert "agent 0 wants entry 1 of z above 5, agent 1 below 3" in found.message
    assert found.radius == math.inf
    bounds[1, 3] = 5.0
    assert crossing(bounds, 4) is None


def test_a_gap_for_a_radius() -> None:
    found = DualityGap(value=-50.0, base=1.0, slope=0.5, violation=0.01, travelled=3.0)
    assert found.bound(4.0) == 3.0
    goal = Goal(0.1, None, 4.0)
    assert (found.required(goal), found.required(Goal(0.1, None, None))) == (4.0, 6.0)
    assert found.ratio(goal) <= 1  # 3 <= 0.1 * 50
    assert found.ratio(Goal(0.01, 3.0, 4.0)) <= 1  # both just so
    assert DualityGap(0.0, 0.0, 0.0, 0.0, 0.0).ratio(Goal(1e-9, 0.0, 1.0)) <= 1  # exact
    # Far below zero, or by what is violated: F may lie below F* by more than the accuracy.
    for base, below, good in (
        (-6.9, 0.0, True),
        (-7.1, 0.0, False),
        (1.0, 4.9, True),
        (1.0, 5.1, False),
    ):
        assert (replace(found, base=base, below=below).ratio(goal) <= 1) is good
    assert found.ratio(Goal(0.1, 2.9, 4.0)) > 1
    assert found.ratio(Goal(0.009, 3.0, 4.0)) > 1  # the violation
    record = found.record(goal)
    assert record["radius_proved"] == pytest.approx((5.0 - 1.0) / 0.5)
    assert (record["gap"], record["epsilon"], record["proved_by"]) == (3.0, 5.0, "bound")
    assert record["radius_source"] == "supplied"
    assert (record["radius"], record["feasibility"], record["value"]) == (4.0, 0.01, -50.0)
    assert "estimated" in found.record(Goal(0.1))["radius_source"]
    for below, said in ((0.0, 0.0), (0.5, 0.5), (math.inf, None)):
        assert replace(found, below=below).record(goal)["below"] == said
    assert replace(found, slope=0.0).record(goal)["radius_proved"] == math.inf
    assert found.record(Goal(0.1, 0.5, 4.0))["proved_by"] == "nothing"
    assert found.record(Goal(0.1, 0.5, 4.0))["radius_proved"] == 0.0


def test_what_lies_below_counts_rounding() -> None:
    """F = -(3 z_0 + 7 z_1) on 3 z_0 + 7 z_1 = e: F* - F is the misfit, exactly."""
    for method, k in product(("auto", "cross-ipm"), range(8)):
        e = 1e6 + k / 8
        cost = Quadratic([0.0, 0.0], [3.0, 7.0])
        only = ccmac.Agent(cost, D=[[3.0, 7.0]], e=[e])
        result = ccmac.solve(ccmac.Problem([only], q=2), method=method)
        one, two = (Fraction(float(v)) for v in result.z)
        assert result.status == "optimal"
        assert 3 * one + 7 * two - Fraction(e) <= Fraction(result.certificates["below"])
