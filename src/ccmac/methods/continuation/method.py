"""cross-continuation: smooth objectives without strong convexity.

``schedule="certified"`` runs the paper's schedule for a radius R, the default runs stages ended by
a computable test and proves the criterion at exit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import MethodRefused
from ccmac.linalg.chebyshev import outer_degree
from ccmac.methods.base import Prepared, Request
from ccmac.methods.continuation.agd import AcceleratedGradient
from ccmac.methods.continuation.practical import PracticalContinuation
from ccmac.methods.continuation.schedule import certified_schedule, gradient_steps
from ccmac.methods.continuation.steps import Continuation
from ccmac.methods.convex import ConvexMethod, found_in, proved
from ccmac.methods.options import option
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class CrossContinuation(ConvexMethod):
    """Accelerated primal-dual stages with shrinking regularization."""

    name = "cross-continuation"
    summary = (
        "accelerated primal-dual stages with shrinking regularization (smooth, not strongly convex)"
    )
    needs = frozenset({"smooth"})
    scheduled: ClassVar[dict[str, str]] = {
        "multiplier_budget": "certified",
        "opening": "practical",
        "augmentation": "practical",
    }

    multiplier_budget: float | None = option(
        None, float, "bound on sigma ||lambda*|| / (L R); by default from the gradient at the start"
    )
    opening: bool = option(True, bool, "plain primal-dual steps first, while the bound falls fast")
    augmentation: bool = option(False, bool, "add (L/2) <w, P w> to the stages, as the paper does")

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The realization asked for, then the schedule asked for."""
        realized = self.realize(work, request)
        goal = self.goal(request)
        if not realized.objective.L > 0:
            raise MethodRefused(
                f"{self.name} needs curvature: F is linear (L = 0); use cross-sliding"
            )
        w0 = realized.embed(request.x0, request.z0)
        certifier = GapCertifier(realized, w0)
        found = found_in(realized, L=realized.objective.L, schedule=self.schedule)
        if self.schedule == "certified":
            return self._certified(certifier, goal, found)
        why = "smooth, not strongly convex"
        stopping = None
        if realized.system.empty:
            gradients = AcceleratedGradient(certifier, goal)
            if not request.reference:
                stopping = Stop(GapJudge(gradients, goal, found))
            return proved(gradients, stopping, why, found)
        stages = PracticalContinuation(
            certifier, goal, opening=self.opening, augmented=self.augmentation
        )
        if not request.reference:
            stopping = Stop(GapJudge(stages, goal, found), every=True)
        return proved(stages, stopping, why, found)

    def _certified(self, certifier: GapCertifier, goal: Goal, found: dict[str, Any]) -> Prepared:
        """The exact schedule; the multiplier budget is 1 + ||grad F(w0)|| / (L R) unless supplied.

        That budget is always valid: sigma ||lambda*|| <= ||grad F(w*)|| <= ||grad F(w0)|| + L R.
        """
        assert goal.radius is not None
        realized = certifier.realized
        why = "the paper's schedule"
        objective = realized.objective
        interval = realized.system.interval
        L = objective.L
        radius = execution_radius(realized, goal.radius)
        epsilon = goal.absolute
        found["epsilon_schedule"] = epsilon
        if realized.system.empty:
            found["steps"] = steps = gradient_steps(L, radius, epsilon)
            gradients = AcceleratedGradient(certifier, goal, steps)
            judge = GapJudge(gradients, goal, found, scheduled=True)
            stopping = Stop(judge, first=math.inf)
            return proved(gradients, stopping, why, found, steps)
        budget = self.multiplier_budget
        if budget is None:
            slope = objective.gradient(certifier.w0)
            budget = 1.0 + realized.space.norm(slope) / (L * radius)
        plan = certified_schedule(L, radius, epsilon, budget)
        degree = outer_degree(interval.low, interval.high)
        found.update(
            multiplier_budget=budget,
            T_cvx=plan.time,
            steps=plan.steps,
            repairs=plan.repairs,
            stages=len(plan.nu),
            gradients=plan.gradients(),
            affine=plan.affine(degree),
        )
        stages = Continuation(certifier, goal, plan)
        judge = GapJudge(stages, goal, found, scheduled=True)
        stopping = Stop(judge, first=math.inf)
        return proved(stages, stopping, why, found, plan.horizon)
