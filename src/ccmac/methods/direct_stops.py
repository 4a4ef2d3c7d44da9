"""When a direct solution is good enough: by its distance to the solution, or by its value.

Without curvature on the kernel of all equations no distance to "the" solution can be bounded. The
gap of :class:`ccmac.certificates.duality.Duality` takes its place; a slope along a direction that
neither the equations nor any Hessian see is proved to be a free fall. Cost: one averaging each.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ccmac.certificates.duality import Duality, Prices
from ccmac.certificates.error_bound import Proved
from ccmac.certificates.gap import Goal
from ccmac.certificates.proof import Proof
from ccmac.certificates.stopping import Check, Judged, Stopping
from ccmac.inputs import Array
from ccmac.methods.base import Request
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced


class Solved(Protocol):
    """What the rules ask of an iteration; ``found`` is proved of the point of its last step."""

    proof: Proof
    found: Proved | None

    def point(self, state: Any) -> tuple[Array, Array]:
        """(flat x, copies of z)."""

    def prices(self, state: Any) -> Prices:
        """Of all equations, at the point."""

    def steepest(self) -> list[tuple[Array, Array]]:
        """(flat x, z) of directions that promise to let F fall without end."""


class DirectStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||), as the steps' own messages prove it."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def due(self, iteration: int) -> bool:
        """A look costs nothing."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """The point that the last step told of."""
        method: Solved = iteration  # type: ignore[assignment]
        found = method.found
        if found is None:  # a run that was resumed at its end
            found = method.proof.at(*method.point(state))
        return Check(found.error, found.error <= self.tol * max(1.0, found.size), found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """The same."""
        return self.check(iteration, state, 0)


class UndeterminedStop(Stopping):
    """F - F* <= eps and violation <= tol, or a free fall; both proved."""

    def __init__(
        self, work: Workspace, reduced: Reduced, request: Request, goal: Goal,
        record: dict[str, Any],
    ) -> None:  # fmt: skip
        problem = work.problem
        forms = [a.objective.polyhedral(problem.d[i], problem.q) for i, a in problem.agents.items()]
        ends = np.full((problem.n, 2 * problem.q), np.inf)
        ends[:, : problem.q] = -np.inf
        self.duality = Duality(work, reduced, forms, ends, (request.x0, request.z0))
        self.goal, self.record, self._tried = goal, record, False

    def due(self, iteration: int) -> bool:
        """Every point is worth a look."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """A free fall first."""
        method: Solved = iteration  # type: ignore[assignment]
        directions, self._tried = [] if self._tried else method.steepest(), True
        for direction in directions:
            verdict = self.duality.fall(*direction)
            if verdict is not None:
                return Check(np.nan, True, verdict=verdict)
        x, z = method.point(state)
        found, proved = self.duality.gap(x, z[0], method.prices(state))
        self.record.update(found.record(self.goal))
        return Check(found.bound(found.required(self.goal)), found.met(self.goal), proved)

    def final(self, iteration: Judged, state: Any) -> Check:
        """The same."""
        return self.check(iteration, state, 0)
