"""cross-sliding: objectives with kinks, simple sets, or no known curvature.

Practical mode (default): proximal primal-dual steps where every objective has a prox, or is the sum
of a smooth function and one with a prox; else sliding with doubling. ``schedule="certified"``: the
balanced schedule for a radius R and a bound M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ccmac.certificates.gap import GapCertifier, GapJudge, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import MethodRefused
from ccmac.methods.base import Prepared, Request, option
from ccmac.methods.convex import SCHEDULE, ConvexMethod, found_in, proved
from ccmac.methods.paper import imported
from ccmac.methods.sliding.parts import Parts, first_weight, split_problem
from ccmac.methods.sliding.proximal import ProximalPrimalDual
from ccmac.methods.sliding.subgradient import DoublingSliding, steepness
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.workspace import Workspace

ORACLES = frozenset({"gradient", "subgradient"})


@dataclass(frozen=True)
class CrossSliding(ConvexMethod):
    """Proximal primal-dual steps, or primal-dual sliding with subgradients.

    Parameters
    ----------
    realization : {"averaged", "canonical", "certified", "stack"}
        How the constraints are executed (default averaged).
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale (averaged only).
    normalizer : {"semi-iteration", "deflation"}, optional
        Kind of q ~ S^-1 (averaged only).
    inner : int, optional
        Size of the normalizer: steps, deflated vectors, or polynomial degree (averaged,
        canonical, certified only).
    outer : int, optional
        Degree of the Chebyshev correction over both channels (averaged only).
    floor : float, optional
        Scale by the share that B's part of S has of A's (averaged only).
    lanczos : int, optional
        Steps of the Lanczos run that the plan rests on (averaged only).
    rule : {"paper", "tight", "exact"}, optional
        Degree of the normalizers (canonical, stack only).
    delta : float, optional
        Accuracy 1 -+ delta of the normalizers (0.5) (canonical, certified, stack only).
    interval : str, optional
        One of "certificate", "certificate-delta", "certificate-spread", "tight", "minimal":
        where the spectrum of the stack is taken from (canonical, stack only).
    model : {"channel-2", "paper-6"}, optional
        Which calls are charged modelled rounds (canonical only).
    materialise : bool, optional
        Multiply small channels out, at an unchanged charge (canonical, certified only).
    spectra : list, optional
        Intervals (low, high) that hold spec^+(M_j M_j') (stack only).
    schedule : {"practical", "subgradient", "certified"}
        Stages ended by computable tests, or the paper's schedule for a radius; or subgradients
        with doubling, whatever has a prox (default practical).
    radius : float, optional
        R >= ||(x0, z0) - (x*, z*)||, for which the bound must hold (estimated).
    accuracy : float, optional
        Absolute accuracy eps (tol max(1, |F|)).
    lipschitz : float, optional
        M >= ||F'|| within 3R of the solution; by default as declared.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3, l1=0.1)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossSliding()).status
    'optimal'
    """

    name = "cross-sliding"
    summary = (
        "proximal primal-dual steps, or primal-dual sliding with subgradients "
        "(nonsmooth, simple sets)"
    )
    scheduled: ClassVar[dict[str, str]] = {"lipschitz": "certified"}

    schedule: str = option(
        "practical",
        str,
        SCHEDULE + "; or subgradients with doubling, whatever has a prox",
        choices=("practical", "subgradient", "certified"),
    )
    lipschitz: float | None = option(
        None, float, "M >= ||F'|| within 3R of the solution; by default as declared"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Choose the mode by what the objectives offer."""
        if self.schedule == "practical":
            if "prox" in work.capabilities:
                return self._proximal(work, request)
            split = split_problem(work)
            if split is not None:
                return self._proximal(work, request, split)
        refuse_sets(work.problem)
        if self.schedule == "certified":
            schedule = imported("schedules.sliding:certified")
            return schedule(self, work, request)  # type: ignore[no-any-return]
        return self._doubling(work, request)

    def realized(self, work: Workspace, request: Request) -> Realized:
        """Averaged: the scale from the geometry (curvature says nothing); else as it is."""
        chosen = work.stack is not None or self.realization != "averaged"
        chosen = chosen or self.scale is not None or self.floor is not None
        return self.realize(work, request, **({} if chosen else {"floor": 0.02}))

    def certifier(self, work: Workspace, request: Request, realized: Realized) -> GapCertifier:
        w0 = realized.embed(request.x0, request.z0)
        return GapCertifier(realized, w0, work.curvature.convexity)

    def _proximal(
        self, work: Workspace, request: Request, split: tuple[Problem, Problem] | None = None
    ) -> Prepared:
        """``split``: the smooth and the simple part, where F itself has no prox."""
        realized = self.realized(work, request)
        goal = self.goal(request)
        certifier = self.certifier(work, request, realized)
        w0 = certifier.w0
        if split is None:
            why = "proximal steps, every objective has a prox"
            mode = "proximal"
            parts = Parts(None, realized.objective)
            weight = first_weight(realized.objective, w0)
        else:
            why = "proximal steps for the simple parts, gradients for the smooth ones"
            mode = "proximal gradient"
            parts = Parts.of(realized, split)
            slope = np.zeros_like(w0) + parts.slope(w0)
            weight = first_weight(realized.objective, w0, partial(parts.backward, w0, slope))
        anchored = not work.curvature.smooth
        iteration = ProximalPrimalDual(certifier, goal, parts, weight, anchored=anchored)
        found = found_in(realized, schedule="practical", mode=mode, first_weight=weight)
        stopping = None if request.reference else Stop(GapJudge(iteration, goal, found))
        return proved(iteration, stopping, why, found)

    def _doubling(self, work: Workspace, request: Request) -> Prepared:
        realized = self.realized(work, request)
        goal = self.goal(request)
        certifier = self.certifier(work, request, realized)
        w0 = certifier.w0
        space = realized.space
        feasible, _ = certifier.repaired(w0, 0.0)
        steep = steepness(space.norm(realized.objective.gradient(w0)))
        # R is at least (F(w0) - F*)/M; doubling does the rest.
        guess = max(0.25 * max(abs(certifier.value(w0)), request.plan_tol) / steep, 1e-6)
        guess = max(guess, space.norm(feasible - w0))
        if goal.radius is not None:
            guess = execution_radius(realized, goal.radius)
        iteration = DoublingSliding(certifier, goal, feasible, guess)
        found = found_in(realized, schedule="practical", mode="subgradient")
        stopping = None if request.reference else Stop(GapJudge(iteration, goal, found), every=True)
        return proved(iteration, stopping, "subgradients, with doubling", found)


def refuse_sets(problem: Problem) -> None:
    """Subgradient modes need an oracle from everybody; name who has none (a set, say)."""
    for i, agent in problem.agents.items():
        objective = agent.objective
        if objective.capabilities & ORACLES:
            continue
        parts = [getattr(objective, name, None) for name in ("x_part", "z_part")]
        lacking = [p for p in parts if p is not None and not p.capabilities & ORACLES]
        named = type(lacking[0] if lacking else objective).__name__
        raise MethodRefused(
            f"cross-sliding, agent {i}: {named} has no subgradient (a set, or a sum with one); "
            "use schedule='practical' with objectives that all have a prox"
        )
