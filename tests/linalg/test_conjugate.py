"""Conjugate residuals on a dense operator: what is left, what was removed, what was met."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.conjugate import conjugate_residuals

VALUES = np.array([0.0, 0.0, 1.0, 1.0, 3.0, 8.0])
TURN = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
G = TURN * VALUES @ TURN.T
ROWS = np.random.default_rng(1).standard_normal((2, 6))  # a price of v is ROWS v


class Dense:
    """G, and prices that are linear in what was removed; products are counted."""

    def __init__(self) -> None:
        self.products = 0
        self.space: Any = Fake(
            piggyback=lambda *pairs: Fake(value=np.array([float(u @ v) for u, v in pairs]))
        )

    def residual(self, v: Array) -> tuple[Array, Array]:
        self.products += 1
        return G @ v, (ROWS @ v)[None]

    def zero_multiplier(self) -> Array:
        return np.zeros((1, 2))


def reduced(v: Array, done: Any = lambda r, image: False, limit: int = 30, **more: Any) -> Any:
    system: Any = Dense()
    found = conjugate_residuals(system, v, done, limit, **more)
    return found, system


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_what_lies_in_the_range_is_removed_in_as_many_steps_as_values(size: float) -> None:
    v = size * np.arange(1.0, 7.0)
    kernel = TURN[:, :2] @ (TURN[:, :2].T @ v)
    found, system = reduced(v, lambda r, image: image <= 1e-12 * size)
    assert found.steps == 3
    assert system.products == 2 + 3
    assert found.remaining == pytest.approx(kernel, abs=1e-9 * size)
    assert v - G @ found.y == pytest.approx(found.remaining, abs=1e-9 * size)
    assert found.multiplier[0] == pytest.approx(-ROWS @ found.y, abs=1e-9 * size)
    assert found.left == pytest.approx(np.linalg.norm(kernel))
    assert v == pytest.approx(size * np.arange(1.0, 7.0))  # what was given is not used up


def test_slow_falls_beside_a_large_kernel_are_no_stagnation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The norm falls by 1e-13 of itself: what lies in the range is removed all the same.

    G = H diag(values) H' / 8 with signs H is exact in binary, and so is its kernel: on any
    processor the large part adds no rounding to the products.
    """
    H = scipy.linalg.hadamard(8).astype(float)
    values = np.array([0.0, 0.0, 1.0, 1.0, 3.0, 8.0, 3.0, 8.0])
    monkeypatch.setitem(globals(), "G", H * values @ H.T / 8)
    monkeypatch.setitem(globals(), "ROWS", np.eye(2, 8))
    kernel = 2.0**22 * H[:, 0]
    inside = H[:, 2:6] @ np.array([1.0, -1.0, 2.0, 1.0])
    found, _ = reduced(kernel + inside, lambda r, image: image <= 1e-6)
    assert found.steps == 3
    assert found.remaining == pytest.approx(kernel, rel=1e-9, abs=1e-6)
