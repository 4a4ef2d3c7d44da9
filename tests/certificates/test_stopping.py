"""When a certified stop looks, what it pays for, and what makes it stop."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.error_bound import Bound, Dual, Look
from ccmac.certificates.stopping import (
    FIRST_CHECK,
    MISS,
    NEAR,
    RATIO,
    REPAIRABLE,
    CertifiedStop,
    Check,
)
from ccmac.realizations.base import Interval

TOL = 1e-3
NOTHING = np.zeros(1)


def bound(error: float, stationarity: float = 0.0, infeasibility: float = 0.0) -> Bound:
    return Bound(error, stationarity, infeasibility, NOTHING, NOTHING, NOTHING)


class Told:
    """A certifier that answers what it is told, and counts what it is asked."""

    def __init__(self) -> None:
        self.realized: Any = SimpleNamespace(
            system=SimpleNamespace(interval=Interval(0.5, 2.0, "exact"))
        )
        self.notes = ["a note"]
        self.parts = (1.0, 1.0)
        self.error = math.inf
        self.size = 1.0
        self.dual: Dual | None = Dual(NOTHING, NOTHING)
        self.tight_error = math.inf
        self.tight_stationarity = 1.0
        self.believed = True
        self.tights = 0

    def look(self, w: Any, dual: Dual | None) -> Look:
        seen = None if dual is None else bound(self.error, self.parts[0], self.parts[1])
        made: Any = SimpleNamespace(bound=seen, size=self.size, dual=dual, parts=self.parts)
        return made  # type: ignore[no-any-return]

    def tight(self, look: Any, goal: float) -> Bound:
        self.tights += 1
        return bound(self.tight_error, self.tight_stationarity)

    def confirmed(self, look: Any) -> bool:
        return self.believed


class Iterate:
    """An iteration that lends the certifier's dual state."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def embedded(self, state: Any, realized: Any) -> Any:
        return NOTHING

    def dual(self, state: Any, realized: Any) -> Dual | None:
        return self.told.dual

    def finished(self, state: Any) -> bool:
        return False


def rule() -> tuple[CertifiedStop, Told, Iterate]:
    told = Told()
    return CertifiedStop(told, TOL), told, Iterate(told)  # type: ignore[arg-type]


def test_the_first_look_waits_a_few_steps() -> None:
    stop, _, _ = rule()
    assert [stop.due(k) for k in range(1, FIRST_CHECK + 2)] == [False] * (FIRST_CHECK - 1) + [
        True,
        True,
    ]


def test_a_look_that_meets_the_goal_and_is_confirmed_ends_the_run() -> None:
    stop, told, iterate = rule()
    told.error = TOL
    check = stop.check(iterate, None, 5)
    assert (check.done, check.bound) == (True, TOL)
    assert told.tights == 0


def test_the_goal_grows_with_the_size_of_the_point() -> None:
    for size, done in ((100.0, True), (0.01, False)):
        stop, told, iterate = rule()
        told.size = size
        told.error = 99 * TOL
        assert stop.check(iterate, None, 5).done is done


def test_a_look_that_is_not_confirmed_is_taken_again_at_once() -> None:
    stop, told, iterate = rule()
    told.error = TOL / 2
    told.believed = False
    check = stop.check(iterate, None, 5)
    assert not check.done
    assert check.certificate is None
    assert stop.memory()["next"] == 6


@pytest.mark.parametrize(
    ("parts", "tights"),
    [
        ((1.5 * RATIO * TOL, 0.0), 0),  # a repair leaves 1/3 of it: still too much
        ((0.9 * RATIO * TOL, 0.0), 1),
        ((0.9 * RATIO * TOL, 0.9 * REPAIRABLE * TOL), 0),  # all infeasible: going on is as fast
        ((RATIO * TOL, 200 * TOL), 1),
        ((RATIO * TOL, 1.1 * REPAIRABLE * TOL), 0),
    ],
)
def test_a_tight_bound_is_bought_when_it_can_meet_the_goal(
    parts: tuple[float, float], tights: int
) -> None:
    stop, told, iterate = rule()
    told.parts = parts
    told.tight_error = TOL / 2
    check = stop.check(iterate, None, 5)
    assert told.tights == tights
    assert check.done is bool(tights)


