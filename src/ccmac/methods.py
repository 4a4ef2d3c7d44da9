"""The registry of methods, and the choice among them."""

from __future__ import annotations

from ccmac.baselines.condat_vu import CONDAT_VU
from ccmac.baselines.papc import PAPC
from ccmac.baselines.pdhg import PDHG
from ccmac.errors import InputError, MethodRefused
from ccmac.solvers.cross_apapc import CROSS, JOINT
from ccmac.solvers.method import Context, Facts, Method

REGISTRY: dict[str, Method] = {
    method.name: method for method in (CROSS, JOINT, CONDAT_VU, PDHG, PAPC)
}


def find(name: str) -> Method:
    """The method called ``name``."""
    if name not in REGISTRY:
        known = ", ".join(REGISTRY)
        raise InputError(f"method {name!r} is unknown; take auto or one of {known}")
    return REGISTRY[name]


def refuse_unless_fit(method: Method, facts: Facts) -> None:
    """Raise MethodRefused naming the missing need and a method that would work."""
    have = {
        "smooth": facts.smooth,
        "strongly convex": facts.strongly_convex,
        "quadratic": facts.quadratic,
        "prox": facts.prox,
        "B = 0": not facts.has_B,
    }
    missing = [need for need in sorted(method.needs) if not have[need]]
    if missing:
        raise MethodRefused(
            f"method {method.name} needs {' and '.join(missing)}, which the problem does not "
            f"offer; use {method.suggestion}"
        )


def choose(ctx: Context, facts: Facts) -> tuple[Method, str]:
    """The method ``auto`` takes, and why."""
    if facts.smooth and facts.strongly_convex:
        return REGISTRY["cross-apapc"], "smooth and strongly convex objectives"
    raise MethodRefused(
        "no registered method fits: the objectives are not smooth and strongly convex; "
        "add a small ridge term to every block"
    )


def methods() -> dict[str, dict[str, object]]:
    """Names with one-line descriptions and needs."""
    return {
        name: {"summary": m.summary, "needs": sorted(m.needs), "realizations": list(m.realizations)}
        for name, m in REGISTRY.items()
    }
