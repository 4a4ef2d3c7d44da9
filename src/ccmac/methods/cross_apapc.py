"""cross-apapc and joint-apapc: one iteration, different realizations of the constraints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ccmac.certificates.error_bound import Certifier
from ccmac.certificates.stopping import CertifiedStop
from ccmac.errors import MethodRefused
from ccmac.linalg.filters import correction_interval, outer_degree
from ccmac.methods.apapc import Apapc
from ccmac.methods.base import Model, ModelIteration
from ccmac.methods.method import Context, Method, Prepared
from ccmac.realizations.averaged.build import Averaged, assemble
from ccmac.realizations.base import Realized

WIDEN_LIMIT = 8


def averaged_realization(ctx: Context, pinned: dict[str, Any] | None = None) -> Realized:
    """The planned averaged realization of the problem (charged to setup)."""
    built = assemble(
        ctx.problem, ctx.runtime, start=(ctx.x0, ctx.z0), access=ctx.access,
        certificates=ctx.certificates, costs=ctx.costs, target=ctx.target, measure=ctx.measure,
        pinned={**ctx.pinned, **(pinned or {})}, seed=ctx.seed, table=ctx.facts.table,
        coupling=ctx.coupling,
    )  # fmt: skip
    return as_realized(built)


def as_realized(built: Averaged) -> Realized:
    """The common form."""
    c, interval = built.choice.candidate, built.system.interval
    details = {
        "scale": c.s,
        "normalizer": f"{c.normalizer} {c.inner}" if c.normalizer != "none" else "none",
        "outer degree": c.outer,
        "kappa_f": built.objective.L / built.objective.mu if built.objective.mu else math.inf,
        "interval": (interval.low, interval.high),
        "interval source": interval.source,
        "augmentation": built.objective.augment,
        "predicted": c.iterations,
        "notes": built.notes,
    }
    return Realized(
        "averaged", built.space, built.objective, built.system, built.s, c.outer, "interval",
        details, built.choice.table,
    )  # fmt: skip


def prepare_cross(ctx: Context) -> Prepared:
    """Cross-APAPC on the realization asked for (averaged by default)."""
    name = ctx.realization or "averaged"
    if ctx.stack is not None:
        from ccmac.realizations.stacked import stack_system

        return prepared("cross-apapc", stack_system(ctx.stack, ctx.runtime), ctx, "J channels")
    if name == "averaged":
        return prepared("cross-apapc", averaged_realization(ctx), ctx, "smooth and strongly convex")
    if name == "canonical":
        from ccmac.realizations.canonical.system import canonical

        realized = canonical(ctx.problem, ctx.runtime, certificates=ctx.certificates, **ctx.pinned)
        return prepared("cross-apapc", realized, ctx, "the theorem's oracle")
    if name == "certified":
        from ccmac.realizations.certified.system import certified

        realized = certified(ctx.problem, ctx.runtime, certificates=ctx.certificates, **ctx.pinned)
        return prepared("cross-apapc", realized, ctx, "the paper's certified lift")
    raise MethodRefused(f"realization {name!r} is unknown; take averaged, canonical or certified")


def prepare_joint(ctx: Context) -> Prepared:
    """Joint normalization: the unnormalized stack with its exact interval and eta* balance."""
    from ccmac.realizations.joint.system import joint

    realized = joint(
        ctx.problem, ctx.runtime, realization=ctx.realization or "averaged", **ctx.pinned
    )
    return prepared("joint-apapc", realized, ctx, "joint normalization, for comparison")


def prepared(name: str, realized: Realized, ctx: Context, why: str, widened: int = 0) -> Prepared:
    """APAPC on a realized problem, stopped by its own certificate."""
    solver = Apapc(degree=realized.degree, steps=realized.steps)
    iteration = ModelIteration(name, solver, realized)
    stopping = None
    if not ctx.reference:
        stopping = CertifiedStop(Certifier(realized), ctx.tol)
    details = dict(realized.details)
    predicted = details.pop("predicted", None)
    notes = list(details.pop("notes", ()))
    interval = realized.system.interval
    found = {
        "interval": [interval.low, interval.high], "source": interval.source,
        "mu": realized.objective.mu, "L": realized.objective.L, "widened": widened,
    }  # fmt: skip
    given = ctx.certificates
    horizon = None
    if given is not None and given.energy_radius is not None:
        horizon = energy_horizon(iteration.model, solver, given.energy_radius, ctx.tol)
        found["horizon"] = horizon

    def widen() -> Prepared:
        realized.system.widen()
        interval = realized.system.interval
        # The paper's steps hold for the degree that belongs to the interval.
        paper = realized.steps == "paper"
        degree = outer_degree(interval.low, interval.high) if paper else realized.degree
        return prepared(name, replace(realized, degree=degree), ctx, why, widened + 1)

    can_widen = widened < WIDEN_LIMIT
    return Prepared(
        iteration, stopping, realized.realization, why, details, predicted, realized.candidates,
        found, widen if can_widen else None, horizon, notes,
    )  # fmt: skip


def energy_horizon(model: Model, solver: Apapc, radius: float, tol: float) -> int:
    """T with (contraction)^T R_E^2 <= tol^2: the a-priori horizon of Theorem algorithm."""
    low, high = (1.0, 1.0)
    if not model.system.empty:
        interval = model.system.interval
        low, high = correction_interval(interval.low, interval.high, solver.degree)
        if solver.steps == "paper":
            low, high = 11 / 15, 19 / 15
    chi = high / low
    kappa = model.objective.L / model.objective.mu
    rate = 0.25 * min(1 / math.sqrt(kappa * chi), 1 / chi)
    return max(1, math.ceil(2 * math.log(max(radius / tol, math.e)) / math.log1p(rate)))


CROSS = Method(
    "cross-apapc",
    "accelerated primal-dual steps after separate channel normalization (the default)",
    frozenset({"smooth", "strongly convex"}),
    prepare_cross,
    ("averaged", "canonical", "certified"),
    "cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
JOINT = Method(
    "joint-apapc",
    "the same iteration on the unnormalized joint stack",
    frozenset({"smooth", "strongly convex"}),
    prepare_joint,
    ("averaged", "canonical"),
    "cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
