"""cross-sliding: objectives with kinks, simple sets, or no known curvature.

Practical mode (default): proximal primal-dual steps where every objective has a prox, or is the sum
of a smooth function and one with a prox; else sliding with doubling. ``schedule="certified"``: the
balanced schedule for a radius R and a bound M.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ccmac.certificates.gap import Gap, GapCertifier, Goal, execution_radius
from ccmac.certificates.gap_stopping import GapStop, ReportedGapStop
from ccmac.errors import InputError, MethodRefused
from ccmac.methods.base import State
from ccmac.methods.continuation.steps import ScheduledIteration
from ccmac.methods.convex import goal_of, positive, realize
from ccmac.methods.method import Context, Method, Prepared
from ccmac.methods.sliding.practical import DoublingSliding, SubgradientIteration
from ccmac.methods.sliding.proximal import ProximalIteration, ProximalPrimalDual
from ccmac.methods.sliding.schedule import certified_phases
from ccmac.methods.sliding.split import Parts, split_problem
from ccmac.methods.sliding.steps import Sliding
from ccmac.methods.sliding.weights import first_weight, unequal_steps
from ccmac.problem import Problem
from ccmac.realizations.base import Realized

SCHEDULES = (None, "practical", "certified", "subgradient")
FLOOR = 0.02
NAME = "cross-sliding"


class SlidingIteration(SubgradientIteration, ScheduledIteration):
    """The certified schedule: F - F* + (2M/sigma) ||K w - v|| <= ``epsilon`` at its end."""

    epsilon: float = math.nan

    def tight_gap(self, state: State) -> Gap:
        """For a strongly convex F the theorem bounds the error too: ||w - w*||^2 / 2 <= eps."""
        found = super().tight_gap(state)
        if not (self.finished(state) and self.certifier.strong):
            return found
        error = math.sqrt(2.0 * self.epsilon) * self.certifier.error_unit
        return replace(found, error=min(error, found.error))


def prepare_sliding(ctx: Context) -> Prepared:
    """Choose the mode by what the objectives offer."""
    if ctx.schedule not in SCHEDULES:
        known = "'practical', 'subgradient' or 'certified'"
        raise InputError(f"schedule {ctx.schedule!r} is unknown; take {known}")
    goal = goal_of(ctx)
    if ctx.schedule in (None, "practical"):
        if ctx.facts.prox:
            return _proximal(ctx, goal)
        split = split_problem(ctx.problem, ctx.runtime)
        if split is not None:
            return _proximal(ctx, goal, split)
    refuse_sets(ctx)
    return (_certified if ctx.schedule == "certified" else _doubling)(ctx, goal)


def refuse_sets(ctx: Context) -> None:
    """Subgradient modes need an oracle from everybody; name who has none (a set, say)."""
    for i, agent in ctx.problem.agents.items():
        objective = agent.objective
        if not objective.capabilities & {"gradient", "subgradient"}:
            parts = [getattr(objective, name, None) for name in ("x_part", "z_part")]
            lacking = [
                p
                for p in parts
                if p is not None and not p.capabilities & {"gradient", "subgradient"}
            ]
            named = type(lacking[0] if lacking else objective).__name__
            raise MethodRefused(
                f"cross-sliding, agent {i}: {named} has no subgradient (a set, or a sum with one); "
                "use schedule='practical' with objectives that all have a prox"
            )


def _realized(ctx: Context, *, equal_steps: bool = False) -> Realized:
    """Averaged: the scale from the geometry (curvature says nothing), or s = 1; else as it is."""
    if ctx.stack is not None or ctx.realization not in (None, "averaged"):
        return realize(ctx)
    if equal_steps:
        return realize(ctx, {"scale": 1.0 / ctx.facts.table.regularized(100.0).balance() ** 2})
    return realize(ctx, {} if {"scale", "floor"} & set(ctx.pinned) else {"floor": FLOOR})


def _found(realized: Realized, **more: Any) -> dict[str, Any]:
    interval = realized.system.interval
    return {"interval": [interval.low, interval.high], "source": interval.source, **more}


def _proximal(ctx: Context, goal: Goal, split: tuple[Problem, Problem] | None = None) -> Prepared:
    """``split``: the smooth and the simple part, where F itself has no prox."""
    simple = ctx.problem if split is None else split[1]
    equal = not unequal_steps(simple, ctx.runtime)
    realized = _realized(ctx, equal_steps=equal)
    w0 = realized.embed(ctx.x0, ctx.z0)
    if split is None:
        why, mode = "proximal steps, every objective has a prox", "proximal"
        parts = Parts(None, realized.objective)
        weight = first_weight(realized.objective, w0)
    else:
        why = "proximal steps for the simple parts, gradients for the smooth ones"
        mode, parts = "proximal gradient", Parts.of(realized, split, equal=equal)
        slope = np.zeros_like(w0) + parts.slope(w0)
        weight = first_weight(realized.objective, w0, partial(parts.backward, w0, slope))
    certifier = GapCertifier(realized, w0, ctx.facts.table.convexity)
    solver = ProximalPrimalDual(parts, weight, anchored=not ctx.facts.smooth)
    iteration = ProximalIteration(NAME, solver, certifier, goal)
    found = _found(realized, schedule="practical", mode=mode, first_weight=weight)
    stopping = None if ctx.reference else GapStop(iteration, goal, found)
    return Prepared(
        iteration, stopping, realized.realization, why, dict(realized.details),
        candidates=realized.candidates, certificates=found,
    )  # fmt: skip


def _doubling(ctx: Context, goal: Goal) -> Prepared:
    realized = _realized(ctx)
    w0 = realized.embed(ctx.x0, ctx.z0)
    certifier = GapCertifier(realized, w0, ctx.facts.table.convexity)
    feasible, _ = certifier.repaired(w0, 0.0)
    steep = max(realized.space.norm(realized.objective.gradient(w0)), 1e-12)
    # R is at least (F(w0) - F*)/M; doubling does the rest.
    guess = max(0.25 * max(abs(certifier.value(w0)), ctx.tol) / steep, 1e-6)
    guess = max(guess, realized.space.norm(feasible - w0))
    if goal.radius is not None:
        guess = execution_radius(realized, goal.radius)
    iteration = SubgradientIteration(NAME, DoublingSliding(guess, feasible), certifier, goal)
    found = _found(realized, schedule="practical", mode="subgradient")
    stopping = None if ctx.reference else ReportedGapStop(iteration, goal, found)
    return Prepared(
        iteration, stopping, realized.realization, "subgradients, with doubling",
        dict(realized.details), candidates=realized.candidates, certificates=found,
    )  # fmt: skip


def _certified(ctx: Context, goal: Goal) -> Prepared:
    if goal.radius is None:
        raise InputError(
            "schedule 'certified': needs the radius R >= ||(x0, z0) - (x*, z*)||; "
            "give pinned={'radius': R}"
        )
    realized = _realized(ctx)
    lipschitz = positive(ctx, "lipschitz") or declared_lipschitz(ctx)
    steep = lipschitz * max(1.0, realized.s)
    radius = execution_radius(realized, goal.radius)
    epsilon = goal.accuracy if goal.accuracy is not None else goal.tol
    w0 = realized.embed(ctx.x0, ctx.z0)
    certifier = GapCertifier(realized, w0, ctx.facts.table.convexity)
    feasible, _ = certifier.repaired(w0, 0.0)
    interval = realized.system.interval
    norm, sigma = (1.0, 1.0)
    if not realized.system.empty:
        norm, sigma = math.sqrt(interval.high), math.sqrt(interval.low)
    mu = realized.objective.mu if math.isfinite(realized.objective.mu) else 0.0
    phases = certified_phases(norm, sigma, steep, radius, epsilon, mu)
    solver = Sliding(tuple(phases), feasible)
    iteration = SlidingIteration(NAME, solver, certifier, goal)
    iteration.epsilon = epsilon
    found = _found(
        realized, schedule="certified", lipschitz=steep, T_ns=steep * radius / epsilon,
        phases=len(phases), affine=sum(p.affine for p in phases),
        subgradients=sum(p.subgradients for p in phases), epsilon_schedule=epsilon,
    )  # fmt: skip
    return Prepared(
        iteration, GapStop(iteration, goal, found, scheduled=True), realized.realization,
        "the certified schedule", dict(realized.details), candidates=realized.candidates,
        certificates=found, horizon=solver.horizon,
    )  # fmt: skip


def declared_lipschitz(ctx: Context) -> float:
    """(sum_i M_i^2)^{1/2} of what the objectives declare; one reduction."""
    problem = ctx.problem
    rows = [
        [a.objective.lipschitz(problem.d[i], problem.q) ** 2] for i, a in problem.agents.items()
    ]
    total = float(ctx.runtime.total(np.array(rows))[0])
    if not math.isfinite(total):
        raise InputError(
            "schedule 'certified': some objective declares no bound on its subgradients; "
            "give pinned={'lipschitz': M} that holds within 3R of the solution"
        )
    return math.sqrt(total)


SLIDING = Method(
    NAME,
    "proximal primal-dual steps, or primal-dual sliding with subgradients (nonsmooth, simple sets)",
    frozenset(),
    prepare_sliding,
    ("averaged", "canonical", "certified"),
    "cross-continuation (smooth)",
)
