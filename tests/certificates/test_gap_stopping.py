"""Stopping by a proved gap: when it looks, when the tight bound is taken, what is recorded."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import gap_stopping
from ccmac.certificates.error_bound import Bound
from ccmac.certificates.gap import Gap, Goal
from ccmac.certificates.gap_stopping import (
    FIRST_CHECK,
    NEAR,
    GapStop,
    ReportedGapStop,
    UndeterminedStop,
    as_bound,
)

EPSILON = 1e-2
GOAL = Goal(EPSILON / 2, EPSILON, 2.0)
NOTHING = np.zeros(1)


def gap(base: float, slope: float = 0.0, distance: float = 0.0, error: float = math.inf) -> Gap:
    return Gap(
        NOTHING, NOTHING, NOTHING, 5.0, base, slope, distance, 0.1, 1.0, True, 1.0, error=error
    )


class Told:
    """Proves what it is told; counts the tight bounds."""

    def __init__(self, quick: Gap | None, tight: Gap, over: bool = False) -> None:
        self.quick = quick
        self.tight = tight
        self.over = over
        self.tights = 0
        self.found = {"stages": 3.0}

    def quick_gap(self, state: Any) -> Gap | None:
        return self.quick

    def tight_gap(self, state: Any) -> Gap:
        self.tights += 1
        return self.tight

    def finished(self, state: Any) -> bool:
        return self.over


def stop(told: Told, **more: Any) -> tuple[GapStop, dict[str, Any]]:
    record: dict[str, Any] = {}
    return GapStop(told, GOAL, record, **more), record


def test_looks_grow_apart_by_a_quarter() -> None:
    told = Told(None, gap(1.0))
    rule, record = stop(told)
    looked = []
    for count in range(1, 30):
        if rule.due(count):
            looked.append(count)
            check = rule.check(told, None, count)  # type: ignore[arg-type]
            assert math.isnan(check.bound)
            assert not check.done
    assert looked == [FIRST_CHECK, 10, 13, 17, 22, 28]
    assert told.tights == 0
    assert record == {}


@pytest.mark.parametrize(("factor", "tights"), [(0.99 * NEAR, 1), (1.01 * NEAR, 0)])
def test_the_tight_bound_is_taken_near_the_goal(factor: float, tights: int) -> None:
    # Half of the bound is slope times the radius of the goal.
    told = Told(gap(factor * EPSILON / 2, factor * EPSILON / 4), gap(EPSILON / 2))
    rule, record = stop(told)
    check = rule.check(told, None, 10)  # type: ignore[arg-type]
    assert told.tights == tights
    assert check.done is bool(tights)
    assert check.bound == pytest.approx(EPSILON / 2 if tights else factor * EPSILON)
    assert record["stages"] == 3.0
    assert record.get("proved_by") == ("bound" if tights else None)


@pytest.mark.parametrize(
    ("found", "done"),
    [
        (gap(EPSILON), True),
        (gap(1.01 * EPSILON), False),
        (gap(EPSILON / 2, EPSILON / 4), True),  # proved for the radius 2, just so
        (gap(EPSILON / 2, EPSILON / 4 * (1 + 5e-13)), True),  # but for rounding
        (gap(EPSILON / 2, EPSILON / 4 * (1 + 5e-12)), False),
        (gap(EPSILON / 2, EPSILON / 3), False),
        (gap(0.0, 0.0, EPSILON / 2), True),  # L R times the distance
        (gap(0.0, 0.0, EPSILON), False),
    ],
)
def test_value_and_feasibility_must_hold_for_the_radius(found: Gap, done: bool) -> None:
    told = Told(gap(0.0), found)
    rule, record = stop(told)
    assert rule.check(told, None, 8).done is done  # type: ignore[arg-type]
    assert record["proved_by"] == ("bound" if done else "nothing")
    assert record["radius_source"] == "supplied"


def test_a_schedule_is_not_looked_at_and_proves_by_itself() -> None:
    told = Told(gap(0.0), gap(9.0), over=True)
    rule, record = stop(told, scheduled=True)
    assert not any(rule.due(k) for k in range(1, 1000))
    check = rule.final(told, None)  # type: ignore[arg-type]
    assert check.done
    assert record["proved_by"] == "schedule"
    assert told.tights == 1


def test_a_schedule_cut_short_proves_what_the_bound_does() -> None:
    for found, done in ((gap(9.0), False), (gap(0.0), True)):
        told = Told(gap(0.0), found, over=False)
        rule, record = stop(told, scheduled=True)
        assert rule.final(told, None).done is done  # type: ignore[arg-type]
        assert record["proved_by"] == ("bound" if done else "nothing")


def test_a_method_that_reports_is_looked_at_always() -> None:
    told = Told(None, gap(1.0))
    rule = ReportedGapStop(told, GOAL, {})
    assert all(rule.due(k) for k in range(1, 20))


def test_no_euclidean_error_is_claimed_without_strong_convexity() -> None:
    assert math.isnan(as_bound(gap(0.0)).error)
    assert as_bound(gap(0.0, error=0.5)).error == 0.5


def test_the_memory_and_the_certificate() -> None:
    found = replace(gap(EPSILON / 2), price=np.ones(3))
    told = Told(gap(NEAR * EPSILON), found, over=True)  # just near enough
    rule, _ = stop(told)
    check = rule.check(told, None, 9)  # type: ignore[arg-type]
    assert told.tights == 1
    assert rule.memory() == {"next": 12}  # 11.25
    assert isinstance(check.certificate, Bound)
    assert check.certificate.price is found.price
    other, _ = stop(told)
    other.recall({"next": 7})
    assert [other.due(k) for k in (6, 7)] == [False, True]
    rule, record = stop(told, scheduled=True)
    last = rule.final(told, None)  # type: ignore[arg-type]
    assert (last.done, record["proved_by"]) == (True, "schedule")
    assert isinstance(last.certificate, Bound)
    assert ReportedGapStop(told, GOAL, {}).due(0) is True


def test_without_curvature_a_free_fall_is_tried_once_and_then_the_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    falls = [None, "proved"]
    made = []
    found = gap(1e-3)
    given = []
    duality: Any = Fake(
        fall=lambda x, z, least: (given.append(least), falls[x])[1],
        slope_seen=False,
        gap=lambda x, z, prices: (found, (x, z, prices)),
    )
    monkeypatch.setattr(gap_stopping, "Duality", lambda *args: made.append(args) or duality)
    monkeypatch.setattr(Gap, "record", lambda self, goal: {"gap": 0.25}, raising=False)
    agents = {i: Fake(objective=Fake(polyhedral=lambda d, q, i=i: (i, d, q))) for i in range(2)}
    work: Any = Fake(problem=Fake(agents=agents, n=2, q=3, d=[4, 5]), doubts=[])
    record: dict[str, Any] = {}
    asked: list[int] = []

    def iteration(*which: int) -> Any:
        return Fake(
            steepest=lambda: asked.append(1) or [(k, "z", 0.5) for k in which],
            point=lambda state: ("x", ["z0", "z1"]),
            prices=lambda state: "prices",
        )

    rule = UndeterminedStop(work, "reduced", "start", GOAL, record)  # type: ignore[arg-type]
    [(_, reduced, forms, ends, start)] = made
    assert (reduced, forms, start) == ("reduced", [(0, 4, 3), (1, 5, 3)], "start")
    assert ends.tolist() == [[-math.inf] * 3 + [math.inf] * 3] * 2
    assert rule.due(1)
    check = rule.check(iteration(0), None, 1)
    assert (check.certificate, check.verdict) == (("x", "z0", "prices"), None)
    assert check.bound == found.bound(found.required(GOAL))
    assert check.done == found.met(GOAL)
    assert record == {"gap": 0.25}
    assert rule.check(iteration(1), None, 2).verdict is None  # tried before
    assert len(asked) == 1
    rule = UndeterminedStop(work, "reduced", "start", GOAL, record)  # type: ignore[arg-type]
    check = rule.final(iteration(0, 1), None)
    assert (check.done, check.verdict) == (True, "proved")
    assert given == [0.5] * 3
    assert work.doubts == []
    duality.slope_seen = True  # and not proved
    for _ in range(2):
        rule = UndeterminedStop(work, "reduced", "start", GOAL, record)  # type: ignore[arg-type]
        rule.check(iteration(0), None, 1)
    assert work.doubts == [gap_stopping.SLOPING]
    assert math.isnan(check.bound)
