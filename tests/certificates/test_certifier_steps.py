"""What a certifier asks of conjugate residuals, and what it makes of the answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import certifier as module
from ccmac.certificates.certifier import CONFIRMING, DOUBT, FAR, ROUNDS_OF_REPAIR, SHARE, Certifier
from ccmac.certificates.error_bound import Bound, Dual, Look, distance_bound
from ccmac.inputs import Array
from ccmac.linalg.chebyshev import smallest_degree
from ccmac.linalg.conjugate import Remainder
from ccmac.realizations.base import Interval
from certificates.test_certifier import MU, Case, L, case

PRICE = np.array([[0.5, -3.0]])
LOW = 0.5
HIGH = 2.0
SCALE = 3.0 / math.sqrt(2)


class Made:
    """A dense case whose residuals and reductions are made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, residuals: tuple[float, ...] = ()) -> None:
        self.case: Case = case(0)
        self.residuals, self.asked = list(residuals), list[Any]()
        self.answers: list[Remainder] = []
        self.case.system.interval = Interval(LOW, HIGH)
        self.case.system.residual = self._residual  # type: ignore[method-assign]
        self.certifier = Certifier(self.case.realized)
        monkeypatch.setattr(module, "conjugate_residuals", self._reduce)

    def _residual(self, w: Array) -> tuple[Array, Array]:
        return self.residuals.pop(0) * np.eye(10)[3], PRICE

    def _reduce(
        self, system: Any, v: Array, done: Any, limit: int, *, trusted: float = 0.0
    ) -> Remainder:
        self.asked.append((v, done, limit, trusted))
        assert not system.v.any()  # homogeneous
        return self.answers.pop(0)

    def answer(
        self, left: float = 0.0, lowest: float = 1.0, highest: float = 1.0, step: float = 0.0
    ) -> None:
        y = step * np.eye(10)[7]
        remaining = left * np.eye(10)[5]
        self.answers.append(Remainder(remaining, y, PRICE, 1, left, lowest, highest))


def seen(dual: Dual | None, size: float = 7.0) -> Look:
    """A look at (0, ..., 9) / 10 with a residual of 0.25."""
    w = np.arange(10.0) / 10
    gradient = np.full(10, 0.125)
    bound = Bound(1.0, 1.0, 1.0, w, gradient)
    residual = 0.25 * np.eye(10)[2]
    return Look(w, dual, size, bound if dual else None, residual, 0.25, 4.0, (1.0, 1.0))


@pytest.mark.parametrize("empty", [False, True])
def test_the_error_counts_rounding_and_what_sums_may_lack(
    empty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch)
    made.case.system.empty = empty
    monkeypatch.setattr(module, "EPS", 2.0**-20)
    made.case.realized.space.runtime.unseen = lambda size: 0.0625  # type: ignore[method-assign]
    many = 2 + 8
    eps = 2.0**-20
    r = 0.7 * (1 + many * eps) + 2.0 + 2 * 0.25  # two sums may lack 0.25 each
    delta = 0.3
    if not empty:
        delta = 0.3 * (1 + many * eps) + many * eps * HIGH * 5.0 / LOW + 0.25 / LOW
    mu = MU - 2 * many * eps * L
    expected = distance_bound(r, delta, mu, L) * SCALE * (1 + 16 * eps) + 4 * eps * 7.0 + 0.25
    found = made.certifier._error(0.7, 0.3, 7.0, 5.0, np.array([4.0]))
    assert found == pytest.approx((expected, r, delta), rel=1e-12)
    made.case.realized.objective.mu = 2 * many * eps * L
    assert made.certifier._error(0.7, 0.3, 7.0, 5.0, np.array([4.0]))[0] == math.inf


