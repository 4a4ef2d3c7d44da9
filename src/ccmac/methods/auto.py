"""``method="auto"``: the method that fits the objectives and the prices, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ccmac.ledger import GREATEST, Cost
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Prepared, Request
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import CrossDirect
from ccmac.methods.forecasts import forecast
from ccmac.methods.interior.compressed import compressible
from ccmac.methods.interior.made import solvable
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.local.minimum import without_factorizations
from ccmac.methods.newton.method import CrossNewton, summable
from ccmac.methods.options import option, options_of
from ccmac.methods.realized import ACCESS, CERTIFICATES, REALIZATIONS
from ccmac.methods.sliding.method import CrossSliding
from ccmac.methods.system import affordable
from ccmac.plans import Alternative
from ccmac.realizations.base import Certificates
from ccmac.workspace import Workspace

ARGMIN_GRADIENTS = 20  # inside one entrywise minimisation, as counted on real data (15 to 22)


@dataclass(frozen=True)
class Auto(Method):
    """Chooses among the cross- methods; what is asked for here is handed to the one chosen.

    A realization, certificates or access narrow the choice to methods that know them. ``radius``
    and ``accuracy`` serve problems without strong convexity and are not needed elsewhere.
    """

    name = "auto"
    summary = "the method that fits the objectives and the prices"

    realization: str | None = option(
        None, str, "how the constraints are executed", choices=REALIZATIONS
    )
    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)
    access: str | None = option(None, str, ACCESS, choices=("factor", "matvec"))
    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, where a gap is proved"
    )
    accuracy: float | None = option(None, float, "absolute eps instead of tol max(1, |F|)")

    def refuse_shape(self, stack: bool) -> None:
        """The method chosen says whether the realization asked for fits."""

    def announce(self, work: Workspace, request: Request) -> None:
        """Of cross-direct, where that is going to be chosen."""
        if self._direct(work):
            self._cheapest(CrossDirect(), "", work, request)[0].announce(work, request)

    def finds_falls(self, work: Workspace) -> bool:
        """Where cross-direct is chosen."""
        return self._direct(work) and self._few(work)

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Of the method chosen."""
        return self.choose(work, request)[0].prepare(work, request)

    def choose(self, work: Workspace, request: Request) -> tuple[Method, str]:
        """The method, and why."""
        return self.ranked(work, request)[0]

    def ranked(self, work: Workspace, request: Request) -> list[tuple[Method, str]]:
        """The methods to take one after the other, should one stall."""
        method, why = self._cheapest(*self._first(work, request), work, request)
        strongly = "strongly convex" in work.capabilities
        following = list[type[Method]]()
        if isinstance(method, CrossDirect) and not strongly:
            following = [CrossIpm]
        elif isinstance(method, CrossDirect):
            following = [CrossCg]
        elif isinstance(method, CrossCg | CrossLbfgs | CrossNewton):
            following = [CrossApapc if strongly else CrossContinuation]
        after = [(self._with(kind), "what came before it stalled") for kind in following]
        return [(method, why), *after]

    def alternatives(
        self, work: Workspace, request: Request, chosen: Method
    ) -> tuple[Alternative, ...]:
        """What the method chosen and others that fit would send: the one chosen, then by bill."""
        first = forecast(chosen, work, request)
        others = (forecast(method, work, request) for method in self._others(chosen, work))
        spent = work.ledger.of("setup")
        if first is not None and first.method == CrossDirect.name:
            spent = spent - (first.once if "strongly convex" in work.capabilities else Cost())
        before = Cost({unit: count for unit, count in spent.items() if unit not in GREATEST})
        known = [replace(a, before=before) for a in others if a is not None]
        known.sort(key=lambda a: a.bill)
        return tuple(known if first is None else [first, *known])

    def _others(self, chosen: Method, work: Workspace) -> list[Method]:
        """Methods that fit where ``chosen`` does; no messages."""
        able = work.capabilities
        if isinstance(chosen, CrossDirect) and "strongly convex" not in able:
            kinds: list[type[Method]] = [CrossIpm, CrossContinuation]
        elif isinstance(chosen, CrossDirect | CrossCg):
            kinds = [CrossDirect, CrossCg, CrossApapc]
        elif isinstance(chosen, CrossNewton | CrossLbfgs):
            kinds = [CrossApapc if "strongly convex" in able else CrossContinuation]
        elif isinstance(chosen, CrossIpm):
            smooth = "smooth" in able and "prox" not in able
            kinds = [CrossContinuation if smooth else CrossSliding]
        else:
            kinds = []
        return [self._with(kind) for kind in kinds if not isinstance(chosen, kind)]

    def _cheapest(
        self, method: Method, why: str, work: Workspace, request: Request
    ) -> tuple[Method, str]:
        """The one of fewest rounds, unless the bytes of a summed matrix would cost more than its
        rounds and another's bill is lower even with more steps than it is predicted to take.
        """
        costs = request.costs
        k = work.problem.m + work.problem.q
        matrix = work.runtime.average_cost(k * (k + 1) // 2)
        dear = costs.byte * matrix["bytes"] > costs.round * matrix["rounds"]
        mine = forecast(method, work, request) if dear else None
        if mine is None:
            return method, why
        best = mine.bill
        for other in self._others(method, work):
            found = forecast(other, work, request)
            if found is not None and (bill := request.costs.bill(found.cautious)) < best:
                method = other
                best = bill
                why = f"fewer bytes than {mine.method} at these prices"
        return method, why

    def _first(self, work: Workspace, request: Request) -> tuple[Method, str]:
        able = work.capabilities
        if self._newton(work, request):
            return self._with(CrossNewton), "smooth, with Hessians: fewest averagings"
        if {"smooth", "strongly convex"} <= able:
            if self._direct(work) and self._few(work):
                why = "quadratic, in one sum"
                return self._with(CrossDirect), why
            if self._free(work) and "quadratic" in able and work.curvature.factorable:
                return self._with(CrossCg), "quadratic with cheap local solves: fewest averagings"
            if self._free(work) and "quadratic" not in able and _averagings_dominate(work, request):
                why = "averagings more expensive than local minimisations: fewest of them"
                return self._with(CrossLbfgs), why
            return self._with(CrossApapc), "smooth and strongly convex objectives"
        if self._direct(work) and self._few(work):
            why = "quadratic with flat directions, in one sum"
            return self._with(CrossDirect), why
        if "polyhedral" in able and self._free(work) and self._compresses(work, request):
            why = "kinks beside a squared loss, or hinges, of few columns: interior points"
            return self._with(CrossIpm), why
        if "polyhedral" in able and self._free(work) and solvable(work):
            why = "quadratic with bounds, kinks or flat directions, by interior points"
            return self._with(CrossIpm), why
        smooth = "smooth" in able
        if "prox" in able and (work.curvature.separable or not smooth):
            kind = "smooth but not strongly convex" if smooth else "not smooth"
            return self._with(CrossSliding), f"{kind}, and every objective has a prox"
        if smooth and not work.curvature.L.any():
            return self._with(CrossSliding), "linear"
        if smooth:
            return self._with(CrossContinuation), "smooth but not strongly convex"
        return self._with(CrossSliding), "not smooth, and some objective has no prox"

    def _direct(self, work: Workspace) -> bool:
        """Whether the quadratics can be summed as they are."""
        able = "quadratic" in work.capabilities and work.curvature.factorable
        sums = work.hides and "strongly convex" in work.capabilities
        return able and self._free(work) and (work.gatherable or sums)

    def _few(self, work: Workspace) -> bool:
        """Whether directions without curvature are few enough to be summed too; where rows are
        masked, whether the sum tells that they are independent.
        """
        if (sums := work.gather_sums()) is not None:
            return sums.independent
        if "strongly convex" in work.capabilities:
            return True
        known = work.gather_constraints()
        return known is not None and affordable(work, known)

    def _newton(self, work: Workspace, request: Request) -> bool:
        """Whether cross-newton has a form for the problem, and averagings have a price."""
        able = work.capabilities
        if not self._free(work) or "smooth" not in able or "quadratic" in able:
            return False
        if request.costs.round <= 0:
            return False
        return work.gather_explicit() is not None or summable(work) is not None

    def _compresses(self, work: Workspace, request: Request) -> bool:
        """Whether averagings have a price, and long rows can be made short."""
        return request.costs.round > 0 and bool(compressible(work))

    def _free(self, work: Workspace) -> bool:
        """Nothing was asked for that only the methods on a realization know."""
        asked = self.realization is not None or self.certificates is not None
        return not asked and self.access in (None, "factor") and work.stack is None

    def _with(self, cls: type[Method]) -> Method:
        """The method with those of the options that were given and that it has."""
        known = options_of(cls)
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name in known
        }
        return cls(**given)


def _averagings_dominate(work: Workspace, request: Request) -> bool:
    """Whether cross-lbfgs pays: about half the averagings of cross-apapc, a minimisation in each.

    That is where one averaging costs more than the gradients inside one minimisation, if these
    need no factorization of their own.
    """
    averaging = request.costs.round * work.runtime.averaging.rounds
    expensive = averaging >= ARGMIN_GRADIENTS * request.costs.gradient and averaging > 0
    return expensive and without_factorizations(work)
