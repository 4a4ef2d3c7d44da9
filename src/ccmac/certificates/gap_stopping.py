"""Stopping by a proved gap: F - F* <= eps and scaled feasibility <= eps for a stated radius, unit
rows violated by tol at most.

What was proved last is written to Result.certificates: eps, the radius asked for (supplied, or
estimated as twice the distance travelled, at least 1), the largest radius it holds for, the bound.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ccmac.certificates.duality import Duality, Prices
from ccmac.certificates.error_bound import Bound
from ccmac.certificates.gap import Gap, Goal
from ccmac.certificates.recession import Recession
from ccmac.certificates.stopping import Check, Judged, Stopping
from ccmac.inputs import Array
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

FIRST_CHECK = 8
CHECK_AGAIN = 1.25  # times the iterations done
NEAR = 4.0
SLOPING = (
    "the objective seems to fall without end along a direction without curvature, by too little "
    "for a proof: nothing is proved of its least value; add curvature, limits or equations"
)


class Prover(Protocol):
    """An iteration that can bound its own gap; ``found`` is what it adds to the record."""

    found: dict[str, float]

    def quick_gap(self, state: Any) -> Gap | None:
        """A cheap bound (None: there is none yet)."""

    def tight_gap(self, state: Any) -> Gap:
        """The best bound that affine calls and one gradient give."""


class GapStop(Stopping):
    """Check now and then; take the tight bound when the quick one is near the goal.

    ``record`` is Result.certificates. With ``scheduled`` there are no checks on the way: the
    schedule's own theorem ends the run, and the bound is computed once for the record.
    """

    def __init__(
        self, prover: Prover, goal: Goal, record: dict[str, Any], *, scheduled: bool = False
    ) -> None:
        self.prover = prover
        self.goal = goal
        self.record = record
        self.scheduled = scheduled
        self._next = FIRST_CHECK

    def memory(self) -> dict[str, Any]:
        """The schedule."""
        return {"next": self._next}

    def recall(self, memory: dict[str, Any]) -> None:
        """Check at the iterations at which the stored run would have."""
        self._next = int(memory["next"])

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return not self.scheduled and iteration >= self._next

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """Quick, then tight if near."""
        self._next = math.ceil(CHECK_AGAIN * count)
        quick = self.prover.quick_gap(state)
        if quick is None:
            return Check(math.nan, False)
        bound = quick.bound(quick.required(self.goal))
        if bound > NEAR * self.goal.epsilon(quick.value):
            self.note(quick)
            return Check(bound, False)
        return self._tight(state)

    def _tight(self, state: Any, *, over: bool = False) -> Check:
        """``over``: the schedule's theorem proves the gap."""
        found = self.prover.tight_gap(state)
        self.note(found)
        bound = found.bound(found.required(self.goal))
        scheduled = over and found.violation <= self.goal.tol
        met = scheduled or found.met(self.goal)
        self.record["proved_by"] = "schedule" if scheduled else "bound" if met else "nothing"
        return Check(bound, met, as_bound(found))

    def note(self, found: Gap) -> None:
        """Write what is proved now."""
        self.record.update(found.record(self.goal))
        self.record.update(self.prover.found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One tight bound; a completed schedule needs it for the rows alone."""
        return self._tight(state, over=self.scheduled and iteration.finished(state))


class ReportedGapStop(GapStop):
    """For methods that bound their gap as they go: looks at every iteration, at no cost."""

    def due(self, iteration: int) -> bool:
        """Always."""
        return True


def as_bound(found: Gap) -> Bound:
    """For the Result: no Euclidean error is claimed where F is not strongly convex."""
    error = found.error if math.isfinite(found.error) else math.nan
    return Bound(error, found.slope, found.distance, found.w, found.gradient, found.price)


class Solved(Protocol):
    """What the rule asks of an iteration that solves directly."""

    def prices(self, state: Any) -> Prices:
        """Of all equations, at the point."""

    def steepest(self) -> list[tuple[Array, Array, float]]:
        """(flat x, z) of directions that promise to let F fall without end, and the share of all
        slopes that is rounding along them.
        """


class UndeterminedStop(Stopping):
    """F - F* <= eps and violation <= tol, or a free fall; both proved, by one averaging each.

    Without curvature on the kernel of all equations no distance to "the" solution can be bounded,
    but a :class:`Duality` bounds values; a slope along a direction that neither the equations nor
    any Hessian see is proved to be a free fall.
    """

    def __init__(
        self,
        work: Workspace,
        reduced: Reduced,
        start: tuple[Array, Array],
        goal: Goal,
        record: dict[str, Any],
    ) -> None:
        self.work = work
        problem = work.problem
        forms = [a.objective.polyhedral(problem.d[i], problem.q) for i, a in problem.agents.items()]
        ends = np.full((problem.n, 2 * problem.q), np.inf)
        ends[:, : problem.q] = -np.inf
        self.duality = Duality(work, reduced, forms, ends, start)
        self.goal = goal
        self.record = record
        self._tried = False

    def due(self, iteration: int) -> bool:
        """Every point is worth a look."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A free fall first."""
        method: Solved = iteration  # type: ignore[assignment]
        verdict = None if self._tried else self.fall(method)
        self._tried = True
        if verdict is not None:
            return Check(np.nan, True, verdict=verdict)
        x, z = iteration.point(state)
        found, proved = self.duality.gap(x, z[0], method.prices(state))
        self.record.update(found.record(self.goal))
        return Check(found.bound(found.required(self.goal)), found.met(self.goal), proved)

    def fall(self, method: Solved) -> Recession | None:
        """A free fall that is proved; a slope that proves nothing is doubted."""
        for direction in method.steepest():
            verdict = self.duality.fall(*direction)
            if verdict is not None:
                return verdict
            if self.duality.slope_seen and SLOPING not in self.work.doubts:
                self.work.doubts.append(SLOPING)
        return None

    def final(self, iteration: Judged, state: Any) -> Check:
        """The same."""
        return self.check(iteration, state, 0)
