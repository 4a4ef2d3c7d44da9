"""Cases that runs seldom meet, each in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import dual_bound, explicit, inside
from ccmac.certificates.dual_bound import SpacedDualStop
from ccmac.certificates.gap import DualityGap, Gap, Goal
from ccmac.certificates.gap_stopping import as_bound
from ccmac.certificates.stopping import Check
from certificates.test_duality_sums import D_X, Made, N, Q


@pytest.mark.parametrize("least", [0.0, -1.0, math.nan])
def test_equations_that_may_be_dependent_leave_no_curvature(least: float) -> None:
    """What the agents told of sizes and flat directions is kept all the same."""
    facts = np.array([[4.0, 0.0, 0.5, 0, 0, 0, 7.0, 0.25, 3.0], [9.0, 0, 1, 0, 0, 0, 5, 0.5, 2]])
    reduced: Any = Fake(rank=1, least=least)
    said = inside.inside(np.eye(3), 2, facts, reduced, 9.0)
    assert said == inside.Inside(0.0, noise=1.5, size=5.0, kept=5.0, dropped=0.5)


def test_the_bound_of_a_gap_holds_what_the_gap_holds() -> None:
    w, gradient, price = (np.full(2, v) for v in (1.0, 2.0, 3.0))
    found = Gap(w, gradient, -w, 5.0, 0.1, 0.2, 0.3, 0.1, 1.0, True, 1.0, error=0.75, price=price)
    said = as_bound(found)
    assert (said.error, said.stationarity, said.infeasibility) == (0.75, 0.2, 0.3)
    assert said.w is w
    assert said.gradient is gradient
    assert said.price is price


@pytest.mark.parametrize(("travelled", "radius"), [(0.1, 1.0), (0.5, 1.0), (3.0, 6.0)])
def test_a_radius_that_nobody_gave_is_named_as_an_estimate(travelled: float, radius: float) -> None:
    w = np.zeros(1)
    plain = Gap(w, w, w, 5.0, 0.1, 0.2, 0.3, travelled, 1.0, True, 1.0)
    dual = DualityGap(5.0, 0.1, 0.2, 0.3, travelled)
    for said in (plain.record(Goal(1e-3)), dual.record(Goal(1e-3))):
        assert said["radius"] == radius
        assert said["radius_source"] == "estimated: twice the distance travelled, at least 1"
        assert said["gap"] == pytest.approx(0.1 + 0.2 * radius)
    for said in (plain.record(Goal(1e-3, 1.0, 7.0)), dual.record(Goal(1e-3, 1.0, 7.0))):
        assert (said["radius"], said["radius_source"]) == (7.0, "supplied")
    units = replace(dual, least=0.25).record(Goal(1e-3, 1.0, 7.0))
    assert units["radius"] == 7.0 / 4
    assert units["radius_source"] == (
        "supplied, in units of the unknowns; told is the ball of yours within"
    )


def _stop(found: list[Check], refined: list[Any]) -> explicit.ExplicitStop:
    """Judges as told, one after the other, and notes what is refined."""

    def refine(state: Any, proved: Any) -> Any:
        refined.append(proved)
        return state

    part: Any = Fake(
        norm=3.0, explicit=Fake(beta=-4.0), mu=0.25, runtime=Fake(notes=Fake(led=False))
    )
    stop = explicit.ExplicitStop(part, 0.1, refine)
    stop._judged = lambda x, long=False: found.pop(0)  # type: ignore[method-assign]
    return stop


def test_what_all_agree_on_is_refined() -> None:
    """A check that is passed on to all, and one whose proof the others do not have."""
    passed, refined = list[float](), list[Any]()

    class Heard(Check):
        def agreed(self, runtime: Any) -> Check:
            passed.append(self.bound)
            return self

    proved = explicit.Proved(*[np.zeros(1)] * 2, 8.0, 0.0, 0.0, 1.0, *[np.zeros(1)] * 3)
    iteration: Any = Fake(point=lambda state: (state, None), finished=lambda state: True)
    stop = _stop([Heard(8.0, False, proved), Heard(7.9, False, proved)], refined)
    assert stop.final(iteration, 0).bound == 7.9
    assert passed == [8.0, 7.9]
    assert refined == [proved]
    refined.clear()
    other = Heard(8.0, False, None)  # nothing to refine from
    assert _stop([other], refined).final(iteration, 0) is other
    assert refined == []


def _spaced(planned: float | None, errors: list[float], warm: bool = False) -> SpacedDualStop:
    """Proves the errors one after the other; the goal is 0.01."""
    bound: Any = Fake(at=lambda price, slope, slopes: Fake(error=errors.pop(0), size=0.5))
    slope: Any = Fake(value=np.zeros(3))
    return SpacedDualStop(bound, 0.01, slope, planned, warm=warm)


def _next(stop: SpacedDualStop, count: int) -> int:
    """After how many more steps it looks again."""
    iteration: Any = Fake(price=lambda state: np.zeros(2))
    stop.check(iteration, None, count)
    return next(k for k in range(1000) if stop.due(count + k))


@pytest.mark.parametrize("planned", [None, math.inf])
def test_without_a_plan_proofs_are_a_fifth_apart(planned: float | None) -> None:
    for count, steps in ((4, 3), (17, 3), (19, 3), (20, 4), (34, 6), (104, 20)):
        for error in (1.0, math.inf):
            assert _next(_spaced(planned, [error]), count) == steps
    first = _spaced(planned, [])
    assert [first.due(k) for k in (dual_bound.FIRST_CHECK - 1, dual_bound.FIRST_CHECK)] == [0, 1]
    assert _spaced(planned, [], warm=True).due(1)


def test_proofs_follow_the_faster_of_two_rates() -> None:
    """Planned: a factor 100 in 100 steps. Seen: a factor 10 in 10 steps is faster, 1.1 is not."""
    first = _spaced(100.0, [])
    early = round(100 * dual_bound.EARLY)
    assert [first.due(k) for k in (early - 1, early)] == [0, 1]
    assert _next(_spaced(100.0, [0.1]), 80) == 50
    assert _next(_spaced(100.0, [1.0]), 80) == 80  # not farther than it has come
    assert _next(_spaced(100.0, [10.0]), 5) == 10
    assert _next(_spaced(100.0, [math.inf]), 80) == 16
    assert _next(_spaced(100.0, [0.010001]), 80) == 1
    for errors, steps in (([1.0, 0.1], 10), ([0.11, 0.1], 50), ([0.05, 0.1], 50)):
        stop = _spaced(100.0, [*errors])
        _next(stop, 80)
        assert _next(stop, 90) == steps
    again = _spaced(100.0, [1.0, 0.1])
    _next(again, 90)
    assert _next(again, 90) == 50  # twice at one place: no rate
    other = _spaced(None, [0.1])
    other.bound.slope_again = lambda: (np.zeros(2), 1.0)  # type: ignore[method-assign]
    other.recall({"next": 90, "rate": math.log(100) / 100, "last": [80, 1.0]})
    assert other.memory() == {"next": 90, "rate": math.log(100) / 100, "last": (80, 1.0)}
    assert _next(other, 90) == 10


def test_the_worst_violation_of_an_agents_own_rows_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(0, monkeypatch)
    made.scalars[:, 10] = 0.0
    made.scalars[1, 10] = 1e6
    found, _ = made.found.gap(made.draw(N * D_X), made.draw(Q), made.mine)
    assert found.violation == 1e6
