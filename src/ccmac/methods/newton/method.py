"""cross-newton: smooth objectives with second derivatives, few sums.

Where the coupled rows give z, Newton's method on a growing span of prices
(:mod:`ccmac.methods.newton.eliminated`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.certificates.explicit import ExplicitProof, ExplicitStop
from ccmac.errors import MethodRefused
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.newton.eliminated import EliminatedNewton
from ccmac.methods.options import option
from ccmac.methods.sketched import planned_size
from ccmac.workspace import Workspace
from ccmac.workspace.explicit import Explicit


@dataclass(frozen=True)
class CrossNewton(Method):
    """Newton steps on what one averaging each can sum."""

    name = "cross-newton"
    summary = "Newton's method for smooth losses, where the coupled rows give z"
    needs = frozenset({"smooth"})

    sketch: int | None = option(
        None, int, "random vectors that open the span of prices, in one averaging"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The form that fits the problem."""
        if work.explicit is not None:
            return self._eliminated(work, work.explicit, request)
        raise MethodRefused(
            "method cross-newton needs coupled rows that give z (every B_i a multiple of the "
            "identity, quadratic and strongly convex in x, smooth and entry by entry in z, no D); "
            "use cross-apapc or cross-continuation"
        )

    def _eliminated(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        planned = planned_size(work.runtime, work.problem.m, request.costs)
        size = min(planned if self.sketch is None else self.sketch, explicit.rank)
        iteration = EliminatedNewton(work, explicit, size, request.seed)
        stopping = None
        if not request.reference:
            stopping = ExplicitStop(ExplicitProof(work, explicit), request.tol)
        settings = {
            "sketch": size, "span": iteration.capacity,
            "shared losses": "the same at all agents" if explicit.common else "summed",
            "reveals": "A_i (g_i'')^-1 A_i' w for prices w that all know",
        }  # fmt: skip
        return Prepared(
            iteration, stopping, "eliminated", "the coupled rows give z", settings, proves=True
        )
