"""When an interior point is good enough, or shows that there is no solution.

What a step knows of itself says when a proof is worth an averaging; :class:`Duality` gives it.
"""

from __future__ import annotations

import math
from typing import Any

from ccmac.certificates.bound import Proved
from ccmac.certificates.duality import Duality
from ccmac.certificates.farkas import Farkas, Infeasibility
from ccmac.certificates.gap import DualityGap, Goal
from ccmac.certificates.recession import Recession, Recessions
from ccmac.certificates.stopping import Check, Evidence, Judged, Stopping, over
from ccmac.methods.interior import guided
from ccmac.methods.interior.block import RHO
from ccmac.methods.interior.feasible import decided, multipliers
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.rays import Ray, largest, straightened
from ccmac.methods.interior.settling import settled
from ccmac.methods.interior.state import InteriorState

RAY = 1e3  # kappa over tau beyond which there may be no solution
AGAIN = 10.0  # how much it must grow before that is looked at again
RAYS = 3  # directions tried, one from the other
FAR = 1e300
CLOSE = 1e-4  # relative gap at which the bounds that are active may be known
TRIES = 3  # settling steps from an interior point
MOST = 6  # and as many as long as
GAINS = 0.1  # the bound falls to this share of the one before
AGAIN_CLOSE = 1e-3  # times the gap at which that was tried in vain: the next time
LESS = 0.1  # the same from a warm start
HALF = 0.5  # of what the best proof lacked: less is a gain
VAIN = 3  # proofs in a row without one, after which nothing more is gained in double precision
LARGE = 1e3  # distance from the start at which a smaller solution is looked for, if there is one
FEASIBLE = 1.0  # share of the tolerance to which the equations are met before a proof is tried


