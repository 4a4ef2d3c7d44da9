"""When to stop: a certified bound checked now and then, or an observer's error to a reference.

Checks are charged to ``monitor``. The quick bound (the method's own dual state) is cheap; only when
it comes near the goal is the tight bound taken at the repaired point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.pipeline.certify import Bound, Certifier, Dual
from ccmac.pipeline.system import Interval
from ccmac.solvers.base import Iteration, State

Array = NDArray[np.float64]
FIRST_CHECK = 5
GROWTH = 1.2
MISS = 1.5  # after a tight bound that fell short, wait for this much more than it lacked
NEAR = 100.0  # how pessimistic the cheap look is taken to be before the first tight bound


@dataclass(frozen=True)
class Check:
    """What a check found: a bound in user units, and whether the goal is met."""

    bound: float
    done: bool
    next_check: int
    certificate: Bound | None = None


class Stopping(ABC):
    """Decides, at chosen iterations, whether a run may end."""

    @property
    def notes(self) -> list[str]:
        """What the checks found wrong and mended."""
        return []

    def memory(self) -> dict[str, Any]:
        """What the rule remembers between checks, for a checkpoint."""
        return {}

    def recall(self, memory: dict[str, Any]) -> None:  # noqa: B027 (rules without memory)
        """Continue with a stored memory."""

    @abstractmethod
    def due(self, iteration: int) -> bool:
        """Whether to check after this iteration."""

    @abstractmethod
    def check(self, iteration: Iteration, state: State, count: int) -> Check:
        """Look at the state after ``count`` iterations."""

    @abstractmethod
    def final(self, iteration: Iteration, state: State) -> Check:
        """The best statement about the last state, whatever ended the run."""


class CertifiedStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||), proved by a :class:`Certifier`.

    Works for any method: its point is embedded in the certifier's realization; a method that shares
    that realization lends its dual state for the quick bound.
    """

    def __init__(self, certifier: Certifier, tol: float, *, own_dual: bool) -> None:
        self.certifier, self.tol, self.own_dual = certifier, tol, own_dual
        self._next, self._ratio = FIRST_CHECK, NEAR
        self._history: list[tuple[int, float]] = []

    def memory(self) -> dict[str, Any]:
        """The schedule, the errors seen, and the interval as it stands."""
        interval = self.certifier.realized.system.interval
        return {
            "next": self._next,
            "ratio": self._ratio,
            "history": [list(pair) for pair in self._history],
            "interval": [interval.low, interval.high, interval.source],
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Continue the schedule."""
        self._next, self._ratio = int(memory["next"]), float(memory["ratio"])
        self._history = [(int(k), float(e)) for k, e in memory["history"]]
        low, high, source = memory["interval"]
        self.certifier.realized.system.interval = Interval(low, high, source)

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return iteration >= self._next

    def _embed(self, iteration: Iteration, state: State) -> Array:
        if self.own_dual:
            return state.vectors["w"]
        x, z = iteration.point(state)
        return self.certifier.realized.embed(x, z)

    def _dual(self, state: State) -> Dual | None:
        return Dual(state.vectors["p"], state.rows["price"]) if self.own_dual else None

    @property
    def notes(self) -> list[str]:
        """What the checks found wrong with the certified interval."""
        return self.certifier.notes

    def goal(self, w: Array) -> float:
        """tol max(1, ||(x, z)||) in user units."""
        realized = self.certifier.realized
        space = realized.space
        user = np.zeros(space.size)
        space.x(user)[...] = space.x(w)
        space.z(user)[...] = realized.copies(w) / math.sqrt(space.runtime.n)
        return self.tol * max(1.0, space.norm(user, riding=True))

    def check(self, iteration: Iteration, state: State, count: int) -> Check:
        """A cheap look first; the tight bound only when that is near the goal.

        The cheap look is the quick bound, or without a dual state the distance to feasibility.
        """
        w, dual = self._embed(iteration, state), self._dual(state)
        goal = self.goal(w)
        near = max(self._ratio * goal, 1e-13)
        cheap = self.certifier.quick(w, dual).error if dual else self.certifier.infeasibility(w)
        self._history.append((count, cheap))
        if cheap > near:
            self._schedule(count, cheap / near)
            return Check(cheap if dual else math.nan, False, self._next, None)
        bound = self.certifier.tight(w, goal, dual)
        if bound.error <= goal:
            return Check(bound.error, True, count, bound)
        self._ratio = min(max(cheap / bound.error, 1.0), 1e4)
        self._schedule(count, MISS * bound.error / goal)
        return Check(bound.error, False, self._next, bound)

    def _schedule(self, count: int, factor: float) -> None:
        """Check again when the rate seen so far should have gained ``factor``; never far ahead."""
        ahead = max(3, math.ceil((GROWTH - 1) * count))
        if len(self._history) >= 2 and math.isfinite(factor):
            (k0, e0), (k1, e1) = self._history[-2:]
            if 0 < e1 < e0:
                rate = math.log(e0 / e1) / (k1 - k0)
                wait = math.ceil(math.log(max(factor, 1.01)) / rate)
                ahead = min(max(2, wait), 2 * ahead)
        self._next = count + ahead

    def final(self, iteration: Iteration, state: State) -> Check:
        """One tight bound."""
        w = self._embed(iteration, state)
        goal = self.goal(w)
        bound = self.certifier.tight(w, goal, self._dual(state))
        return Check(bound.error, bound.error <= goal, 0, bound)