@pytest.mark.parametrize(("infeasible", "tights"), [(2 * NEAR * TOL, 0), (NEAR * TOL / 2, 1)])
def test_without_prices_feasibility_decides(infeasible: float, tights: int) -> None:
    stop, told, iterate = rule()
    told.dual = None
    told.parts = (math.inf, infeasible)
    told.tight_error = TOL
    check = stop.check(iterate, None, 5)
    assert told.tights == tights
    assert check.done is bool(tights)


def test_what_a_repair_gained_is_remembered() -> None:
    """The first tight bound shows how much of the stationary part a repair leaves."""
    stop, told, iterate = rule()
    told.parts = (2 * TOL, 0.0)
    told.tight_error = 2 * TOL
    told.tight_stationarity = 0.02 * TOL
    assert not stop.check(iterate, None, 5).done
    assert stop.memory()["ratio"] == pytest.approx(100.0)
    told.parts = (90 * TOL, 0.0)
    told.tight_error = TOL
    assert stop.check(iterate, None, 20).done
    for left, ratio in ((1e-6 * TOL, 1e4), (9 * TOL, 1.0)):
        told.parts = (2 * TOL, 0.0)
        told.tight_error = 2 * TOL
        told.tight_stationarity = left
        stop._ratio = RATIO
        stop.check(iterate, None, 30)
        assert stop.memory()["ratio"] == ratio
    told.dual = None  # nothing to compare with
    told.parts = (math.nan, 0.0)
    stop.check(iterate, None, 35)
    assert stop.memory()["ratio"] == ratio
    told.dual = Dual(NOTHING, NOTHING)
    told.parts = (2 * TOL, 0.0)
    told.tight_stationarity = 0.0
    stop.check(iterate, None, 40)
    assert stop.memory()["ratio"] == ratio


def test_looks_follow_the_rate_seen_but_never_far_ahead() -> None:
    stop, told, iterate = rule()
    told.parts = (1e6 * RATIO * TOL, 0.0)
    stop.check(iterate, None, 10)
    assert stop.memory()["next"] == 13  # three steps, nothing is known
    told.parts = (1e5 * RATIO * TOL, 0.0)  # a tenth in 3 steps: 15 more are needed, but
    stop.check(iterate, None, 13)
    assert stop.memory()["next"] == 19  # at most twice the usual three
    told.parts = (1e1 * RATIO * TOL, 0.0)  # 1e4 in 6 steps: 2 more are needed
    stop.check(iterate, None, 19)
    assert stop.memory()["next"] == 21
    told.parts = (1e2 * RATIO * TOL, 0.0)  # it grew: the usual wait of a fifth
    stop.check(iterate, None, 40)
    assert stop.memory()["next"] == 48


def test_a_run_that_ended_otherwise_gets_one_tight_bound() -> None:
    stop, told, iterate = rule()
    told.tight_error = 2 * TOL
    assert not stop.final(iterate, None).done
    told.tight_error = TOL
    assert stop.final(iterate, None).done
    assert told.tights == 2


