"""cross-continuation: smooth objectives without strong convexity.

``schedule="certified"`` runs the paper's schedule for a radius R (``pinned={"radius": R}``), the
default runs stages ended by a computable test and proves the criterion at exit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.gap import Gap, GapCertifier, Goal, execution_radius
from ccmac.certificates.gap_stopping import GapStop, ReportedGapStop
from ccmac.errors import InputError, MethodRefused
from ccmac.linalg.filters import outer_degree
from ccmac.methods.base import Solver, State
from ccmac.methods.continuation.agd import AcceleratedGradient
from ccmac.methods.continuation.practical import PracticalContinuation
from ccmac.methods.continuation.schedule import certified_schedule, gradient_steps
from ccmac.methods.continuation.steps import Continuation, ScheduledIteration
from ccmac.methods.convex import goal_of, positive, realize
from ccmac.methods.method import Context, Method, Prepared
from ccmac.realizations.base import Realized

Array = NDArray[np.float64]
SCHEDULES = (None, "practical", "certified")


class SmoothIteration(ScheduledIteration):
    """A solver of the smooth convex regime that can bound its gap."""

    def __init__(
        self, name: str, solver: Solver, certifier: GapCertifier, goal: Goal
    ) -> None:  # fmt: skip
        super().__init__(name, solver, certifier.realized)
        self.goal, self.certifier = goal, certifier

    def quick_gap(self, state: State) -> Gap | None:
        """At the iterate with its own dual: 1 gradient, 1 residual, an averaging.

        The practical schedule knows its bound; between stages there is none.
        """
        if isinstance(self.solver, PracticalContinuation):
            return self.solver.stored(state) if state.scalars["fresh"] else None
        w = state.vectors["w"]
        gradient = self.realized.objective.gradient(w)
        return self.certifier.gap(w, gradient, state.vectors["p"])

    def tight_gap(self, state: State) -> Gap:
        """At the repaired point."""
        return self.certifier.tight_smooth(state.vectors["w"], self.goal)


def prepare_continuation(ctx: Context) -> Prepared:
    """The realization asked for, then the schedule asked for."""
    if ctx.schedule not in SCHEDULES:
        raise InputError(f"schedule {ctx.schedule!r} is unknown; take 'practical' or 'certified'")
    realized, goal = realize(ctx), goal_of(ctx)
    if not realized.objective.L > 0:
        raise MethodRefused(
            "cross-continuation needs curvature: F is linear (L = 0); use cross-sliding"
        )
    found: dict[str, Any] = {
        "interval": [realized.system.interval.low, realized.system.interval.high],
        "source": realized.system.interval.source, "L": realized.objective.L,
        "schedule": ctx.schedule or "practical",
    }  # fmt: skip
    w0 = realized.embed(ctx.x0, ctx.z0)
    certifier = GapCertifier(realized, w0)
    certified = ctx.schedule == "certified"
    solver: Solver
    horizon = None
    if certified:
        solver, horizon = certified_solver(ctx, realized, goal, w0, found)
    elif realized.system.empty:
        solver = AcceleratedGradient(restart=True)
    else:
        solver = PracticalContinuation(
            certifier, goal, augmented=bool(ctx.pinned.get("augmentation", False)),
            opening=bool(ctx.pinned.get("opening", True)),
        )  # fmt: skip
    iteration = SmoothIteration("cross-continuation", solver, certifier, goal)
    stopping = None
    if certified or not ctx.reference:
        kind = ReportedGapStop if isinstance(solver, PracticalContinuation) else GapStop
        stopping = kind(iteration, goal, found, scheduled=certified)
    why = "smooth, not strongly convex" if not certified else "the paper's schedule"
    return Prepared(
        iteration, stopping, realized.realization, why, dict(realized.details),
        candidates=realized.candidates, certificates=found, horizon=horizon,
    )  # fmt: skip


def certified_solver(
    ctx: Context, realized: Realized, goal: Goal, w0: Array, found: dict[str, Any]
) -> tuple[Solver, int]:
    """The exact schedule; the multiplier budget is 1 + ||grad F(w0)|| / (L R) unless supplied.

    That budget is always valid: sigma ||lambda*|| <= ||grad F(w*)|| <= ||grad F(w0)|| + L R.
    """
    if goal.radius is None:
        raise InputError(
            "schedule 'certified': needs the radius R >= ||(x0, z0) - (x*, z*)||; "
            "give pinned={'radius': R}"
        )
    L, radius = realized.objective.L, execution_radius(realized, goal.radius)
    epsilon = goal.accuracy if goal.accuracy is not None else goal.tol
    found["epsilon_schedule"] = epsilon
    if realized.system.empty:
        steps = gradient_steps(L, radius, epsilon)
        found["steps"] = steps
        return AcceleratedGradient(steps), steps
    budget = positive(ctx, "multiplier_budget")
    if budget is None:
        budget = 1.0 + realized.space.norm(realized.objective.gradient(w0)) / (L * radius)
    plan = certified_schedule(L, radius, epsilon, budget)
    degree = outer_degree(realized.system.interval.low, realized.system.interval.high)
    found.update(
        multiplier_budget=budget, T_cvx=plan.time, steps=plan.steps, repairs=plan.repairs,
        stages=len(plan.nu), gradients=plan.gradients(), affine=plan.affine(degree),
    )  # fmt: skip
    solver = Continuation(plan)
    return solver, solver.horizon


CONTINUATION = Method(
    "cross-continuation",
    "accelerated primal-dual stages with shrinking regularization (smooth, not strongly convex)",
    frozenset({"smooth"}),
    prepare_continuation,
    ("averaged", "canonical", "certified"),
    "cross-sliding (nonsmooth)",
)
