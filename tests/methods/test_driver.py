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

from ccmac.errors import GradientError
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, State, vector
from ccmac.methods.driver import HEALTH_EVERY, Outcome, Settings, drive
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


def run(iteration: Scaling | None = None, limit: int = 20, **settings: Any) -> Outcome:
    iteration = iteration or Scaling()
    state = iteration.start(None, None)
    return drive(iteration, state, Settings(limit, **settings))


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


@pytest.mark.parametrize("value", [None, False, 1, "yes"])
def test_only_true_stops(value: Any) -> None:
    assert run(callback=lambda k, s: value).iterations == 20


def test_a_callback_cannot_change_the_run() -> None:
    def spoil(count: int, state: Any) -> None:
        state.w[...] = 1e300

    outcome = run(limit=5, callback=spoil)
    assert outcome.status == "max_iterations"
    assert float(outcome.state.w[0]) == 0.5**5  # type: ignore[attr-defined]


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
