"""A stop by proofs: when it looks, what makes it stop, and what it remembers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from ccmac.certificates.stopping import FIRST_CHECK, LOOK_AGAIN, MISS, ProofStop, steps_ahead


class Told:
    """A proof that answers what it is told."""

    def __init__(self, *errors: float, size: float = 0.5) -> None:
        self.errors = list(errors)
        self.size = size
        self.points: list[Any] = []

    def at(self, x: Any, z: Any) -> Any:
        self.points.append((x, z))
        return SimpleNamespace(error=self.errors.pop(0), size=self.size)


ITERATION: Any = SimpleNamespace(point=lambda state: (state, -state), proved=lambda state: None)


def rule(*errors: float, tol: float = 1e-3, **more: Any) -> ProofStop:
    first = more.pop("first", FIRST_CHECK)
    return ProofStop(Told(*errors, **more), tol, first)  # type: ignore[arg-type]


def test_the_first_check_is_where_the_method_wants_it() -> None:
    assert [rule().due(k) for k in (FIRST_CHECK - 1, FIRST_CHECK, FIRST_CHECK + 1)] == [
        False,
        True,
        True,
    ]
    assert [rule(first=1).due(k) for k in (0, 1)] == [False, True]


@pytest.mark.parametrize(
    ("error", "size", "done"),
    [(1e-3, 0.5, True), (1.01e-3, 0.5, False), (5e-3, 5.0, True), (5.01e-3, 5.0, False)],
)
def test_the_goal_is_tol_times_one_or_the_size(error: float, size: float, done: bool) -> None:
    stop = rule(error, size=size)
    check = stop.check(ITERATION, 3.0, 7)
    assert check.done is done
    assert check.bound == error
    assert check.certificate is not None
    assert stop.due(9) is done
    assert stop.due(10)


def test_the_point_of_the_state_is_judged() -> None:
    stop = rule(1.0)
    stop.check(ITERATION, 3.0, 7)
    assert stop.proof.points == [(3.0, -3.0)]  # type: ignore[attr-defined]


def test_checks_follow_the_rate_of_the_proved_error() -> None:
    stop = rule(1.0, 0.1, 1e-2)
    stop.check(ITERATION, 0.0, 10)
    assert stop.memory()["next"] == 13
    assert not stop.due(12)
    assert stop.due(13)
    stop.check(ITERATION, 0.0, 20)
    # A factor 10 in 10 steps: the 100 times 1.5 that are missing take 22, at most 2 times 4.
    assert stop.memory()["next"] == 20 + 2 * math.ceil((LOOK_AGAIN - 1) * 20)
    stop.check(ITERATION, 0.0, 200)
    rate = math.log(10) / 180
    assert stop.memory()["next"] == 200 + min(math.ceil(math.log(MISS * 10) / rate), 2 * 40)


def test_after_a_proof_that_fell_short_it_waits_for_more_than_was_lacking() -> None:
    """A factor e in 10 steps was seen: MISS times what the proof lacks, e^1.5, takes 15."""
    error = 1e-3 * math.e**1.5 / MISS
    stop = rule(error)
    stop._history = [(90, math.e * error)]
    stop.check(ITERATION, 0.0, 100)
    assert stop.memory()["next"] == 115


def test_infinite_bounds_are_not_taken_for_a_rate() -> None:
    stop = rule(math.inf, math.inf, 1.0)
    for count in (10, 20):
        check = stop.check(ITERATION, 0.0, count)
        assert not check.done
        assert stop.memory()["next"] == count + max(3, math.ceil((LOOK_AGAIN - 1) * count))
    stop.check(ITERATION, 0.0, 30)
    assert stop.memory()["history"] == [[30, 1.0]]


def test_the_memory_continues_the_schedule() -> None:
    stop = rule(1.0, 0.1)
    stop.check(ITERATION, 0.0, 10)
    stop.check(ITERATION, 0.0, 20)
    other = rule(1e-2)
    other.recall(stop.memory())
    assert other.memory() == stop.memory()
    assert [other.due(k) for k in (27, 28)] == [False, True]
    assert not stop.notes


def test_a_last_proof_is_one_more_check() -> None:
    assert rule(1e-4).final(ITERATION, 0.0).done
    assert not rule(1.0).final(ITERATION, 0.0).done


def test_what_the_steps_prove_is_looked_at_after_each() -> None:
    errors = iter([1e-1, 1e-2, 1e-4])
    steps: Any = SimpleNamespace(proved=lambda state: SimpleNamespace(error=next(errors), size=0.5))
    stop = rule(first=1)
    for count, error in ((1, 1e-1), (2, 1e-2), (3, 1e-4)):
        assert stop.due(count)
        found = stop.check(steps, None, count)
        assert (found.bound, found.done) == (error, error <= 1e-3)


def test_steps_ahead_in_closed_form() -> None:
    assert steps_ahead([], 5, 10.0) == 3
    assert steps_ahead([], 100, 10.0) == 20
    assert steps_ahead([(1, 1.0)], 100, 10.0) == 20
    falling = [(90, math.e), (100, 1.0)]  # a factor e in 10 steps
    assert steps_ahead(falling, 100, math.e**1.5) == 15
    assert steps_ahead(falling, 100, math.e**3.95) == 40
    assert steps_ahead(falling, 100, math.e**9) == 40
    assert steps_ahead(falling, 100, 1e-9) == 2
    assert steps_ahead(falling, 100, math.inf) == 20
    assert steps_ahead(falling[::-1], 100, math.e) == 20  # growing
    assert steps_ahead([(90, 1.0), (100, 1.0)], 100, math.e) == 20
    assert steps_ahead([(100, math.e), (100, 1.0)], 100, math.e) == 20
    assert steps_ahead([(90, 1.0), (100, 0.0)], 100, math.e) == 20
    assert steps_ahead([(1, 1e9), *falling], 100, math.e**1.5) == 15  # the last two count
