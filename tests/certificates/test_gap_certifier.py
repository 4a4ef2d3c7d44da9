"""The gap at a point with any dual vector, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from ccmac.certificates.gap import strong_distance
from ccmac.certificates.gap_certifier import GapCertifier
from ccmac.methods import CrossContinuation
from ccmac.methods.base import Request
from ccmac.methods.start import starting_point
from ccmac.objectives import Quadratic
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


def test_the_gap_of_any_point_and_dual_vector() -> None:
    """F(w) - F* <= <r, w - w0> + |p| dist + R |r|, r = g + p."""
    agent = ccmac.Agent(Quadratic(np.eye(3), np.zeros(3)), A=[[1.0, 2.0]], B=[[1.0]], b=[1.0])
    work = Workspace(ccmac.Problem([agent]), InProcess(ccmac.Network.complete(1)))
    realized = CrossContinuation().realize(work, Request(1e-6, *starting_point(work, None)))
    w0, w = np.array([0.5, 0.0, 0.0]), np.array([1.5, 2.0, -1.0])
    gradient, p = np.array([1.0, -2.0, 0.5]), np.array([2.0, 3.0, 6.0])
    found = GapCertifier(realized, w0).gap(
        w, gradient, p, value=5.0, distance=lambda: 2.0, slack=lambda: 0.25
    )
    r = gradient + p
    assert found.value == 5.0
    assert found.base == pytest.approx(0.25 + r @ (w - w0) + 7.0 * 2.0)
    assert found.slope == pytest.approx(math.hypot(r[0], r[1], r[2] / realized.s))
    assert found.distance == 2.0
    assert found.travelled == pytest.approx(math.hypot(1.0, 2.0, realized.s))


@pytest.mark.parametrize(
    ("r", "moved", "rest"), [(1.0, 2.0, 3.0), (0.0, 0.5, 0.0), (4.0, 0.0, 2.0)]
)
def test_the_distance_solves_its_equation(r: float, moved: float, rest: float) -> None:
    D = strong_distance(r, moved, rest)
    assert pytest.approx((r + moved) * D + r * moved + rest) == D**2
    assert (r + moved) / 2 <= D
