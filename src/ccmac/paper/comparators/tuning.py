"""A bounded tuner: settings of a grid race, and the one predicted to end first wins.

A trial starts where the solve starts and is executed like one. After k steps its primal increments
s_j = ||w_{j+1} - w_j||, in the blocks that count in the error, tell a rate, rho from the third to
the last quarter of the steps; about s_k/(1 - rho) is left, so that the trial would end after

    k + log_{1/rho} [ s_k/(1 - rho) / (target^{1/2} ||w_k||) ]   steps.

Early steps flatter a setting (fast components first), so predictions grow with k: the setting of
the least prediction is carried on, twice as far, until the one in front has run :data:`HORIZON`
steps or has arrived. Poor settings stop early. Everything is charged to ``setup``, as the tuner
runs while a method is prepared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.methods.base import Iteration, Request, State
from ccmac.methods.driver import Settings, drive
from ccmac.runtime.base import Piggyback
from ccmac.runtime.space import lengths
from ccmac.workspace import Workspace

FIRST = 30
HORIZON = 240
TUNE = "settings of a grid race first, charged to setup"
T = TypeVar("T")


def refuse_both(method: Any, name: str) -> None:
    """A race would ignore the value given for what it looks for."""
    if method.tune is not None and getattr(method, name) is not None:
        raise InputError(f"{method.name}: give {name} or tune, not both; tune finds the {name}")


def tuned(
    work: Workspace,
    request: Request,
    grid: Sequence[T],
    build: Callable[[T], Iteration[Any]],
    primal: str,
) -> T:
    """The winner of the race; ``primal`` names the primal vector of the state.

    Needs linear convergence. Cost, in setup: :data:`FIRST` to :data:`HORIZON` iterations of each
    setting, each with a piggybacked reduction.
    """
    copies = np.tile(request.z0, (work.space.count, 1))
    trials = [_Trial(setting, build(setting), request, copies, primal) for setting in grid]
    for trial in trials:
        trial.extend(FIRST)
    while True:
        front = min(trials, key=lambda trial: trial.predicted)
        if front.count >= min(HORIZON, front.predicted):
            return front.setting
        front.extend(min(2 * front.count, HORIZON))


class _Trial(Generic[T]):
    """One setting: how far it has run, and when it should end."""

    def __init__(
        self, setting: T, iteration: Iteration[Any], request: Request, copies: Array, primal: str
    ) -> None:
        self.setting = setting
        self.iteration = iteration
        self.primal = primal
        self.goal = math.sqrt(request.target)
        self._measure = request.measure
        self.state: State = iteration.start(request.x0, copies)
        self.count = 0
        self.predicted = math.inf
        self._last = self._seen(self.state)
        self._increments: list[Piggyback] = []

    def _seen(self, state: State) -> Array:
        """The blocks that count in the error, as the planner takes them."""
        space = self.iteration.space
        w = np.array(getattr(state, self.primal))
        space.x(w)[...] *= self._measure[0]
        space.z(w)[...] *= self._measure[1]
        return w

    def extend(self, count: int) -> None:
        """Run until ``count`` steps are done and predict the end."""
        settings = Settings(count, callback=self._record, first=self.count)
        outcome = drive(self.iteration, self.state, settings)
        self.state = outcome.state
        self.count = count
        self.predicted = math.inf if outcome.status == "diverged" else self._end()

    def _record(self, count: int, state: State) -> None:
        now = self._seen(state)
        step = now - self._last
        self._increments.append(self.iteration.space.piggyback((step, step)))
        self._last = now

    def _end(self) -> float:
        quarter = self.count // 4
        size = self.iteration.space.piggyback((self._last, self._last))
        goal = self.goal * lengths(size)[0]
        before, after = (
            math.sqrt(float(np.mean([squares.value[0] for squares in part])))
            for part in (self._increments[-2 * quarter : -quarter], self._increments[-quarter:])
        )
        if not 0 < after < before:
            return math.inf if after else float(self.count)
        rate = math.log(before / after) / quarter
        left = after / -math.expm1(-rate)
        return self.count + max(0.0, math.log(left / goal)) / rate if goal > 0 else math.inf
