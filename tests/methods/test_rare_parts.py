"""What is smooth and what has a prox; refusals; a fall that is seen at once."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac import Agent, Problem
from ccmac.errors import InputError, MethodRefused
from ccmac.objectives import L1, Limited, Logistic, MaxAffine, Quadratic, SquaredDistance
from ccmac.objectives.base import Objective
from ccmac.realizations.parts import split

M = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0], [0.0, 1.0, -2.0]])
LABELS = np.array([1.0, -1.0, 1.0])
BOX = np.full(3, -1.0), np.full(3, 2.0)


# -- what is smooth and what has a prox ------------------------------------------------------------
@pytest.mark.parametrize(
    ("inner", "smooth"),
    [
        (Logistic(M, LABELS, 0.5), True),
        (Logistic(M, LABELS) + L1(0.3), True),
        (SquaredDistance(0.7), False),
    ],
)
def test_a_function_under_bounds_is_a_smooth_and_a_simple_part(
    inner: Objective, smooth: bool
) -> None:
    """f = H + G at points within the bounds and beyond, H with slopes and G with a prox."""
    f = Limited(inner, *BOX, 0, 1)
    found = split(f)
    assert found is not None
    H, G = found
    assert "gradient" in H.capabilities
    assert "prox" in G.capabilities
    for seed in range(20):
        w = np.random.default_rng(seed).uniform(-1.3, 2.2, 3)
        x = w[:2]
        z = w[2:]
        assert H.value(x, z) + G.value(x, z) == pytest.approx(f.value(x, z))
        assert math.isfinite(H.value(x, z))
        assert (H.value(x, z) != 0) == smooth


def test_a_kink_without_a_prox_is_no_part() -> None:
    kinked = MaxAffine(M, np.zeros(3))
    assert split(Limited(kinked, *BOX, 0, 1)) is None
    assert split(kinked) is None


# -- refusals and verdicts -------------------------------------------------------------------------
def _pair(f: Any, **more: Any) -> Problem:
    return Problem([Agent(f, A=[[1.0]], B=[[1.0]], b=[1.0], **more) for _ in range(2)])


def test_refusals_name_the_method_and_a_way_out() -> None:
    flat = _pair(Quadratic(np.diag([1.0, 0.0]), np.ones(2)))
    with pytest.raises(MethodRefused, match=r"mixed-yarmoshik.*cross-"):
        ccmac.solve(flat, "complete", "mixed-yarmoshik")
    near = ccmac.solve(_pair(SquaredDistance(1.0)), "complete")
    bad = np.array([math.nan])
    for name, x, z in (("x", [near.x[0], bad], near.z), ("z", near.x, bad)):
        with pytest.raises(InputError, match=f"^reference, {name}"):
            ccmac.solve(_pair(SquaredDistance(1.0)), "complete", reference=Fake(x=x, z=z))
