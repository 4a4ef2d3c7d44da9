"""Warm starts of interior points: doubtful bounds, decided together."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.inputs import Array
from ccmac.methods.interior import guided
from ccmac.methods.interior.boxed import _step, boxed
from ccmac.methods.interior.doubted import LOWER, UPPER, Open, Slots, decided, doubtful
from ccmac.methods.interior.sides import Newton, Sides, longest
from ccmac.methods.interior.state import InteriorState

INF = math.inf


def bounds() -> Sides:
    """w_0 >= 1, 2 <= w_1 <= 8, w_2 <= 4, w_3 free."""
    return Sides(np.array([1.0, 2.0, -INF, -INF]), np.array([INF, 8.0, 4.0, INF]))


# -- the small problem -----------------------------------------------------------------------------
@pytest.mark.parametrize("theta", [0.25, 1.0])
@pytest.mark.parametrize("rank", [2, 6, 12])
def test_entries_within_bounds_and_their_prices(rank: int, theta: float) -> None:
    """min y'Hy/2 - g'y with H of any rank has y = T (g + p + theta y), T = (H + theta)^{-1}."""
    random = np.random.default_rng(rank)
    size = 12
    R = random.standard_normal((rank, size))
    g = random.standard_normal(size)
    low = -random.random(size)
    high = random.random(size)
    low[::4], high[1::4] = (-INF, INF) if rank == size else (-9.0, 9.0)
    T = np.linalg.inv(R.T @ R + theta * np.eye(size))
    y, p = boxed(T, T @ g, Sides(low, high), theta)
    assert R.T @ (R @ y) - g == pytest.approx(p, abs=1e-9)
    assert (y >= low - 1e-12).all()
    assert (y <= high + 1e-12).all()
    assert np.maximum(p, 0.0) * np.where(np.isinf(low), 1.0, y - low) == pytest.approx(0, abs=1e-12)
    assert np.maximum(-p, 0.0) * np.where(np.isinf(high), 1.0, high - y) == pytest.approx(
        0, abs=1e-12
    )


def test_a_step_within_bounds_is_mehrotras() -> None:
    """A dy - T net(dv) = r, slacks as the bounds say, and s dv + v ds = sigma mu - s v - second."""
    random = np.random.default_rng(7)
    sides = Sides(np.full(3, -1.0), np.array([2.0, 3.0, INF]))
    root = random.standard_normal((3, 3))
    T = root @ root.T / 20
    A = np.eye(3) - 0.5 * T
    y = random.standard_normal(3)
    r = random.standard_normal(3)
    s, v = random.uniform(0.5, 2.0, (2, sides.count))
    mu = float(s @ v) / sides.count

    def dense(products: Array) -> tuple[Array, Array, Array]:
        """With ds = slack(y + dy) - s put into s dv + v ds = products."""
        pick = np.zeros((sides.count, 3))
        pick[np.arange(sides.count), sides.at] = sides.sign
        gap = sides.slack(y, 1.0) - s
        dv = (products - v * gap) / s  # less v / s times the pick of dy
        M = A + T @ pick.T @ (pick * (v / s)[:, None])
        dy = np.linalg.solve(M, r + T @ pick.T @ dv)
        return dy, pick @ dy + gap, dv - v / s * (pick @ dy)

    _, ds, dv = dense(-s * v)
    reach = min(1.0, longest(s, ds), longest(v, dv))
    sigma = (float((s + reach * ds) @ (v + reach * dv)) / sides.count / mu) ** 3
    found = _step(A, T, r, Newton.at(sides, y, s, v, 1.0), mu)
    expected = dense(sigma * mu - s * v - ds * dv)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)


def test_what_is_off_shrinks_by_the_length_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slacks off their bounds, and the equation of y, are linear: both keep a share 1 - alpha."""
    seen: list[tuple[Array, Array]] = []

    def step(A: Array, T: Array, r: Array, newton: Newton, mu: float) -> Any:
        seen.append((newton.rho, r))
        return _step(A, T, r, newton, mu)

    monkeypatch.setattr("ccmac.methods.interior.boxed._step", step)
    T = np.diag([0.2, 0.5, 0.8])
    sides = Sides(np.full(3, -5.0), np.array([0.1, 9.0, INF]))
    boxed(T, np.array([3.0, -4.0, 1.0]), sides, 0.5)
    shares = []
    for (rho, r), (rho_next, r_next) in itertools.pairwise(seen[:5]):
        shares.append(float(r_next @ r / (r @ r)))
        assert r_next == pytest.approx(shares[-1] * r, abs=1e-9)
        assert rho_next == pytest.approx(shares[-1] * rho, abs=1e-9)
    assert 0.0 < shares[0] < 1.0


def test_a_slack_and_a_price_that_vanish_together() -> None:
    """min (y - 1)^2 / 2 with y >= 1: degenerate, and exact all the same."""
    y, p = boxed(np.array([[0.5]]), np.array([0.5]), Sides(np.ones(1), np.full(1, INF)), 1.0)
    assert y == pytest.approx(1.0, abs=1e-11)
    assert p == pytest.approx(0.0, abs=1e-11)


