"""Parts of methods in closed form: a tuner's predictions, least eigenvalues, pooled losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmac import Agent, Network, Problem, solve
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.methods import local
from ccmac.objectives import Quadratic, Separable, SquaredDistance
from ccmac.paper.comparators import pooling
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


# -- the two channels of the dual ------------------------------------------------------------------
def test_channels_of_diagonal_blocks_are_measured_exactly() -> None:
    """A_i, T_i diagonal: signs drop out, so that random probes give the traces."""
    f = [Quadratic(np.diag([h, h, k, k]), np.zeros(4)) for h, k in ((2.0, 4.0), (5.0, 8.0))]
    A = [np.diag([3.0, 1.0]), np.diag([2.0, 2.0])]
    agents = [Agent(g, A=a, b=[0.0, 0.0]) for g, a in zip(f, A, strict=True)]
    work = Workspace(Problem(agents, q=2), InProcess(Network.complete(2)))
    asked = []

    def energies(h: Array) -> Array:
        asked.append(h)
        return np.array(
            [
                float(x @ x) / g.H[0, 0] + float(z @ z) / g.H[2, 2]
                for g, (x, z) in zip(f, work.space.split(h), strict=True)
            ]
        )

    coupled, shared = local.channel_curvatures(work, energies, 3)
    assert coupled == pytest.approx(((9 + 1) / 2 + (4 + 4) / 5) / 2)
    assert shared == pytest.approx((2 / 4 + 2 / 8) / (2 * 2))
    assert len(asked) == local.PROBES + 1
    work.recycles = True
    for _ in range(2):
        local.channel_curvatures(work, energies, 3)
    assert len(asked) == 2 * (local.PROBES + 1)
    assert local.channel_curvatures(work, lambda h: np.zeros(2), 4) == (1.0, 1.0)


# -- pooled losses ---------------------------------------------------------------------------------
def pooled(parts: list[Any], name: str = "R2", q: int = 2) -> tuple[int, SquaredDistance]:
    joint = Quadratic(np.eye(3), np.zeros(3))
    fs = [joint if p == "joint" else Separable(SquaredDistance(1.0), p) for p in parts]
    agents = [Agent(f, A=np.ones((1, 1)), b=[0.0]) for f in fs]
    work = Workspace(Problem(agents, q=q), InProcess(Network.complete(len(parts))))
    return pooling.pooled_loss(work, name)


def test_squared_distances_are_pooled() -> None:
    """2/2 |z - (1, 0)|^2 + 6/2 |z - (0, 2)|^2 = 8/2 |z - (1/4, 3/2)|^2 + constant."""
    holder, found = pooled(
        [None, SquaredDistance(2.0, [1.0, 0.0]), SquaredDistance(6.0, [0.0, 2.0])]
    )
    assert holder == 1
    weight, linear = found.isotropic()
    assert weight == pytest.approx(8.0)
    assert linear == pytest.approx([2.0, 12.0])
    for nothing in ([None, None], [SquaredDistance(0.0), None]):
        holder, found = pooled(nothing)
        assert (holder, found.isotropic()[0]) == (0, 0.0)


def test_a_reduction_without_curvature_in_z_is_refused() -> None:
    """Agent 1 has none: mu_f is zero exactly, however much agent 0 has."""
    parts = (SquaredDistance(2.0), None)
    agents = [Agent(Separable(SquaredDistance(1.0), p), A=[[1.0]], b=[0.0]) for p in parts]
    with pytest.raises(MethodRefused, match="strongly convex under reduction R1"):
        solve(Problem(agents, q=1), "complete", method="coupled-yarmoshik")
