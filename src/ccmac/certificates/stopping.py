"""When to stop: a certified bound checked now and then, or an observer's error to a reference.

Checks are charged to ``monitor``. A look with the method's own dual state is cheap; only when it
gives hope is the tight bound taken at the repaired point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ccmac.certificates.certifier import Certifier
from ccmac.certificates.error_bound import Bound, Dual, Look, Proved
from ccmac.certificates.infeasibility import Infeasibility
from ccmac.certificates.proof import Proof
from ccmac.certificates.recession import Recession
from ccmac.inputs import Array
from ccmac.realizations.base import Interval, Realized
from ccmac.runtime import Runtime

FIRST_CHECK = 5
LOOK_AGAIN = 1.2  # times the iterations done
MISS = 1.5  # after a tight bound that fell short, wait for this much more than it lacked
NEAR = 100.0  # infeasibility over the goal below which a point without prices is looked at closely
REPAIRABLE = 1000.0  # the same for a point with prices
STATIONARY = 0.01  # a stationary part below this share of the infeasible part is none
RATIO = 3.0  # what a tight bound is taken to gain on the stationary part before the first is known


class Judged(Protocol):
    """What a stopping rule asks of an iteration; the state is the iteration's own."""

    def embedded(self, state: Any, realized: Realized) -> Array:
        """The iterate as an execution vector of ``realized``."""

    def dual(self, state: Any, realized: Realized) -> Dual | None:
        """The dual state there, if the method keeps one on ``realized``."""

    def point(self, state: Any) -> tuple[Array, Array]:
        """(flat x, rows of z copies) in the user's units."""

    def proved(self, state: Any) -> Proved | None:
        """What the messages of the last step prove of the point that they told of, if anything."""

    def finished(self, state: Any) -> bool:
        """Whether the method's own schedule is over."""


@dataclass(frozen=True)
class Check:
    """What a check found: a bound in user units, and whether the goal is met.

    A ``verdict`` ends the run too: proof that there is no solution.
    """

    bound: float
    done: bool
    certificate: Bound | Proved | None = None
    verdict: Infeasibility | Recession | None = None

    def __post_init__(self) -> None:
        """An infinite bound meets no goal, however large the point it is compared with."""
        if math.isinf(self.bound) and self.verdict is None:
            object.__setattr__(self, "done", False)

    def agreed(self, runtime: Runtime) -> Check:
        """Where processes round differently: what all of them find, and the largest bound.

        One averaging where something is claimed. ``notes.drift`` becomes the largest of all.
        """
        if not runtime.notes.led or (self.certificate is None and not self.done):
            return self
        found = self.certificate
        notes = runtime.notes
        error = math.nan if found is None else found.error
        mine = [self.bound, error, notes.drift, float(self.done), float(self.verdict is not None)]
        told = runtime.gather(np.tile(mine, (len(runtime.owned), 1)))
        bound, error, notes.drift = (float(v) for v in told[:, :3].max(axis=0))
        done, proved = (bool(v) for v in told[:, 3:].min(axis=0))
        done = done and proved == bool(told[:, 4].max())
        if found is not None:
            found = replace(found, error=error)
        return Check(bound, done, found, self.verdict if proved else None)


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
    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """Look at the state after ``count`` iterations."""

    @abstractmethod
    def final(self, iteration: Judged, state: Any) -> Check:
        """The best statement about the last state, whatever ended the run."""


class CertifiedStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||), proved by a :class:`Certifier`.

    Works for any method: its point is embedded in the certifier's realization; a method that shares
    that realization lends its dual state for a cheap look.
    """

    def __init__(self, certifier: Certifier, tol: float) -> None:
        self.certifier = certifier
        self.tol = tol
        self._next = FIRST_CHECK
        self._ratio = RATIO
        self._history: list[tuple[int, float]] = []
        self._stored = False  # the dual state comes from a file and has not been looked at yet
        self._dual = True  # it is believed

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
        """Continue the schedule; nothing that a bound rests on is taken from the memory.

        A stored interval may only be wider than the one found here, and the dual state is verified
        before it is used.
        """
        self._next, self._ratio = int(memory["next"]), min(max(float(memory["ratio"]), 1.0), 1e4)
        self._history = [(int(k), float(e)) for k, e in memory["history"]]
        low, high, source = memory["interval"]
        own = self.certifier.realized.system.interval
        if not (0 < float(low) <= float(high) < math.inf and isinstance(source, str)):
            raise ValueError("the stored interval is none")
        if low <= own.low and high >= own.high:
            word = "estimated" if source == "estimated" else own.source
            self.certifier.realized.system.interval = Interval(float(low), float(high), word)
        self._stored = True

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return iteration >= self._next

    def _look(self, iteration: Judged, state: Any) -> tuple[Look, float]:
        """The cheap look, and the accuracy wanted: tol max(1, ||(x, z)||) in user units."""
        realized = self.certifier.realized
        w = iteration.embedded(state, realized)
        dual = iteration.dual(state, realized)
        if self._stored and dual is not None:
            self._stored, self._dual = False, self.certifier.verified(w, dual, self.tol)
        look = self.certifier.look(w, dual if self._dual else None)
        return look, self.tol * max(1.0, look.size)

    @property
    def notes(self) -> list[str]:
        """What the checks found wrong with the certified interval."""
        return self.certifier.notes

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A cheap look first; the tight bound only when that gives hope."""
        look, goal = self._look(iteration, state)
        if not math.isfinite(look.size):
            self._next = count + FIRST_CHECK  # by then the driver has noticed the blow-up
            return Check(math.nan, False)
        seen = math.nan if look.bound is None else look.bound.error
        if look.bound is not None and seen <= goal:
            if self.certifier.confirmed(look):
                return Check(seen, True, look.bound)
            self._next = count + 1  # with the interval as mended
            return Check(seen, False)
        excess = self._excess(look, goal)
        self._history.append((count, excess))
        if excess > 1.0:
            self._schedule(count, excess)
            return Check(seen, False)
        bound = self.certifier.tight(look, goal)
        if bound.error <= goal:
            return Check(bound.error, True, bound)
        if look.bound is not None and bound.stationarity > 0:
            self._ratio = min(max(look.bound.stationarity / bound.stationarity, 1.0), 1e4)
        self._schedule(count, MISS * bound.error / goal)
        return Check(bound.error, False, bound)

    def _excess(self, look: Look, goal: float) -> float:
        """How many times too large the look is for a tight bound to be worth its price.

        A repair removes the infeasible part at a price that grows with its logarithm only; of the
        stationary part it leaves 1/``ratio``. Where the point is stationary, going on is as fast as
        a repair: the look itself must meet the goal.
        """
        stationary, infeasible = look.parts
        if look.dual is None:
            return infeasible / max(NEAR * goal, 1e-13)
        if stationary <= STATIONARY * infeasible:
            return infeasible / goal
        return max(stationary / (self._ratio * goal), infeasible / max(REPAIRABLE * goal, 1e-13))

    def _schedule(self, count: int, factor: float) -> None:
        self._next = count + steps_ahead(self._history, count, factor)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One tight bound."""
        look, goal = self._look(iteration, state)
        if not math.isfinite(look.size):
            return Check(math.nan, False)
        bound = self.certifier.tight(look, goal)
        return Check(bound.error, bound.error <= goal, bound)


class ProofStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||), proved in the user's own rows (:class:`Proof`).

    Each check is a proof; they are spaced by the rate at which the proved error falls. Where the
    steps' own messages prove something, it is looked at after each of them.
    """

    def __init__(self, proof: Proof, tol: float, first: int = FIRST_CHECK) -> None:
        self.proof = proof
        self.tol = tol
        self._next = first
        self._history: list[tuple[int, float]] = []

    def memory(self) -> dict[str, Any]:
        """The schedule and the errors seen."""
        return {"next": self._next, "history": [list(pair) for pair in self._history]}

    def recall(self, memory: dict[str, Any]) -> None:
        """Continue the schedule."""
        self._next = int(memory["next"])
        self._history = [(int(k), float(e)) for k, e in memory["history"]]

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return iteration >= self._next

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """One proof."""
        told = iteration.proved(state)
        found = self.proof.at(*iteration.point(state)) if told is None else told
        goal = self.tol * max(1.0, found.size)
        if found.error <= goal:
            return Check(found.error, True, found)
        if math.isfinite(found.error):
            self._history.append((count, found.error))
        ahead = steps_ahead(self._history, count, MISS * found.error / goal)
        self._next = count + (ahead if told is None else 1)
        return Check(found.error, False, found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One proof."""
        return self.check(iteration, state, 0)


def steps_ahead(history: list[tuple[int, float]], count: int, factor: float) -> int:
    """Steps after which the rate seen so far should have gained ``factor``; never far ahead."""
    ahead = max(3, math.ceil((LOOK_AGAIN - 1) * count))
    if len(history) >= 2 and math.isfinite(factor):
        (k0, e0), (k1, e1) = history[-2:]
        if 0 < e1 < e0 and k1 > k0:
            rate = math.log(e0 / e1) / (k1 - k0)
            wait = math.ceil(math.log(max(factor, 1.01)) / rate)
            ahead = min(max(2, wait), 2 * ahead)
    return ahead
