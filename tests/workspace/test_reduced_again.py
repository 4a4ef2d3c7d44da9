"""The same equations with other right-hand sides, against equations that are gathered anew."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac import Agent, Network, Problem
from ccmac.objectives import SquaredDistance
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace


def posed(seed: int, sides: int) -> Problem:
    """The blocks depend on ``seed`` alone; the last agent has neither b nor rows of its own."""
    blocks = np.random.default_rng(seed)
    right = np.random.default_rng([seed, sides])
    agents = []
    for k in range(3):
        given = {"A": blocks.standard_normal((2, 3)), "B": blocks.standard_normal((2, 2))}
        if k < 2:
            given |= {"b": right.standard_normal(2), "c": right.standard_normal(1)}
            given["C"] = blocks.standard_normal((1, 3))
        agents.append(Agent(SquaredDistance(1.0), **given))
    return Problem(agents)


@pytest.mark.parametrize("seed", range(3))
def test_right_hand_sides_are_told_anew(seed: int) -> None:
    network = Network.path(3)
    old, new = (Workspace(posed(seed, k), InProcess(network)) for k in range(2))
    assert old.gather_constraints() is not None
    assert new.gather_constraints() is not None
    before = old.gather_constraints().beta.copy()
    again = old.gather_constraints().again(new.problem, new.local)
    assert again.beta == pytest.approx(new.gather_constraints().beta)
    assert again.right == pytest.approx(new.gather_constraints().right)
    for mine, other in zip(again.kernels, new.gather_constraints().kernels, strict=True):
        assert mine.point == pytest.approx(other.point)
    assert again.U is old.gather_constraints().U
    assert old.gather_constraints().beta.tolist() == before.tolist()