def test_the_memory_continues_the_schedule() -> None:
    stop, told, iterate = rule()
    told.parts = (1e6 * RATIO * TOL, 0.0)
    stop.check(iterate, None, 10)
    other, second, _ = rule()
    second.realized.system.interval = Interval(0.6, 1.9, "other")
    other.recall(stop.memory())
    # The ends are taken over where they are wider; what they rest on is this run's own word.
    assert other.memory() == {**stop.memory(), "interval": [0.5, 2.0, "other"]}
    assert [other.due(k) for k in (12, 13)] == [False, True]
    assert second.realized.system.interval == Interval(0.5, 2.0, "other")
    assert stop.notes == ["a note"]
    # Ends that are not wider at both sides are left; what was estimated then is no more than that.
    for ends, word, left in (
        ((0.4, 1.8), "exact", (0.5, 2.0, "other")),
        ((0.6, 3.0), "exact", (0.5, 2.0, "other")),
        ((0.4, 3.0), "estimated", (0.4, 3.0, "estimated")),
    ):
        other.recall({**stop.memory(), "interval": [*ends, word]})
        assert second.realized.system.interval == Interval(*left)
    for ends in ((0.0, 1.0), (2.0, 1.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="none"):
            other.recall({**stop.memory(), "interval": [*ends, "exact"]})
    with pytest.raises(ValueError, match="none"):
        other.recall({**stop.memory(), "interval": [0.1, 3.0, 7]})
    for ratio, kept in ((0.5, 1.0), (2.0, 2.0), (1e5, 1e4)):
        other.recall({**stop.memory(), "ratio": ratio})
        assert other.memory()["ratio"] == kept


def test_after_a_tight_bound_that_fell_short_it_waits_for_more_than_was_lacking() -> None:
    """A factor e in 10 steps was seen: MISS times what the bound lacks, e^1.5, takes 15."""
    stop, told, iterate = rule()
    told.parts = (0.0, TOL)
    told.tight_error = TOL * math.e**1.5 / MISS
    stop._history = [(90, math.e)]
    check = stop.check(iterate, None, 100)
    assert not check.done
    assert check.certificate is not None
    assert told.tights == 1
    assert stop.memory()["next"] == 115


@pytest.mark.parametrize(
    ("parts", "dual", "goal", "excess"),
    [
        ((1.0, 2.0), False, TOL, 2.0 / (NEAR * TOL)),
        ((1.0, 2.0), False, 1e-16, 2.0 / 1e-13),
        ((0.01, 1.0), True, TOL, 1.0 / TOL),  # just stationary
        ((3.0, 2.0), True, TOL, 3.0 / (4.0 * TOL)),
        ((0.5, 40.0), True, 1e-17, 0.5 / 4e-17),
        ((1.0, 90.0), True, TOL, 1.0 / (4.0 * TOL)),
        ((0.1, 9.0), True, 2e-17, 0.1 / 8e-17),
        ((1e-3, 0.09), True, 3.0, 0.001 / 12),
        ((0.02, 1.9), True, TOL, 5.0),
    ],
)
def test_what_a_tight_bound_would_have_to_gain(
    parts: tuple[float, float], dual: bool, goal: float, excess: float
) -> None:
    stop, told, _ = rule()
    stop._ratio = 4.0
    look: Any = SimpleNamespace(parts=parts, dual=told.dual if dual else None)
    assert stop._excess(look, goal) == pytest.approx(excess)
    # What is infeasible counts where it is the larger of the two.
    stop._ratio = 1e4
    look = SimpleNamespace(parts=(1.0, 90.0), dual=told.dual)
    assert stop._excess(look, TOL) == pytest.approx(90.0)
    assert stop._excess(look, 1e-17) == pytest.approx(90.0 / 1e-13)


@pytest.mark.parametrize("believed", [True, False])
def test_a_stored_dual_state_is_verified_once_before_it_is_used(believed: bool) -> None:
    stop, told, iterate = rule()
    asked: list[Any] = []

    def verified(w: Any, dual: Any, tol: float) -> bool:
        asked.append((w, dual, tol))
        return believed

    told.verified = verified  # type: ignore[attr-defined]
    stop.recall(stop.memory())
    mine = told.dual
    told.dual = None
    stop.final(iterate, None)
    assert not asked  # there is none yet
    told.dual = mine
    for _ in range(2):
        look, _ = stop._look(iterate, None)
        assert (look.dual is mine) is believed
    assert asked == [(NOTHING, mine, TOL)]


def test_an_interval_as_wide_as_this_runs_own_is_taken_over() -> None:
    stop, told, _ = rule()
    memory = {**stop.memory(), "interval": [0.5, 2.0, "estimated"]}
    stop.recall(memory)
    assert told.realized.system.interval == Interval(0.5, 2.0, "estimated")
    stop.recall({**memory, "interval": [1.0, 1.0, "exact"]})  # of one eigenvalue
    assert told.realized.system.interval == Interval(0.5, 2.0, "estimated")


def test_a_point_that_blew_up_is_looked_at_again_a_little_later() -> None:
    stop, told, iterate = rule()
    told.size = math.inf
    check = stop.check(iterate, None, 10)
    assert math.isnan(check.bound)
    assert not check.done
    assert [stop.due(k) for k in (9 + FIRST_CHECK, 10 + FIRST_CHECK)] == [False, True]
    assert not stop.final(iterate, None).done
    assert told.tights == 0


def test_an_infinite_bound_meets_no_goal() -> None:
    """The goal is relative to the size of the point, which may be infinite too."""
    assert not Check(math.inf, math.inf <= TOL * math.inf).done
    assert Check(1.0, True).done
