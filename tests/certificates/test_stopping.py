"""No way to success but by evidence; when a judge is asked."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Evidence, Judge, Stop, over, status_of

CONFLICT = object.__new__(Infeasibility)
FALL = object.__new__(Recession)
ENDS = ("done", "finished", "max_iterations", "interrupted", "diverged")


@pytest.mark.parametrize("ended", ENDS)
def test_success_needs_evidence_whatever_ended_the_run(ended: str) -> None:
    for check in (None, Check(1e-9), Check(0.0, Evidence("gap", math.nan))):
        assert status_of(ended, check) not in ("optimal", "converged", "infeasible", "unbounded")
    for ratio in (1.01, math.inf, math.nan):
        assert status_of(ended, Check(0.0, Evidence("bound", ratio))) != "optimal"
    assert status_of(ended, Check(math.nan, Evidence("bound", 0.5), verdict=CONFLICT)) == (
        "infeasible"
    )
    assert status_of(ended, Check(math.nan, Evidence("bound", 0.5), verdict=FALL)) == "unbounded"
    met = {rests: status_of(ended, Check(0.0, Evidence("bound", 1.0, rests))) for rests in RESTS}
    if ended in ("interrupted", "diverged"):
        assert set(met.values()) == {ended}
    else:
        assert met == RESTS


RESTS = {
    "proved": "optimal",
    "supplied": "optimal",
    "reference": "optimal",
    "estimated": "converged",
}


def test_what_is_no_number_meets_no_goal() -> None:
    assert (over(1.0, 2.0), over(3.0, 2.0), over(-1.0, 0.0)) == (0.5, 1.5, 0.0)
    for value, goal in ((0.0, math.inf), (math.inf, math.inf), (math.nan, 1.0), (1.0, 0.0)):
        assert over(value, goal) == math.inf


class Told(Judge):
    """A judge that finds what it is told."""

    def __init__(self, estimate: float | None = None) -> None:
        self.notes = []
        self.ratio = 1e6
        self.seen = estimate
        self.asked = 0

    def estimate(self, iteration: Any, state: Any) -> tuple[float, float] | None:
        return None if self.seen is None else (self.seen, self.seen)

    def check(self, iteration: Any, state: Any) -> Check:
        self.asked += 1
        return Check(self.ratio, Evidence("bound", self.ratio))

    def memory(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def recall(self, memory: dict[str, Any]) -> None:
        self.asked = memory["asked"]


def test_checks_follow_the_rate_seen_and_are_never_far_ahead() -> None:
    judge = Told()
    rule = Stop(judge, first=10)
    none: Any = None
    assert [rule.due(k) for k in (9, 10)] == [False, True]
    rule.check(none, none, 10)
    assert [rule.due(k) for k in (12, 13)] == [False, True]  # no rate yet: 3 or a fifth
    judge.ratio = 1e6 * math.exp(-6)
    rule.check(none, none, 13)  # e^-2 a step: 4 more, if it goes on
    assert [rule.due(k) for k in (16, 17)] == [False, True]
    judge.ratio = math.exp(2.5)
    rule.check(none, none, 17)
    assert [rule.due(k) for k in (18, 19)] == [False, True]
    judge.ratio = math.exp(2.4)
    rule.check(none, none, 19)  # 0.05 a step: 48 more, but never more than twice a blind wait
    assert [rule.due(k) for k in (26, 27)] == [False, True]
    judge.ratio = 0.9
    assert rule.check(none, none, 27).done
    again = Stop(Told(), first=10)
    again.recall(rule.memory())
    assert again.memory() == rule.memory()


def test_an_estimate_for_nothing_says_when_to_ask() -> None:
    judge = Told(estimate=1.5)
    rule = Stop(judge, every=True)
    none: Any = None
    assert not rule.check(none, none, 1).done
    assert judge.asked == 0
    judge.seen = 0.9
    judge.ratio = 3.0
    rule.check(none, none, 2)
    judge.seen = 0.5  # fallen by less than the judge found lacking
    rule.check(none, none, 3)
    assert judge.asked == 1
    judge.seen = 0.25
    judge.ratio = 0.8
    assert rule.check(none, none, 4).done