def test_a_tight_bound_of_a_repaired_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wanted of the repair, what is reduced, and when that may end."""
    goal = 0.375
    repaired = np.arange(10.0)[::-1] / 7
    p = np.linspace(-1.0, 1.0, 10)
    for dual in (None, Dual(None, 2 * PRICE), Dual(p, 2 * PRICE)):
        made = Made(monkeypatch)
        wanted: list[Any] = []

        def repair(self: Any, w: Array, goal: float, look: Look, to: Any = wanted) -> Any:
            to.extend((w, goal, look))
            return repaired, lambda: 0.0625

        monkeypatch.setattr(Certifier, "_repair", repair)
        look = seen(dual)
        made.answer(left=0.3)
        bound = made.certifier.tight(look, goal)
        assert (wanted[0] is look.w, wanted[2] is look) == (True, True)
        assert wanted[1] == pytest.approx(SHARE * goal / SCALE * math.sqrt(MU / L))
        gradient = made.case.H @ repaired - made.case.g
        more = 0.0 if dual is None else -0.125 if dual.p is None else p
        [(v, done, limit, trusted)] = made.asked
        assert v == pytest.approx(gradient + more)
        assert (limit, trusted) == (smallest_degree(LOW, HIGH, 1e-12), 0.0)
        enough = (1 - 2 * SHARE) * MU * goal / SCALE
        assert [done(t * enough, math.inf) for t in (0.999, 1.001)] == [True, False]
        assert [done(1.0, t * 0.3 * LOW) for t in (0.999, 1.001)] == [True, False]
        assert [done(2.0, t * 0.3 * LOW) for t in (1.999, 2.001)] == [True, False]
        length = float(np.linalg.norm(repaired))
        off = np.zeros(1)
        found = made.certifier._error(0.3, 0.0625, 7.0, length, off)
        assert (bound.error, bound.stationarity, bound.infeasibility) == pytest.approx(found)
        assert bound.w is repaired
        assert bound.gradient == pytest.approx(gradient)
        assert bound.price == pytest.approx(PRICE if dual is None else 3 * PRICE)


def test_without_equations_nothing_is_repaired_or_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    made.case.system.empty = True
    w = np.arange(10.0)
    look = Look(w, None, 1.0, None, None, 0.0, 1.0, (1.0, 1.0))
    bound = made.certifier.tight(look, 1.0)
    assert (bound.w is w, bound.infeasibility, made.asked) == (True, 0.0, [])
    assert bound.stationarity == pytest.approx(np.linalg.norm(made.case.H @ w - made.case.g))


def test_a_look_is_confirmed_by_a_few_steps_far_from_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(monkeypatch)
    look = seen(None)
    made.answer()
    made.answer(lowest=0.9 * DOUBT * LOW)
    monkeypatch.setattr(module, "FLOOR", 0.125)
    for confirmed in (True, False):
        assert made.certifier.confirmed(look) is confirmed
        v, done, limit, trusted = made.asked.pop()
        assert (v is look.residual, limit) == (True, CONFIRMING)
        assert trusted == FAR * 0.125 * 8.0
        assert [done(t, 0.0) for t in (0.0, 1e-300)] == [True, False]


def test_a_projection_ends_where_little_of_the_range_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(monkeypatch)
    vector = np.ones(10)
    made.answer(left=0.3)
    remaining, price = made.certifier._project(vector, lambda: 0.25)
    assert (remaining.tolist(), price is PRICE) == ((0.3 * np.eye(10)[5]).tolist(), True)
    [(v, done, limit, trusted)] = made.asked
    assert (v is vector, limit, trusted) == (True, smallest_degree(LOW, HIGH, 1e-12), 0.0)
    assert [done(r, math.inf) for r in (0.25, 0.26)] == [True, False]
    assert [done(1.0, image) for image in (0.25 * LOW, 0.26 * LOW)] == [True, False]


def test_a_stored_state_is_projected_to_half_of_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(monkeypatch)
    allowed = 0.1 * 0.5 * MU / SCALE
    for left, good in ((0.999 * allowed, True), (1.001 * allowed, False)):
        made.answer(left=left)
        assert made.certifier.verified(np.zeros(10), Dual(np.eye(10)[0], PRICE), 0.5) is good
        done = made.asked.pop()[1]
        assert [done(t * allowed, math.inf) for t in (0.499, 0.501)] == [True, False]


# -- repairs ---------------------------------------------------------------------------------------
FLOOR = 2.0**-20


def repairing(monkeypatch: pytest.MonkeyPatch, *residuals: float) -> Made:
    """From a point of length 3 whose residual is the first; FLOOR (1 + 3) LOW = 2^-19."""
    monkeypatch.setattr(module, "FLOOR", FLOOR)
    return Made(monkeypatch, residuals)


START = 3.0 * np.eye(10)[0]


def test_what_is_near_enough_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, before in ((0.5, 0.25), (0.0, 2.0**-19)):  # just so
        made = repairing(monkeypatch, before)
        w, distance = made.certifier._repair(START, wanted)
        assert (w is START, made.asked) == (True, [])
        assert distance() == before / LOW


def test_a_repair_far_from_rounding_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step; the distance is that of the new residual, by the interval as mended."""
    made = repairing(monkeypatch, 1.0, 0.1)
    goal = 0.5 * LOW
    made.answer(left=goal, lowest=0.4 * LOW, step=0.75)
    w, distance = made.certifier._repair(START, lambda: 0.5)
    [(v, done, limit, trusted)] = made.asked
    assert v.tolist() == np.eye(10)[3].tolist()
    assert [done(t * goal, 0.0) for t in (0.799, 0.801)] == [True, False]
    assert (limit, trusted) == (smallest_degree(LOW, HIGH, 1e-12), FAR * FLOOR * 4.0)
    assert w.tolist() == (START - 0.75 * np.eye(10)[7]).tolist()
    assert made.case.system.interval.low == pytest.approx(0.2 * LOW)
    assert distance() == pytest.approx(0.1 / (0.2 * LOW))
    # As far as rounding is far; what the recursion did not reach is looked at again.
    edge = FAR * FLOOR * 4.0
    for wanted, left, rounds in (
        (edge, edge * LOW, 1),
        (0.999 * edge, 0.999 * edge * LOW, 2),
        (edge, 1.01 * edge * LOW, 2),
    ):
        made = repairing(monkeypatch, 1.0, 0.4, 1e-9)
        made.answer(left=left)
        made.answer(left=left)
        made.certifier._repair(START, wanted)
        assert len(made.asked) == rounds


