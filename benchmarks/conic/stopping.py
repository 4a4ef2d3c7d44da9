"""When an interior point is good enough, or shows that there is no solution.

What a step knows of itself says when a certificate is worth an averaging.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ccmac.certificates.bound import Proved
from ccmac.certificates.farkas import Infeasibility
from ccmac.certificates.gap import Goal
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Evidence, Judged, Stopping
from conic.active import settled
from conic.duality import Duality, DualityGap
from conic.iteration import Interior, InteriorState

RAY = 1e3  # kappa over tau beyond which there may be no solution
AGAIN = 10.0  # how much it must grow before that is looked at again
NEAR = 1e-2  # relative gap and residuals at which the active rows may be known
CLOSER = 1e-2  # times those at which they were tried in vain: the next time
HOPE = 0.1  # share of what is asked for at which a certificate is tried
VAIN = 3  # certificates in a row that gain nothing: the end of double precision
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
        self._ray = RAY
        self._hope = HOPE
        self._near = NEAR
        self._vain = 0
        self._best: Check | None = None

    def memory(self) -> dict[str, Any]:
        """When a ray is looked at, when a certificate is tried, and how often that was in vain."""
        return {"ray": self._ray, "hope": self._hope, "near": self._near, "vain": self._vain}

    def recall(self, memory: dict[str, Any]) -> None:
        """As the stored run would."""
        self._ray = float(memory["ray"])
        self._hope = float(memory["hope"])
        self._near = float(memory["near"])
        self._vain = int(memory["vain"])

    def due(self, iteration: int) -> bool:
        """Always: a look at what is known costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A certificate where it promises to succeed."""
        assert isinstance(iteration, Interior)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio >= self._ray:
            self._ray = AGAIN * ratio
            verdict = self.verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        gap, near, seen = iteration.estimate(state, self.goal)
        if near <= self._near and not iteration.system.turned:
            self._near = CLOSER * near
            check = self.judged(iteration, settled(iteration, state))
            if check.done:
                return check
        if not seen <= self._hope:
            return Check(gap)
        check = self.judged(iteration, state)
        if not check.done:
            gained = self._best is None or check.ratio <= 0.5 * self._best.ratio
            self._vain = 0 if gained else self._vain + 1
            iteration.over = self._vain >= VAIN
            self._hope = min(HOPE, seen / min(max(check.ratio, 1.1), 1e3))
        if self._best is None or check.ratio < self._best.ratio:
            self._best = check
        return check

    def judged(self, iteration: Interior, state: InteriorState) -> Check:
        """The certificate at a state."""
        x, z = iteration.point(state)
        return self.checked(*self.duality.gap(x, z[0], *iteration.multipliers(state)))

    def checked(self, found: DualityGap, proved: Proved) -> Check:
        self.record.update(found.record(self.goal))
        bound = found.bound(self.goal.required(found.travelled))
        return Check(bound, Evidence("gap", found.ratio(self.goal)), proved)

    def final(self, iteration: Judged, state: Any) -> Check:
        """The last certificate, or the best one."""
        assert isinstance(iteration, Interior)
        if state.kappa > state.tau:
            verdict = self.verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        check = self.judged(iteration, state)
        best = self._best
        return check if best is None or check.ratio <= best.ratio else best
