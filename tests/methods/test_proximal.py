"""What proximal steps claim of F: subgradients with their slack, and the balance of the steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.methods import CrossSliding
from ccmac.methods.base import Request
from ccmac.methods.run import starting_point
from ccmac.methods.sliding import ProximalPrimalDual
from ccmac.objectives import L1, Logistic, Separable, SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


def begun(kind: str) -> tuple[ProximalPrimalDual, Any, Workspace]:
    """Two agents, x in three and z in two dimensions, one coupled row."""
    random = np.random.default_rng(0)
    agents = []
    for _ in range(2):
        loss = Logistic(random.standard_normal((8, 3)), np.sign(random.standard_normal(8)))
        on_x = L1(0.3) + SquaredDistance(0.5, [1.0, -1.0, 2.0]) if kind == "simple" else loss
        on_x = loss + L1(0.05) if kind == "both" else on_x
        row = {"A": random.standard_normal((1, 3)), "B": random.standard_normal((1, 2))}
        agents.append(ccmac.Agent(Separable(on_x, L1(0.1)), b=[1.0], **row))
    work = Workspace(ccmac.Problem(agents), InProcess(ccmac.Network.complete(2)))
    with work.ledger.phase("setup"):
        x, z = starting_point(work, None)
        found = CrossSliding().prepare(work, Request(1e-6, x, z))
    iteration = found.iteration
    assert isinstance(iteration, ProximalPrimalDual)
    return iteration, iteration.start(x, z), work


@pytest.mark.parametrize("kind", ["simple", "smooth", "both"])
@pytest.mark.parametrize("anchored", [True, False])
def test_slopes_are_subgradients_up_to_their_slack(kind: str, anchored: bool) -> None:
    """F(u) >= F(w) + <slope, u - w> - slack for every u."""
    iteration, state, _ = begun(kind)
    iteration.anchored = anchored
    assert (iteration.parts.smooth is None) == (kind == "simple")
    objective = iteration.realized.objective
    random = np.random.default_rng(1)
    assert abs(math.log(iteration.weight)) > 0.1  # a weight of one would hide its place

    def F(u: Any) -> float:
        return float(objective.values(u).sum())

    for _ in range(12):
        state = iteration.step(state)
        w = state.w.copy()
        assert state.slack >= 0
        for size in (1e-3, 1.0, 10.0):
            u = w + size * random.standard_normal(w.shape)
            bound = F(w) + float(state.slope @ (u - w)) - state.slack
            assert F(u) >= bound - 1e-12 * (1 + abs(F(u)))
