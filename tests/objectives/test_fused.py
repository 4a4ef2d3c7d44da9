"""The vectorised gradient is the agents' own gradients, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ccmac.objectives import Hinge, Huber, Logistic, Ridge, Separable, SquaredDistance
from ccmac.objectives.separable import fused_gradient

Q = 6
SIZES = [3, 0, 5, 2]


def _y(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(Q)


def _signs(seed: int) -> np.ndarray:
    return np.sign(_y(seed))


def _vfl(weight: float, ridge: float, *, same: bool) -> list[Separable]:
    return [
        Separable(
            SquaredDistance(0.1), Logistic(y=_signs(0 if same else k), weight=weight, ridge=ridge)
        )
        for k in range(4)
    ]


FAMILIES = {
    "squared": [Separable(SquaredDistance(0.1 * k), SquaredDistance(1.0, _y(0))) for k in range(4)],
    "squared with own centres": [
        Separable(SquaredDistance(0.3, np.arange(float(d))), SquaredDistance(1.0 + k, _y(k)))
        for k, d in enumerate(SIZES)
    ],
    "logistic, shared labels": _vfl(0.2, 0.0, same=True),
    "logistic, own labels and ridge": _vfl(0.2, 0.3, same=False),
    "label owner": [
        Separable(Ridge(regularization=0.1), Logistic(y=_signs(0)) if k == 2 else None)
        for k in range(4)
    ],
    "huber, own delta": [
        Separable(None, Huber(y=_y(k) if k % 2 else None, delta=0.2 + k, weight=1 + k))
        for k in range(4)
    ],
    "mixed": [
        Separable(None, Hinge(y=_signs(1), weight=0.5)),
        Separable(SquaredDistance(1.0), Logistic(y=_signs(2), ridge=0.1)),
        Separable(Ridge(None, np.ones(5), 0.5), SquaredDistance(2.0, _y(3))),
        Separable(None, Hinge(y=_signs(4), ridge=0.2)),
    ],
    "absent": [Separable() for _ in range(4)],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_fused_equals_the_loop_bit_for_bit(name: str) -> None:
    members: Sequence[Separable] = FAMILIES[name]
    fused = fused_gradient(members, SIZES, Q)
    assert fused is not None
    rng = np.random.default_rng(9)
    for _ in range(2):  # the second call meets the work arrays of the first
        x = rng.standard_normal(sum(SIZES))
        z = rng.standard_normal((4, Q))
        out_x = np.full_like(x, np.nan)
        out_z = np.full_like(z, np.nan)
        fused(x, z, out_x, out_z)
        ends = np.cumsum([0, *SIZES])
        for k, member in enumerate(members):
            g_x, g_z = member.gradient(x[ends[k] : ends[k + 1]], z[k])
            np.testing.assert_array_equal(out_x[ends[k] : ends[k + 1]], g_x)
            np.testing.assert_array_equal(out_z[k], g_z)
