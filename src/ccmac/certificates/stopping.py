"""When a run may end: evidence that its goal is met, and how often it is looked for.

A :class:`Judge` knows a formula (an error bound, a gap); :class:`Stop` asks it at chosen iterations
and knows nothing but ratios of bounds to goals. Every status but those of ends without success
passes through :func:`status_of`. Checks are charged to ``monitor``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ccmac.certificates.recession import Recession
from ccmac.inputs import Array
from ccmac.realizations.base import Realized
from ccmac.runtime import Runtime

if TYPE_CHECKING:
    from ccmac.certificates.bound import Dual, Proved
    from ccmac.certificates.farkas import Infeasibility

FIRST_CHECK = 5


class Judged(Protocol):
    """What a stopping rule asks of an iteration; the state is the iteration's own."""

    def embedded(self, state: Any, realized: Realized) -> Array:
        """The iterate as an execution vector of ``realized``."""

    def dual(self, state: Any, realized: Realized) -> Dual | None:
        """The dual state there, if the method keeps one on ``realized``."""

    def point(self, state: Any) -> tuple[Array, Array]:
        """(flat x, rows of z copies) in the user's units."""

    def proved(self, state: Any) -> Proved | None:
        """What the last step's messages prove of their point, if anything."""

    def finished(self, state: Any) -> bool:
        """Whether the method's own schedule is over."""


def over(value: float, goal: float) -> float:
    """value / goal; infinite where either is no number: an infinite goal is met by nothing."""
    if not (math.isfinite(value) and math.isfinite(goal)):
        return math.inf
    if value <= 0.0:
        return 0.0
    return value / goal if goal > 0 else math.inf


@dataclass(frozen=True)
class Evidence:
    """What a run may end on: a bound, a gap, a schedule's theorem or a reference.

    ``ratio`` is what is known over what was asked for, ``rests`` on what that rests.
    """

    kind: str
    ratio: float
    rests: str = "proved"

    @property
    def met(self) -> bool:
        """Whether the goal is met; what is no number meets none."""
        return self.ratio <= 1.0

    def resting_on(self, word: str) -> Evidence:
        """The same, resting on something else."""
        return replace(self, rests=word)


@dataclass(frozen=True)
class Check:
    """What a check found: a bound in user units, evidence, or proof that there is no solution."""

    bound: float
    evidence: Evidence | None = None
    certificate: Proved | None = None
    verdict: Infeasibility | Recession | None = None

    @property
    def done(self) -> bool:
        """Whether the run may end."""
        return self.verdict is not None or (self.evidence is not None and self.evidence.met)

    @property
    def ratio(self) -> float:
        """What is known over what was asked for; infinite where nothing is known."""
        return math.inf if self.evidence is None else self.evidence.ratio

    def agreed(self, runtime: Runtime) -> Check:
        """Where processes round differently: what all of them find, and the largest bound.

        One averaging where something is claimed.
        """
        if not runtime.notes.led or (self.certificate is None and not self.done):
            return self
        found = self.certificate
        evidence = self.evidence
        error = math.nan if found is None else found.error
        mine = [self.bound, error, self.ratio, self.verdict is not None]
        table = runtime.gather(np.tile(mine, (len(runtime.owned), 1)).astype(np.float64))
        bound, error, ratio, some = table.max(axis=0).tolist()
        everybody = bool(table[:, 3].min())
        if found is not None:
            found = replace(found, error=error)
        if evidence is not None:
            evidence = None if some and not everybody else replace(evidence, ratio=ratio)
        return Check(bound, evidence, found, self.verdict if everybody else None)


def check_of(found: Proved, tol: float, rests: str = "proved") -> Check:
    """||error|| <= tol max(1, ||(x, z)||)."""
    ratio = over(found.error, tol * max(1.0, found.size))
    return Check(found.error, Evidence("bound", ratio, rests), found)


def status_of(ended: str, check: Check | None) -> str:
    """The status of a run that ``ended`` by itself or by a limit: no other way leads to success.

    Proof that there is no solution comes first, then evidence that meets its goal; a limit never
    changes what either says.
    """
    if check is not None and check.verdict is not None:
        return "unbounded" if isinstance(check.verdict, Recession) else "infeasible"
    evidence = None if check is None else check.evidence
    if ended not in ("diverged", "interrupted") and evidence is not None and evidence.met:
        return "converged" if evidence.rests == "estimated" else "optimal"
    return ended if ended in ("max_iterations", "interrupted", "diverged") else "stalled"


class Judge(ABC):
    """Judges points by one formula."""

    notes: Sequence[str] = ()  # what was found wrong and mended
    costly = False  # whether a check costs as much as several steps

    def estimate(self, iteration: Judged, state: Any) -> tuple[float, float] | None:
        """(an estimate of the bound that costs nothing, over the goal), if there is one."""
        return None

    @abstractmethod
    def check(self, iteration: Judged, state: Any) -> Check:
        """Look at the state."""

    def final(self, iteration: Judged, state: Any) -> Check:
        """The best statement about the last state, whatever ended the run."""
        return self.check(iteration, state)


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


class Stop(Stopping):
    """Asks a judge, first at iteration ``first``, then where the rate seen promises success.

    ``rate`` is a rate that was planned (the logarithm gained an iteration). With ``every`` the
    judge is asked at every iteration; with a ``first`` of infinity at the end alone. Where there is
    an estimate for nothing, the judge is asked once that meets the goal, and again when it has
    fallen by what the judge found lacking.
    """

    def __init__(
        self, judge: Judge, *, first: float = FIRST_CHECK, every: bool = False, rate: float = 0.0
    ) -> None:
        self.judge = judge
        self.every = every
        self.rate = rate
        self._next = float(first)
        self._hope = 1.0
        self._last: tuple[int, float] | None = None

    @property
    def notes(self) -> list[str]:
        """The judge's."""
        return list(self.judge.notes)

    def memory(self) -> dict[str, Any]:
        """The schedule."""
        last = None if self._last is None else list(self._last)
        return {"next": str(self._next), "hope": self._hope, "last": last}

    def recall(self, memory: dict[str, Any]) -> None:
        """Continue the schedule."""
        self._next = float(memory["next"])
        self._hope = float(memory["hope"])
        last = memory["last"]
        self._last = None if last is None else (int(last[0]), float(last[1]))

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return self.every or iteration >= self._next

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """One look, unless an estimate leaves no hope."""
        seen = self.judge.estimate(iteration, state)
        if seen is not None and not seen[1] <= self._hope:
            return Check(seen[0])
        check = self.judge.check(iteration, state)
        if not check.done and seen is not None:
            self._hope = seen[1] / max(check.ratio, 1.1)
        elif not check.done:
            self._next = float(count + self._ahead(count, check.ratio))
        return check

    def _ahead(self, count: int, ratio: float) -> int:
        """Steps after which the goal should be met, of two rates by the faster; never far ahead."""
        last = self._last
        rate = self.rate
        if math.isfinite(ratio):
            self._last = (count, ratio)
            if last is not None and last[0] < count and 0 < ratio < last[1]:
                rate = max(rate, math.log(last[1] / ratio) / (count - last[0]))
        blind = max(3, math.ceil(0.2 * count))
        if not (rate > 0 and math.isfinite(ratio)):
            return blind
        far = max(10, count) if self.rate or self.judge.costly else 2 * blind
        return max(1, math.ceil(min(math.log(max(ratio, 1.0)) / rate, far)))

    def final(self, iteration: Judged, state: Any) -> Check:
        """The judge's last word."""
        return self.judge.final(iteration, state)