def test_nothing_doubtful_and_nothing_solvable() -> None:
    y, p = boxed(np.zeros((0, 0)), np.zeros(0), Sides(np.zeros(0), np.zeros(0)), 1.0)
    assert len(y) == len(p) == 0
    # y = 3 whatever its price, y <= 1: the best there is, and no endless run.
    y, p = boxed(np.zeros((1, 1)), np.full(1, 3.0), Sides(np.zeros(1), np.ones(1)), 1.0)
    assert np.isfinite(y).all()
    assert np.isfinite(p).all()


# -- which entries ---------------------------------------------------------------------------------
def test_wrong_guesses_come_before_near_ones_and_those_before_stay() -> None:
    found = bounds()  # sides: w_0 >= 1, w_1 >= 2, w_1 <= 8, w_2 <= 4
    none = np.zeros(4, dtype=bool)
    s = np.array([5.0, 1e-4, 6.0, -0.1])
    v = np.array([0.0, 1e-4, 0.0, 0.0])

    def picked(most: int, before: Any = none) -> list[int]:
        return np.flatnonzero(doubtful(found, s, v, 1.0, before, most)).tolist()

    assert picked(4) == [1, 2]
    assert picked(1) == [2]
    assert picked(1, np.array([True, False, False, False])) == [0]
    assert picked(2, np.array([True, False, False, False])) == [0, 2]
    assert picked(0) == []
    # A heavy weight makes the small price of w_1 large.
    assert np.flatnonzero(doubtful(found, s, v, 100.0, none, 4)).tolist() == [2]


def test_a_doubtful_entry_is_on_its_bound_or_has_no_price() -> None:
    found = bounds()
    w = np.array([1.1, 7.0, 3.0, 9.0])
    v = np.array([0.5, 0.25, 0.75, 0.25])
    every = np.array([True, True, True, False])
    after, s, prices = decided(found, w, v, every, 10.0)
    assert after.tolist() == [1.0, 8.0, 4.0, 9.0]
    assert prices.tolist() == [0.5, 0.0, 0.5, 0.25]
    assert s.tolist() == [0.0, 6.0, 0.0, 0.0]
    after, s, prices = decided(found, w, v, every, 0.1)
    assert after.tolist() == w.tolist()
    assert prices.tolist() == [0.0] * 4
    _, _, prices = decided(found, w, v, ~every, 10.0)
    assert prices.tolist() == v.tolist()


# -- what travels ----------------------------------------------------------------------------------
def test_tables_stand_apart_in_one_message() -> None:
    supports = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    slots = np.array([2.0, 1.0])
    layout = Slots(slots, supports)
    first = np.arange(18.0).reshape(2, 9)
    first[0, -1], first[1, -1] = LOWER + UPPER, 0  # the second row is not used
    second = np.array([[1.0, 2.0, 0.5, 4.0, -1.0, 7.0, 0.25, UPPER]])
    rows = [
        layout.row(i, Fake(table=lambda _, found=found: found))
        for i, found in enumerate((first, second))
    ]
    one, two = layout.heard(rows[0] + rows[1])
    assert (one.count, two.count) == (1, 1)
    assert one.on_common.tolist() == [[0.0, 1.0, 0.0]]
    assert one.inner.tolist() == [[2.0]]
    assert [end.tolist() for end in one.bounds] == [[5.0], [6.0]]
    assert two.on_common.tolist() == [[0.0, 1.0, 2.0]]
    assert [end.tolist() for end in two.bounds] == [[-INF], [7.0]]
    assert two.told[0, [0, 3]].tolist() == [4.0, 0.25]
    below = Open(np.array([[1.0, 0.0, -3.0, 7.0, 0.0, LOWER]]), np.array([False]))
    assert [end.tolist() for end in below.bounds] == [[-3.0], [INF]]


def test_when_a_warm_start_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guided.guided(Fake(), Fake(warm=guided.STEPS + 1)) is None  # type: ignore[arg-type]
    joint = Fake(far=INF)
    monkeypatch.setattr(guided, "Joint", Fake(of=lambda *_: joint))
    agents: Any = Fake(
        equations=Fake(lam=lambda mu: mu),
        common=lambda state: Fake(mu=0.0),
        blocks=[],
        points=lambda state: [],
        doubt=lambda state: [],
        setup=Fake(supports=np.zeros((0, 1))),
        runtime=Fake(ride=lambda rows, whole: None),
    )
    none = np.zeros((1, 0))
    state = InteriorState(none, none, none, none, warm=guided.STEPS, count=3)
    assert guided.guided(agents, state) is None
    joint.far = guided.SETTLED
    found = guided.guided(agents, state)
    assert found is not None
    assert (found.gap, found.count, found.warm) == (guided.SETTLED, 4, guided.STEPS + 1)
