"""cross-newton: smooth objectives with second derivatives, few sums.

Where the coupled rows give z, Newton's method on a growing span of multipliers
(:mod:`ccmac.methods.newton.eliminated`); else, where all may know the equations, one sum of the
reduced KKT system a Newton step (:mod:`ccmac.methods.newton.summed`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.certificates.stopping import Stop
from ccmac.certificates.structure import ExplicitBound, ExplicitJudge
from ccmac.errors import MethodRefused
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.newton.eliminated import EliminatedNewton
from ccmac.methods.newton.summed import SummedNewton
from ccmac.methods.options import option
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import planned_size
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.explicit import Explicit

USUAL = 7  # iterations of the summed form, as counted on random problems (6 to 9)


def summable(work: Workspace) -> Constraints | None:
    """The equations, where all may know them and every objective has a Hessian."""
    able = {"smooth", "strongly convex"} <= work.capabilities
    return work.gather_constraints() if able and work.curvature.has_hessian.all() else None


@dataclass(frozen=True)
class CrossNewton(Method):
    """Newton steps on what one averaging each can sum.

    Parameters
    ----------
    sketch : int, optional
        Random vectors that open the span of multipliers, in one averaging.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, np.sign(X[:, 0]), 3, loss="logistic")
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossNewton()).status
    'optimal'
    """

    name = "cross-newton"
    summary = "Newton's method for smooth losses, one averaging a step"
    needs = frozenset({"smooth"})
    reveals = "A_i (g_i'')^-1 A_i' w for multipliers w that all know, or eliminated Hessians"

    sketch: int | None = option(
        None, int, "random vectors that open the span of multipliers, in one averaging"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The form that fits the problem."""
        if (explicit := work.gather_explicit()) is not None:
            return self._eliminated(work, explicit, request)
        reduced = summable(work)
        if reduced is not None:
            return Prepared(
                SummedNewton(work, reduced),
                None,
                "summed",
                "few coupled and shared variables",
                {"rows": reduced.rank},
                USUAL,
                first_check=4,
            )
        curved = "strongly convex" in work.capabilities
        raise MethodRefused(
            "method cross-newton needs coupled rows that give z (every B_i a sparse multiple of "
            "the identity, no D; quadratic and strongly convex in x, smooth and entry by entry in "
            "z), or strongly convex objectives with Hessians and equations small enough to be "
            f"known to all (m = {work.problem.m}, q = {work.problem.q}); use "
            f"{'cross-apapc' if curved else 'cross-sliding'}"
        )

    def _eliminated(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        planned = planned_size(work.runtime, work.problem.m, request.costs)
        size = min(planned if self.sketch is None else self.sketch, explicit.rank)
        iteration = EliminatedNewton(work, explicit, size, request.seed)
        stopping = None
        if not request.reference:
            bound = ExplicitBound(work, explicit)
            judge = ExplicitJudge(bound, request.tol, iteration.refined)
            stopping = Stop(judge, every=True)
        settings = {
            "sketch": size,
            "span": iteration.capacity,
            "shared losses": "the same at all agents" if explicit.common else "summed",
        }
        return Prepared(
            iteration, stopping, "eliminated", "the coupled rows give z", settings, proves=True
        )
