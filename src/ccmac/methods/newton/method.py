"""cross-newton: smooth objectives with second derivatives, few sums.

Where the coupled rows give z, Newton's method that everybody runs alone on columns that were turned
(:mod:`ccmac.methods.newton.compressed`), or on a growing span of multipliers
(:mod:`ccmac.methods.newton.eliminated`); else, where all may know the equations, one sum of the
reduced KKT system a Newton step (:mod:`ccmac.methods.newton.summed`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.certificates.stopping import Stop
from ccmac.certificates.structure import ExplicitBound, ExplicitJudge
from ccmac.errors import MethodRefused
from ccmac.ledger import Cost
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.newton.compressed import RangeNewton, has_range
from ccmac.methods.newton.eliminated import EliminatedNewton
from ccmac.methods.newton.summed import SummedNewton
from ccmac.methods.options import option
from ccmac.plans import SKETCH, SUM, Alternative
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import planned_size
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.explicit import Explicit

REVEAL = "range: columns may be sent once, turned (A_i H_i^-1 A_i'); sketch: single images of them"
RANGE = "A_i H_i^-1 A_i' in full: the columns, turned by a rotation of their owner"
USUAL = 7  # iterations of the summed form, as counted on random problems (6 to 9)


def summable(work: Workspace) -> Constraints | None:
    """The equations, where all may know them and every objective has a Hessian."""
    able = {"smooth", "strongly convex"} <= work.capabilities
    return work.gather_constraints() if able and work.curvature.has_hessian.all() else None


def steps_after(size: int, work: Workspace, explicit: Explicit, request: Request) -> int:
    """Vectors that follow a sketch of ``size``: of the directions left as many as their condition
    asks for, if all were alike.
    """
    table = work.curvature
    bent = float(table.L_z.sum()) * float(np.sum(explicit.norms**2)) / explicit.beta**2
    mu = float(table.mu_x[table.d > 0].min(initial=math.inf))
    condition = 1.0 + bent / (mu * max(explicit.rank, 1))
    needed = math.sqrt(condition) * math.log(2.0 / min(request.plan_tol, 1.0)) / 2
    return max(2, min(explicit.rank - size, math.ceil(min(needed, 1e9))))


@dataclass(frozen=True)
class CrossNewton(Method):
    """Newton steps on what one averaging each can sum.

    Parameters
    ----------
    sketch : int, optional
        Random vectors that open the span of multipliers, in one averaging.
    reveal : {"range", "sketch"}, optional
        "range": columns may be sent once, turned; "sketch": single images of them.

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

    reveal: str | None = option(None, str, REVEAL, choices=("range", "sketch"))

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The form that fits the problem."""
        if (explicit := work.gather_explicit()) is not None:
            if self.takes_range(work, explicit, request):
                return self._range(work, explicit, request)
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

    def takes_range(self, work: Workspace, explicit: Explicit, request: Request) -> bool:
        """Whether the columns are sent, turned: if asked for, or where cheaper and nobody hides."""
        if self.reveal == "sketch" or self.sketch is not None or not has_range(work, explicit):
            return False
        hidden = work.runtime.averaging.hides or work.runtime.apart
        if self.reveal == "range" or hidden:
            return self.reveal == "range"
        ways = (self.by_range(work), self.by_sketch(work, explicit, request))
        bills = [request.costs.bill(way.cautious) for way in ways]
        return bills[0] <= bills[1]

    def by_range(self, work: Workspace) -> Alternative:
        """All columns once; each proof refines the point once."""
        m = work.problem.m
        columns = int(work.curvature.d.sum())
        average = work.runtime.average_cost
        return Alternative(
            SUM,
            self.name,
            average(m * columns) + average(m),
            Cost(argmins=1),
            10,
            2.0,
            FLOAT_BYTES * columns * (2 * m + columns),
            RANGE,
            proofs=2 * average(m + 2) + average(columns),
        )

    def by_sketch(self, work: Workspace, explicit: Explicit, request: Request) -> Alternative:
        """A block of vectors once, then one a step."""
        m = work.problem.m
        average = work.runtime.average_cost
        planned = planned_size(work.runtime, m, request.costs)
        size = min(planned if self.sketch is None else self.sketch, explicit.rank)
        steps = steps_after(size, work, explicit, request)
        own = Cost(argmins=3) if explicit.common else Cost(argmins=2, gradients=3)
        return Alternative(
            SKETCH,
            self.name,
            average(m * (1 + size)),
            own + average(m),
            steps,
            4.0,
            2 * FLOAT_BYTES * m * (size + steps),
            self.reveals,
            proofs=5 * average(m),
        )

    def _range(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        iteration = RangeNewton(work, explicit)
        stopping = None
        if not request.reference:
            bound = ExplicitBound(work, explicit)
            bound.mu *= iteration.convexity()
            judge = ExplicitJudge(bound, request.tol, iteration.refined)
            stopping = Stop(judge, every=True)
        settings = {"columns": len(iteration.E), "reveals": "A_i H_i^-1 A_i'"}
        why = "few columns: all of them once, turned"
        return Prepared(iteration, stopping, "range", why, settings, proves=True)

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
