"""Realized problems for the regimes without strong convexity, and the options they share.

``pinned`` keys of these regimes: ``radius`` R >= ||(x0, z0) - (x*, z*)|| in the user's variables,
``accuracy`` eps (absolute; otherwise tol max(1, |F|)), ``multiplier_budget`` (certified
continuation), ``lipschitz`` M (certified sliding). All other keys go to the realization.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ccmac.certificates.gap import Goal
from ccmac.errors import InputError, MethodRefused
from ccmac.methods.cross_apapc import as_realized
from ccmac.methods.method import Context
from ccmac.realizations.averaged.build import assemble
from ccmac.realizations.base import Realized

OWN_KEYS = ("radius", "accuracy", "multiplier_budget", "lipschitz", "opening", "augmentation")
STAND_IN = 100.0


def goal_of(ctx: Context) -> Goal:
    """The accuracy criterion of one call of solve."""
    return Goal(ctx.tol, positive(ctx, "accuracy"), positive(ctx, "radius"))


def positive(ctx: Context, key: str) -> float | None:
    """A positive number among the pinned options (None: absent)."""
    value = ctx.pinned.get(key)
    if value is None:
        return None
    if not (isinstance(value, int | float) and 0 < value < math.inf):
        raise InputError(f"pinned: {key} = {value!r} must be a positive number")
    return float(value)


def realize(ctx: Context, pinned: dict[str, Any] | None = None) -> Realized:
    """The realization asked for, planned with a stand-in curvature (charged to setup)."""
    options = {k: v for k, v in {**ctx.pinned, **(pinned or {})}.items() if k not in OWN_KEYS}
    if ctx.stack is not None:
        from ccmac.realizations.stacked import stack_system

        return stack_system(ctx.stack, ctx.runtime, **options)
    name = ctx.realization or "averaged"
    if name == "averaged":
        built = assemble(
            ctx.problem, ctx.runtime, start=(ctx.x0, ctx.z0), access=ctx.access,
            certificates=ctx.certificates, costs=ctx.costs, target=max(ctx.tol, 1e-12),
            pinned=options, seed=ctx.seed, stand_in=STAND_IN, table=ctx.facts.table,
            coupling=ctx.coupling,
        )  # fmt: skip
        realized = as_realized(built)
        details = {k: v for k, v in realized.details.items() if k not in ("predicted", "kappa_f")}
        return replace(realized, details=details)
    if name == "canonical":
        from ccmac.realizations.canonical.system import canonical

        return canonical(ctx.problem, ctx.runtime, certificates=ctx.certificates, **options)
    if name == "certified":
        from ccmac.realizations.certified.system import certified

        return certified(ctx.problem, ctx.runtime, certificates=ctx.certificates, **options)
    raise MethodRefused(f"realization {name!r} is unknown; take averaged, canonical or certified")
