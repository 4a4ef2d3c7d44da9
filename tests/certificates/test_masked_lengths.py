"""Lengths of what is summed in fixed point are never smaller than they are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space, lengths


@pytest.mark.parametrize("small", [1e-20, 2.0**-70, 3e-9, 0.0])
def test_a_length_beside_large_ones_counts_the_grain(small: float) -> None:
    runtime = InProcess(Network.path(3), averaging="masked")
    space = Space(runtime, [1, 1, 1], 0)
    large = np.array([2.0**45, 1.0, 0.0])
    u = np.array([small, 2 * small, 0.0])
    for riders in (space.ride((large, large), (u, u)), space.ride((u, u), (u, u))):
        found = lengths(riders)[1]
        exact = sum(Fraction(v) ** 2 for v in u.tolist())
        assert Fraction(found) ** 2 >= exact * (1 - Fraction(1, 2**49))
        assert riders.grain > 0 or not small
        assert found <= math.sqrt(5) * small * (1 + 1e-15) + math.sqrt(2 * riders.grain)
    assert runtime.averaging.grain >= riders.grain


def test_plain_sums_have_no_grain() -> None:
    space = Space(InProcess(Network.path(3)), [1, 1, 1], 0)
    rider = space.ride((np.ones(3), np.ones(3)))
    assert (lengths(rider), rider.grain) == ([math.sqrt(3)], 0.0)
