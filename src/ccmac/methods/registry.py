"""The registry of methods, and the choice among them."""

from __future__ import annotations

from ccmac.errors import InputError, MethodRefused
from ccmac.methods.cg import CROSS_CG
from ccmac.methods.comparators.condat_vu import CONDAT_VU
from ccmac.methods.comparators.coupled import COUPLED
from ccmac.methods.comparators.dpmm import DPMM
from ccmac.methods.comparators.mixed import MIXED
from ccmac.methods.comparators.papc import PAPC
from ccmac.methods.comparators.pdhg import PDHG
from ccmac.methods.comparators.tracking_admm import TRACKING_ADMM
from ccmac.methods.continuation.method import CONTINUATION
from ccmac.methods.cross_apapc import CROSS, JOINT
from ccmac.methods.lbfgs import CROSS_LBFGS
from ccmac.methods.local.inverse import affordable
from ccmac.methods.local.minimum import without_factorizations
from ccmac.methods.method import Context, Facts, Method
from ccmac.methods.sliding.method import SLIDING

ALL = (
    CROSS, JOINT, CROSS_CG, CROSS_LBFGS, CONTINUATION, SLIDING,
    COUPLED, MIXED, DPMM, TRACKING_ADMM, CONDAT_VU, PDHG, PAPC,
)  # fmt: skip
ARGMIN_GRADIENTS = 20  # inside one entrywise minimisation, as counted on real data (15 to 22)
REGISTRY: dict[str, Method] = {method.name: method for method in ALL}


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
    }
    missing = [need for need in sorted(method.needs) if not have[need]]
    if missing:
        raise MethodRefused(
            f"method {method.name} needs {' and '.join(missing)}, which the problem does not "
            f"offer; use {method.suggestion}"
        )


def choose(ctx: Context, facts: Facts) -> tuple[Method, str]:
    """The method ``auto`` takes, and why."""
    if _prefers_cg(ctx, facts):
        return REGISTRY["cross-cg"], "quadratic with cheap local solves: fewest averagings"
    if _prefers_lbfgs(ctx, facts):
        return REGISTRY["cross-lbfgs"], "averagings dearer than local minimisations: fewest of them"
    if facts.smooth and facts.strongly_convex:
        return REGISTRY["cross-apapc"], "smooth and strongly convex objectives"
    if facts.prox and (facts.table.separable or not facts.smooth):
        kind = "smooth but not strongly convex" if facts.smooth else "not smooth"
        return REGISTRY["cross-sliding"], f"{kind}, and every objective has a prox"
    if facts.smooth:
        return REGISTRY["cross-continuation"], "smooth but not strongly convex"
    return REGISTRY["cross-sliding"], "not smooth, and some objective has no prox"


def _free_to_minimise(ctx: Context, facts: Facts) -> bool:
    """Strongly convex and smooth, and nothing was asked for that only cross-apapc knows.

    Such are a realization, pinned degrees, certificates, products instead of factorizations.
    """
    asked = ctx.realization or ctx.pinned or ctx.certificates is not None or ctx.stack is not None
    return facts.smooth and facts.strongly_convex and not asked and ctx.access == "factor"


def _prefers_cg(ctx: Context, facts: Facts) -> bool:
    """CG reaches the goal before cross-apapc has its plan, unless solves are dear or not allowed.

    It needs one averaging and one local solve an iteration, and no spectral estimates.
    """
    fit = _free_to_minimise(ctx, facts) and facts.quadratic
    return fit and affordable(ctx.problem, ctx.runtime)


def _prefers_lbfgs(ctx: Context, facts: Facts) -> bool:
    """About half the averagings of cross-apapc with its setup, but a minimisation in each of them.

    That pays where one averaging costs more than the gradients inside one minimisation, if these
    need no factorization of their own.
    """
    averaging = ctx.costs.round * ctx.runtime.averaging.rounds
    dear = averaging >= ARGMIN_GRADIENTS * ctx.costs.gradient and averaging > 0
    fit = _free_to_minimise(ctx, facts) and not facts.quadratic and dear
    return fit and without_factorizations(ctx.problem, ctx.runtime)


def available_methods() -> dict[str, dict[str, object]]:
    """Names with one-line descriptions and needs."""
    return {
        name: {"summary": m.summary, "needs": sorted(m.needs), "realizations": list(m.realizations)}
        for name, m in REGISTRY.items()
    }