class DualityStop(Stopping):
    """gap <= eps and violation <= tol, or a contradiction, or a free fall; all proved.

    ``crossing`` is a contradiction known before the first step.
    """

    def __init__(
        self,
        duality: Duality,
        goal: Goal,
        record: dict[str, Any],
        tests: tuple[Farkas, Recessions],
        crossing: Infeasibility | None = None,
    ) -> None:
        self.duality = duality
        self.goal = goal
        self.record = record
        self.farkas, self.recessions = tests
        self.crossing = crossing
        self._ray = RAY
        self._close = FAR
        self._warm = guided.CLOSE
        self._lacks = math.inf
        self._least = FAR
        self._vain = 0
        self._away = 0.0
        self._best: tuple[float, DualityGap, Check] | None = None
        self._decided: Infeasibility | bool | None = None  # whether there is a feasible point

    def memory(self) -> dict[str, Any]:
        """When a ray is looked at, when a proof is tried, and how often that was in vain."""
        known = {"ray": self._ray, "close": self._close, "warm": self._warm}
        undecided = self._decided is False  # anything else has ended the run
        return {**known, "least": self._least, "vain": self._vain, "undecided": undecided}

    def recall(self, memory: dict[str, Any]) -> None:
        """As the stored run would."""
        self._ray, self._close = float(memory["ray"]), float(memory["close"])
        self._warm = float(memory.get("warm", guided.CLOSE))
        self._least = float(memory.get("least", FAR))
        self._vain = int(memory.get("vain", 0))
        self._decided = False if memory.get("undecided") is True else None

    def due(self, iteration: int) -> bool:
        """Always: a look at what is known costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A proof where it promises to succeed."""
        assert isinstance(iteration, Interior)
        if self.crossing is not None:
            return Check(math.nan, verdict=self.crossing)
        if state.warm:
            if state.gap > self._warm:
                return Check(math.nan)
            self._warm = LESS * state.gap
            return self._proof(iteration, state)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio >= self._ray:
            self._ray = AGAIN * ratio
            verdict = self.verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        value = state.value / iteration.unit
        gap = state.gap / iteration.unit
        near = gap <= self.goal.epsilon(value)
        near = near and state.primal <= FEASIBLE * self.goal.tol * state.tau
        close = gap <= CLOSE * max(1.0, abs(value)) and state.primal <= CLOSE * state.tau
        self._lacks = math.inf
        if near or (close and gap <= self._close):
            self._close = AGAIN_CLOSE * gap
            check = self._settled(iteration, state, 1 if near else 2)
            if check is not None:
                return check
        if not near:
            return Check(gap)
        check = self._proof(iteration, state)
        self._vain += 1
        if self._lacks <= HALF * self._least:
            self._least = self._lacks
            self._vain = 0
        iteration.over = self._vain >= VAIN and ratio < 1.0
        if iteration.over or self._away > LARGE:
            return self._settled(iteration, state, 2, RHO) or check
        return check

    def _settled(
        self, iteration: Interior, state: InteriorState, first: int, pull: float = 0.0
    ) -> Check | None:
        """A proof after settling, tried from the step numbered ``first`` on; None: in vain.

        Until then steps are pulled to where the iteration began: where the solutions are many and
        their bounds far apart, an interior point ends in the middle of them, and the digits of
        large unknowns are not enough for a proof.
        """
        best = math.inf
        for step in range(1, MOST + 1):
            state = settled(iteration, state, pull if step < first else 0.0)
            if step < first:
                continue
            check = self._proof(iteration, state)
            if check.done:
                return check
            if step >= TRIES and not check.bound <= GAINS * best:
                return None
            best = check.bound
        return None

    def _proof(self, iteration: Interior, state: InteriorState) -> Check:
        x, z = iteration.point(state)
        return self._judged(*self.duality.gap(x, z[0], iteration.multipliers(state, state.tau)))

    def _judged(self, found: DualityGap, proved: Proved) -> Check:
        """Whether it is good enough; what it lacks is kept, and the one that lacks least."""
        goal = self.goal
        bound = found.bound(found.required(self.goal))
        self.record.update(found.record(goal))
        lacks = max(over(abs(bound), goal.epsilon(found.value)), found.violation / goal.tol)
        self._lacks = min(self._lacks, lacks)
        self._away = found.travelled
        check = Check(bound, Evidence("gap", found.ratio(goal)), proved)
        if lacks < (math.inf if self._best is None else self._best[0]):
            self._best = lacks, found, check
        return check

    def verdict(
        self, iteration: Interior, state: InteriorState
    ) -> Infeasibility | Recession | None:
        """Proof that there is no solution, if the iterate is one."""
        prices = iteration.multipliers(state, state.kappa)
        told = largest(iteration, state)
        conflict = self.farkas.test(multipliers(self.duality.reduced, prices))
        if conflict is not None:
            return conflict
        slack, price = told.value.max(axis=0)
        weight = float(slack / max(price, state.kappa))
        ray = Ray.of(iteration, state)
        for _ in range(RAYS):
            ray = straightened(iteration, state, ray, weight)
            fall = self.recessions.test(*ray.point(iteration))
            if fall is not None:
                return self._from_somewhere(iteration, fall)
        return None

    def _from_somewhere(
        self, iteration: Interior, fall: Recession
    ) -> Infeasibility | Recession | None:
        """The fall, where a feasible point is shown; else a contradiction, if there is a proof."""
        found = self._feasible(iteration)
        return fall if found is True else found or None

    def _feasible(self, iteration: Interior) -> Infeasibility | bool:
        """What is known of feasible points; asked once."""
        if self._decided is None:
            self._decided = decided(iteration.work, iteration.setup.equations)
        return self._decided

    def final(self, iteration: Judged, state: Any) -> Check:
        """The best proof of all, that of the last state included; after a stall a contradiction."""
        assert isinstance(iteration, Interior)
        if state.kappa > state.tau:
            verdict = self.verdict(iteration, state)
            if verdict is not None:
                return Check(math.nan, verdict=verdict)
        check = self._proof(iteration, state)
        if self._best is not None:
            self.record.update(self._best[1].record(self.goal))
            check = self._best[2]
        if not check.done and iteration.finished(state):
            found = self._feasible(iteration)
            if isinstance(found, Infeasibility):
                return Check(math.nan, verdict=found)
        return check
