"""The loop: what ends it, in which order, and who sees what."""

from __future__ import annotations

import math
import os
import signal
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ccmac.certificates.stopping import Check, Evidence, Stopping
from ccmac.errors import GradientError
from ccmac.ledger import Cost, Trace
from ccmac.methods.base import Iteration, State, vector
from ccmac.methods.driver import HEALTH_EVERY, Observer, Outcome, Settings, drive
from ccmac.network import Network
from ccmac.runtime import InProcess
from ccmac.runtime.space import Space

SIZES = (2, 1, 1)
Q = 2


@dataclass(frozen=True)
class Toy(State):
    """(x, z) as one vector, and the steps done."""

    w: Any = vector()
    count: int = 0


class Scaling(Iteration[Toy]):
    """w is multiplied by ``factor`` in place; over after ``last`` steps, fails at ``bad``."""

    def __init__(self, factor: float = 0.5, last: float = math.inf, bad: float = math.inf) -> None:
        self.space = Space(InProcess(Network.ring(3)), SIZES, Q)
        self.factor = factor
        self.last = last
        self.bad = bad

    def start(self, x: Any, z: Any, dual: Any = None, multiplier: Any = None) -> Toy:
        return Toy(np.ones(self.space.size))

    def step(self, state: Toy) -> Toy:
        if state.count + 1 >= self.bad:
            raise GradientError("agent 1: not finite")
        state.w[...] *= self.factor
        self.space.runtime.ledger.charge(gradients=1)
        return replace(state, count=state.count + 1)

    def point(self, state: Toy) -> tuple[Any, Any]:
        return self.space.x(state.w), self.space.z(state.w)

    @property
    def cost(self) -> Cost:
        return Cost(gradients=1)

    def finished(self, state: Toy) -> bool:
        return state.count >= self.last


class At(Stopping):
    """Looks at some iterations and is content at one."""

    def __init__(self, looks: tuple[int, ...], content: int) -> None:
        self.looks = looks
        self.content = content
        self.seen = [0]

    def due(self, iteration: int) -> bool:
        return iteration in self.looks

    def check(self, iteration: Any, state: Any, count: int) -> Check:
        self.seen.append(count)
        iteration.space.runtime.ledger.charge(affine=1)
        return Check(1.0 / count, Evidence("bound", 0.5 if count >= self.content else 2.0))

    def final(self, iteration: Any, state: Any) -> Check:
        raise AssertionError("the loop never asks for it")


def run(iteration: Scaling | None = None, limit: int = 20, **settings: Any) -> Outcome:
    iteration = iteration or Scaling()
    state = iteration.start(None, None)
    return drive(iteration, state, Settings(limit, **settings))


def test_the_limit_ends_it() -> None:
    iteration = Scaling()
    outcome = run(iteration, 7)
    assert (outcome.status, outcome.iterations) == ("max_iterations", 7)
    assert outcome.check is None
    assert math.isnan(outcome.relative_error)
    assert iteration.space.runtime.ledger["gradients"] == 7


def test_time_ends_it_after_a_whole_step() -> None:
    assert run(max_seconds=1e-9).iterations == 1
    assert run(max_seconds=60.0).iterations == 20


def test_a_schedule_of_its_own_ends_it() -> None:
    outcome = run(Scaling(last=6))
    assert (outcome.status, outcome.iterations) == ("finished", 6)


def test_checks_are_made_when_due_and_charged_to_monitor() -> None:
    rule = At((3, 5, 6, 9), 6)
    iteration = Scaling()
    trace = Trace()
    outcome = run(iteration, stopping=rule, trace=trace)
    assert (outcome.status, outcome.iterations) == ("done", 6)
    assert rule.seen == [0, 3, 5, 6]
    assert outcome.check is not None
    assert outcome.check.bound == 1 / 6
    assert iteration.space.runtime.ledger.of("monitor")["affine"] == 3
    bounds = np.asarray(trace["error_bound"])
    assert np.isnan(bounds[[0, 1, 3]]).all()
    assert bounds[[2, 4, 5]] == pytest.approx([1 / 3, 1 / 5, 1 / 6])