def test_repairs_go_on_while_they_halve_the_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    made = repairing(monkeypatch, 1.0, 0.4, 0.16, 0.1)  # 0.1 is more than half of 0.16
    for step in (1.0, 2.0, 4.0):
        made.answer(left=1.0, step=step)
    w, distance = made.certifier._repair(START, 0.0)
    assert [float(v[3]) for v, *_ in made.asked] == [1.0, 0.4, 0.16]
    assert w.tolist() == (START - 7.0 * np.eye(10)[7]).tolist()
    assert distance() == 0.1 / LOW
    # Half is enough to go on; so is an interval that was mended.
    made = repairing(monkeypatch, 1.0, 0.5, 0.45, 0.44)
    made.answer(left=1.0)
    made.answer(left=1.0, lowest=0.9 * DOUBT * LOW)
    made.answer(left=1.0)
    _, distance = made.certifier._repair(START, 0.0)
    assert len(made.asked) == 3
    assert distance() == pytest.approx(0.44 / (0.45 * DOUBT * LOW))
    assert len(made.certifier.notes) == 1
    # Not for ever.
    made = repairing(monkeypatch, *(0.4**k for k in range(9)))
    for _ in range(9):
        made.answer(left=1.0)
    _, distance = made.certifier._repair(START, 0.0)
    assert len(made.asked) == ROUNDS_OF_REPAIR == 5
    assert distance() == pytest.approx(0.4**5 / LOW)


def test_a_repair_begins_with_what_a_look_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its residual of 0.25 and length of 4: no residual is computed before the first step."""
    made = repairing(monkeypatch, 0.01)
    look = seen(None)
    made.answer(left=0.01)
    _, distance = made.certifier._repair(look.w, 0.25, look)
    [(v, _, _, trusted)] = made.asked
    assert (v is look.residual, trusted) == (True, FAR * FLOOR * 5.0)
    assert distance() == pytest.approx(0.01 / LOW)
    made = repairing(monkeypatch)
    _, distance = made.certifier._repair(look.w, 0.5, look)
    assert (made.asked, distance()) == ([], 0.5)


@pytest.mark.parametrize(
    ("lowest", "highest", "low", "high"),
    [
        (DOUBT * LOW, HIGH / DOUBT, LOW, HIGH),
        (0.4, 1.0, 0.2, HIGH),
        (1.0, 3.0, LOW, 3.3),
        (0.1, 4.0, 0.05, 4.4),
    ],
)
def test_quotients_outside_the_interval_widen_it(
    lowest: float, highest: float, low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch)
    made.answer(lowest=lowest, highest=highest * (1 - 1e-15))
    made.certifier._doubt(made.answers[0])
    found = made.case.system.interval
    assert (found.low, found.high) == pytest.approx((low, high))
    assert len(made.certifier.notes) == (low < LOW) + (high > HIGH)
    if low < LOW:
        assert f"eigenvalue {lowest:.3g} or less" in made.certifier.notes[0]
        assert f"lower end was put to {low:.3g}" in made.certifier.notes[0]
    if high > HIGH:
        assert f"eigenvalue {highest:.3g} or more" in made.certifier.notes[-1]
        assert f"upper end was put to {high:.3g}" in made.certifier.notes[-1]
