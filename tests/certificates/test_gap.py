"""The gap at a point with any dual vector, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from ccmac.certificates.gap import GapCertifier, Goal
from ccmac.methods import CrossContinuation
from ccmac.methods.base import Request
from ccmac.methods.run import starting_point
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from certificates.test_realized import Case, L, case


def test_the_gap_of_any_point_and_dual_vector() -> None:
    """F(w) - F* <= <r, w - w0> + |p| dist + R |r|, r = g + p."""
    agent = ccmac.Agent(Quadratic(np.eye(3), np.zeros(3)), A=[[1.0, 2.0]], B=[[1.0]], b=[1.0])
    work = Workspace(ccmac.Problem([agent]), InProcess(ccmac.Network.complete(1)))
    realized = CrossContinuation().realize(work, Request(1e-6, *starting_point(work, None)))
    w0 = np.array([0.5, 0.0, 0.0])
    w = np.array([1.5, 2.0, -1.0])
    gradient = np.array([1.0, -2.0, 0.5])
    p = np.array([2.0, 3.0, 6.0])
    found = GapCertifier(realized, w0).gap(w, gradient, p, distance=2.0, slack=0.25)
    r = gradient + p
    assert found.value == pytest.approx(realized.objective.values(w)[0, 0])
    assert found.base == pytest.approx(0.25 + r @ (w - w0) + 7.0 * 2.0)
    assert found.slope == pytest.approx(math.hypot(r[0], r[1], r[2] / realized.s))
    assert found.distance == pytest.approx(2.0)
    assert found.travelled == pytest.approx(math.hypot(1.0, 2.0, realized.s))
    # A violation costs L of a smooth F, the length of a subgradient elsewhere, one where F is flat.
    assert (found.smooth, found.steepness) == (True, realized.objective.L)
    for curvature, slope, steep in (
        (math.inf, gradient, math.sqrt(5.25)),
        (0.0, 0 * gradient, 1.0),
    ):
        realized.objective.L = curvature
        other = GapCertifier(realized, w0).gap(w, slope, p, distance=2.0)
        assert other.smooth == math.isfinite(curvature)
        assert other.steepness == pytest.approx(steep)


def value(c: Case, w: np.ndarray) -> float:
    return float(w @ c.H @ w / 2 - c.g @ w)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("radius", [None, 40.0])
def test_tight_gaps_hold_and_are_as_tight_as_the_goal(smooth: bool, radius: float | None) -> None:
    """At a repaired point, with what multipliers cancel taken away: a hundredth of the goal."""
    for seed in range(3):
        c = case(seed)
        found = GapCertifier(c.realized, np.zeros(10))
        goal = Goal(1e-3, None, radius)
        w = c.solution + 0.1 * np.random.default_rng(seed).standard_normal(10)
        gradient = c.H @ w - c.g
        if smooth:
            said = found.tight_smooth(w, goal)
        else:
            said = found.tight_subgradient(w, gradient, goal)
        assert c.K @ said.w == pytest.approx(c.v, abs=1e-2)
        assert said.gradient == pytest.approx(c.H @ (said.w if smooth else w) - c.g)
        away = float(np.linalg.norm(found.way(w)))
        asked = radius if radius is not None else max(1.0, 2 * away)
        epsilon = 1e-3 * max(1.0, abs(value(c, w)))
        reach = L * asked * said.scale
        steep = max(float(np.linalg.norm(gradient)), reach)
        assert said.distance <= 1e-2 * epsilon / steep * (1 + 1e-9)
        left = said.gradient + said.p
        inside = np.linalg.pinv(c.K) @ (c.K @ left)
        assert np.linalg.norm(inside) <= 1e-2 * epsilon / asked * (1 + 1e-9)
        assert value(c, said.w) - value(c, c.solution) <= said.bound(
            float(np.linalg.norm(found.way(c.solution)))
        ) * (1 + 1e-9)
        assert said.multiplier is not None
