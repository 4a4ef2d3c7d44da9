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
            ride=lambda *pairs: Fake(value=np.array([float(u @ v) for u, v in pairs]))
        )

    def residual(self, v: Array) -> tuple[Array, Array]:
        self.products += 1
        return G @ v, (ROWS @ v)[None]

    def zero_price(self) -> Array:
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
    assert found.price[0] == pytest.approx(-ROWS @ found.y, abs=1e-9 * size)
    assert found.left == pytest.approx(np.linalg.norm(kernel))
    assert v == pytest.approx(size * np.arange(1.0, 7.0))  # what was given is not used up


def test_quotients_that_were_met_and_the_limit() -> None:
    v = np.arange(1.0, 7.0)
    found, _ = reduced(v, limit=0)
    w = G @ v
    assert (found.steps, found.left) == (0, pytest.approx(np.linalg.norm(v)))
    assert (found.lowest, found.highest) == pytest.approx((v @ w / (v @ v), w @ w / (v @ w)))
    one, _ = reduced(v, limit=1)
    alpha = (v @ w) / (w @ w)
    assert one.steps == 1
    assert one.y == pytest.approx(alpha * v)
    assert one.remaining == pytest.approx(v - alpha * w)
    inside = TURN[:, 2:] @ np.ones(4)
    whole, _ = reduced(inside, trusted=1e-9)
    start = reduced(inside, limit=0)[0]
    assert 1.0 - 1e-9 <= whole.lowest < start.lowest
    assert start.highest <= whole.highest <= 8.0 + 1e-9
    # Quotients of what is small already are not believed.
    none, _ = reduced(inside, trusted=1e3)
    assert (none.lowest, none.highest) == (np.inf, 0.0)


def test_nothing_to_remove() -> None:
    found, _ = reduced(np.zeros(6))
    assert found.steps == 0
    assert not found.y.any()
    early, _ = reduced(np.arange(1.0, 7.0), lambda r, image: True)
    assert early.steps == 0


def test_a_direction_without_curvature_ends_the_run() -> None:
    """||v||^2, <v, w>, ||w||^2 of the steps: alpha = 2 / 1, then 1 - (2/2) 2 / 2 = 0."""
    for scalars, steps in (
        ([[4.0, 2.0, 1.0], [1.0, 2.0, 1.0]], 1),
        ([[4.0, -1.0, 1.0]], 0),
        ([[4.0, 1.0, 0.0]], 0),  # rounding alone does that
        ([[4.0, 2.0, 1.0], [4.1, 1.0, 1.0]], 1),  # and makes the norm grow
    ):
        system = Dense()
        told = iter(scalars)
        system.space = Fake(ride=lambda *pairs, told=told: Fake(value=next(told)))
        asked: Any = system
        found = conjugate_residuals(asked, np.arange(1.0, 7.0), lambda r, image: False, 9)
        assert (found.steps, found.left**2) == (steps, pytest.approx(scalars[-1][0]))


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
