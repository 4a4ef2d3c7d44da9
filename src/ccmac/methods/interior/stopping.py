"""When an interior point is good enough, or shows that there is no solution.

What a step knows of itself says when a certificate is worth an averaging.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.gap import Duality, Goal
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Judged, Stopping
from ccmac.methods.interior.active import settled
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.verdict import alone, decided

HOPE = 0.1  # share of what is asked for at which a certificate is tried
VAIN = 3  # certificates in a row that gain nothing: the end of double precision
LOST = 1e12  # kappa over tau from which on another ray says nothing new
IDLE = 20  # steps in which neither the gap nor a ray gets better
GIVEN_UP = "the warm start was given up: its active rows did not settle"
SAVED = ("ray", "hope", "near", "vain", "nearest", "idle")  # what a stored run goes on with
Verdict = Callable[[Interior, InteriorState], Infeasibility | Recession | None]


class DualityStop(Stopping):
    """gap <= eps and violation <= tol, or a certificate that there is no solution."""

    def __init__(
        self, duality: Duality, goal: Goal, record: dict[str, Any], verdict: Verdict
    ) -> None:
        self.duality = duality
        self.goal = goal
        self.record = record
        self.verdict = verdict
        # kappa over tau beyond which there may be no solution
        self._ray = 1e3
        self._hope = HOPE
        # relative gap and residuals at which the active rows may be known
        self._near = 1e-2
        self._vain = 0.0
        self._nearest = math.inf
        self._idle = 0.0
        self._best: Check | None = None
        self._feasible: Infeasibility | bool | None = None
        self.given_up: list[str] = []

    @property
    def notes(self) -> list[str]:
        """Whether a warm start was in vain."""
        return self.given_up

    def memory(self) -> dict[str, Any]:
        """When rays and certificates are looked at, and how often that was in vain."""
        return {name: str(getattr(self, f"_{name}")) for name in SAVED}

    def recall(self, memory: dict[str, Any]) -> None:
        """As the stored run would."""
        for name in SAVED:
            setattr(self, f"_{name}", float(memory[name]))

    def due(self, iteration: int) -> bool:
        """Always: a look at what is known costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A certificate where it promises to succeed."""
        assert isinstance(iteration, Interior)
        if state.warm:
            check = Check(math.nan) if state.changed else self.judged(iteration, state)
            if not check.done:
                self.given_up = [GIVEN_UP]
            return check
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio >= self._ray:
            # it must grow by this before that is looked at again
            self._ray = 10.0 * ratio
            self._idle = 0
            verdict = self._verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        gap, near, seen = iteration.estimate(state, self.goal)
        self._idle = 0 if near < self._nearest else self._idle + 1
        self._nearest = min(near, self._nearest)
        iteration.over = ratio >= LOST or self._idle >= IDLE
        if near <= self._near:
            self._near = 1e-2 * near
            found = settled(iteration, state)
            if not found.changed:
                check = self.judged(iteration, found)
                if check.done:
                    return check
        if not seen <= self._hope:
            return Check(gap)
        check = self.judged(iteration, state)
        if not check.done:
            gained = self._best is None or check.ratio <= 0.5 * self._best.ratio
            self._vain = 0 if gained else self._vain + 1
            iteration.over = iteration.over or self._vain >= VAIN
            self._hope = min(HOPE, seen / min(max(check.ratio, 1.1), 1e3))
        if self._best is None or check.ratio < self._best.ratio:
            self._best = check
        return check

    def judged(self, iteration: Interior, state: InteriorState) -> Check:
        """The certificate at a state."""
        x, z = iteration.point(state)
        found, proved = self.duality.gap(x, z[0], *iteration.multipliers(state))
        return found.check(self.goal, proved, self.record)

    def final(self, iteration: Judged, state: Any) -> Check:
        """The last certificate, or the best one."""
        assert isinstance(iteration, Interior)
        if state.kappa > state.tau:
            verdict = self._verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        check = self.judged(iteration, state)
        best = self._best
        if best is not None and best.ratio < check.ratio:
            check = best
        if not check.done and iteration.finished(state):
            found = self._decided(iteration)
            if isinstance(found, Infeasibility):
                return Check(math.nan, verdict=found)
        return check

    def _verdict(
        self, iteration: Interior, state: InteriorState
    ) -> Infeasibility | Recession | None:
        """What a ray proves; a recession direction only where a feasible point is shown."""
        found = self.verdict(iteration, state)
        if isinstance(found, Infeasibility):
            return alone(iteration.work) or found
        if found is None:
            return None
        feasible = self._decided(iteration)
        return found if feasible is True else feasible or None

    def _decided(self, iteration: Interior) -> Infeasibility | bool:
        """What is known of feasible points; asked once."""
        if self._feasible is None:
            self._feasible = decided(iteration.work)
        return self._feasible