def test_the_observer_ends_it_at_no_charge() -> None:
    iteration = Scaling(0.5)
    size = iteration.space.size
    observer = Observer(iteration, np.zeros(sum(SIZES)), np.zeros(Q), 1e-3)
    start = np.ones(size)
    observer.begin(iteration.space.x(start), iteration.space.z(start))
    outcome = run(iteration, observer=observer)
    # Every step quarters the square: 4^-5 <= 1e-3 < 4^-4.
    assert (outcome.status, outcome.iterations) == ("done", 5)
    assert outcome.relative_error == pytest.approx(4.0**-5)
    solved = iteration.space.runtime.ledger
    assert dict(solved.of("solve")) == {"gradients": 5}


@pytest.mark.parametrize(("factor", "limit"), [(1e9, 2 * HEALTH_EVERY), (1e3, 3 * HEALTH_EVERY)])
def test_a_blow_up_is_noticed(factor: float, limit: int) -> None:
    outcome = run(Scaling(factor), 100)
    assert outcome.status == "diverged"
    assert outcome.iterations <= limit + 1  # noticed with the next message


class Apart(InProcess):
    """As if other agents lived elsewhere."""

    alone = False  # type: ignore[assignment]


class Mixing(Scaling):
    """Besides, rows are mixed with neighbors, and nothing is averaged."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__(factor)
        self.space = Space(Apart(Network.path(3), fused=False), SIZES, Q)

    def step(self, state: Toy) -> Toy:
        self.space.runtime.mix(self.space.z(state.w).copy())
        return super().step(state)

    @property
    def cost(self) -> Cost:
        return Cost(gradients=1) + self.space.runtime.mix_cost(Q)


@pytest.mark.parametrize("factor", [1e3, math.nan, math.inf])
def test_a_blow_up_is_noticed_where_nothing_is_averaged(factor: float) -> None:
    outcome = run(Mixing(factor), 100)
    assert outcome.status == "diverged"
    assert outcome.iterations <= 2 * HEALTH_EVERY + 1


def test_an_error_names_the_iteration() -> None:
    with pytest.raises(GradientError, match=r"agent 1: not finite \(iteration 4\)"):
        run(Scaling(bad=4))


def test_a_callback_keeps_copies_and_may_stop() -> None:
    kept: list[Any] = []

    def keep(count: int, state: Any) -> bool:
        kept.append(state.w)
        state.w[...] = state.w  # its own arrays: writing is harmless
        return count == 4

    outcome = run(callback=keep)
    assert (outcome.status, outcome.iterations) == ("interrupted", 4)
    assert [float(w[0]) for w in kept] == [0.5, 0.25, 0.125, 0.0625]


@pytest.mark.parametrize("value", [None, False, 1, "yes"])
def test_only_true_stops(value: Any) -> None:
    assert run(callback=lambda k, s: value).iterations == 20


def test_a_callback_cannot_change_the_run() -> None:
    def spoil(count: int, state: Any) -> None:
        state.w[...] = 1e300

    outcome = run(limit=5, callback=spoil)
    assert outcome.status == "max_iterations"
    assert float(outcome.state.w[0]) == 0.5**5  # type: ignore[attr-defined]


def test_an_interruption_ends_after_the_step_and_is_handed_back() -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupt(count: int, state: Any) -> None:
        if count == 3:
            os.kill(os.getpid(), signal.SIGINT)

    outcome = run(callback=interrupt)
    assert (outcome.status, outcome.iterations) == ("interrupted", 3)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interruption_ends_at_once() -> None:
    def impatient(count: int, state: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(callback=impatient)


def test_other_threads_run_without_signals() -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(run().status))
    thread.start()
    thread.join()
    assert found == ["max_iterations"]


class Saving:
    """Saves every third state."""

    def __init__(self) -> None:
        self.saved: list[int] = []

    def due(self, count: int) -> bool:
        return count % 3 == 0

    def save(self, count: int, state: State) -> None:
        self.saved.append(count)


def test_states_are_saved_when_due_but_not_after_the_end() -> None:
    saver = Saving()
    run(saver=saver, stopping=At((9,), 9))
    assert saver.saved == [3, 6]


def test_the_trace_keeps_bounds() -> None:
    trace = Trace()
    run(limit=3, trace=trace, stopping=At((2,), 9))
    assert trace["error_bound"][1] == 0.5
