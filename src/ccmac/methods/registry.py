"""The methods by name, and ``method="auto"``: a table of rules chooses the one that fits.

The rules go from few to many communication rounds; the first that holds decides. Where bytes are
expensive a rival of lower predicted cost takes its place; after a stall the next method goes on.

What a method would send follows from sizes and constants that everybody knows: so many averagings
of so many floats. With m coupled rows, q shared variables and k = m + q:

    sum      k (k + 1) / 2 + k floats: once (cross-direct), or in every step
    sketch   r vectors of m floats once, then m floats a step
    iterate  m + q floats a step

The number of averagings is counted from experience; with
kappa the condition of the scaled objectives, s = sqrt(kappa) ln(2/tol), for a cross factor near 1:

    cross-direct 1, cross-ipm 6, cross-newton 7 summed, 12 on a sketch
    cross-cg 12 on a sketch; else s, at most twice the unknowns of the dual; cross-apapc 2 s
    cross-continuation, cross-sliding 3000: lassos took 700 to 100,000
"""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ccmac.errors import InputError, MethodRefused
from ccmac.ledger import Cost, Costs
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Prepared, Request, built, described, option, options_of
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import CrossDirect
from ccmac.methods.interior.compressed import compressible
from ccmac.methods.interior.method import CrossIpm, solvable
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.newton.method import REVEAL, CrossNewton, summable
from ccmac.methods.paper import METHODS, imported
from ccmac.methods.realized import CERTIFICATES, REALIZATIONS, RealizedMethod
from ccmac.methods.sliding import CrossSliding
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.realizations.base import Certificates
from ccmac.show import Listing
from ccmac.texts import nearest, shown
from ccmac.workspace import Workspace
from ccmac.workspace.dual import planned_size

Kind = type[Method]
HESSIAN = 500  # unknowns of an agent up to which a dense Hessian in every step is small


@dataclass(frozen=True)
class Case:
    """What the rules ask of a problem: sizes that everybody knows, and what is gathered once.

    ``free``: no realization, certificates or products-only access was asked for.
    """

    work: Workspace
    costs: Costs
    free: bool

    def has(self, *names: str) -> bool:
        """Whether the objectives offer all of it together."""
        return self.work.capabilities.issuperset(names)

    @property
    def strong(self) -> bool:
        """Smooth and strongly convex."""
        return self.has("smooth", "strongly convex")

    @property
    def factorable(self) -> bool:
        """Quadratic, and every agent can factorize its Hessian."""
        return self.free and self.has("quadratic") and self.work.curvature.factorable

    @property
    def summable(self) -> bool:
        """Strongly convex quadratics whose equations all may know, in full or (masked) in sums."""
        known = self.work.gatherable or self.work.hides
        return self.factorable and self.has("strongly convex") and known

    def in_one_sum(self) -> bool:
        """Summable; masked rows have to be seen to be independent."""
        if not self.summable:
            return False
        sums = self.work.gather_sums()
        return sums is None or sums.independent

    def has_newton(self) -> bool:
        """Whether cross-newton has a form: z follows from x, or its matrix can be summed."""
        if not self.free or not self.has("smooth") or self.has("quadratic"):
            return False
        if self.costs.round <= 0:
            return False
        return self.work.gather_explicit() is not None or summable(self.work) is not None

    def averagings_dominate(self) -> bool:
        """Whether one averaging costs more than a local minimisation, some 20 gradients."""
        averaging = self.costs.round * self.work.runtime.averaging.rounds
        return averaging >= 20 * self.costs.gradient and averaging > 0

    def has_small_blocks(self) -> bool:
        """Whether the common system is small, and Hessians that are not constant are as well."""
        bent = self.has("smooth") and not self.has("quadratic")
        small = not bent or self.work.curvature.d.max(initial=0) <= HESSIAN
        return self.free and small and solvable(self.work)


@dataclass(frozen=True)
class Rule:
    """A condition, the method taken where it holds, and the reason shown."""

    holds: Callable[[Case], bool]
    method: Kind
    why: str


# First-order methods without strong convexity, one vector an averaging; no messages to decide.
FIRST_ORDER = (
    Rule(
        lambda c: c.has("prox") and (not c.has("smooth") or c.work.curvature.separable),
        CrossSliding,
        "not strongly convex, and every objective has a prox",
    ),
    Rule(lambda c: c.has("smooth") and not c.work.curvature.L.any(), CrossSliding, "linear"),
    Rule(lambda c: c.has("smooth"), CrossContinuation, "smooth but not strongly convex"),
    Rule(lambda c: True, CrossSliding, "not smooth, and some objective has no prox"),
)

RULES = (
    Rule(lambda c: c.work.curvature.conic, CrossIpm, "cones: interior points"),
    Rule(Case.has_newton, CrossNewton, "smooth, with Hessians: fewest averagings"),
    Rule(lambda c: c.strong and c.in_one_sum(), CrossDirect, "quadratic, in one sum"),
    Rule(
        lambda c: c.strong and c.factorable,
        CrossCg,
        "quadratic with cheap local solves: fewest averagings",
    ),
    Rule(
        lambda c: c.strong and c.free and not c.has("quadratic") and c.averagings_dominate(),
        CrossLbfgs,
        "averagings more expensive than local minimisations: fewest of them",
    ),
    Rule(lambda c: c.strong, CrossApapc, "smooth and strongly convex objectives"),
    Rule(
        lambda c: c.has("polyhedral") and c.free and bool(compressible(c.work)),
        CrossIpm,
        "kinks and a squared loss, or hinges, of few columns: interior points",
    ),
    Rule(
        lambda c: c.has("polyhedral") and c.has_small_blocks(),
        CrossIpm,
        "quadratic or smooth with bounds, kinks or flat directions, by interior points",
    ),
    *FIRST_ORDER,
)

# What goes on after a stall or a divergence: where F is strongly convex, and elsewhere.
FALLBACKS: dict[Kind, tuple[Kind, Kind]] = {
    CrossDirect: (CrossCg, CrossIpm),
    **dict.fromkeys((CrossNewton, CrossCg, CrossLbfgs), (CrossApapc, CrossContinuation)),
    CrossIpm: (CrossContinuation, CrossContinuation),  # of smooth objectives
}

# What fits as well, with other bytes and rounds: where F is strongly convex, and elsewhere. Of
# interior points it is a first-order method.
RIVALS: dict[Kind, tuple[tuple[Kind, ...], tuple[Kind, ...]]] = {
    CrossDirect: ((CrossCg, CrossApapc), ()),
    CrossNewton: ((CrossApapc,), (CrossContinuation,)),
    CrossCg: ((CrossDirect, CrossApapc, CrossNewton), ()),
    CrossLbfgs: ((CrossApapc,), ()),
}


@dataclass(frozen=True)
class Auto(Method):
    """Chooses among the cross- methods; what is asked for here is handed to the one chosen.

    A realization, certificates or access narrow the choice to methods that know them. ``radius``
    and ``accuracy`` serve problems without strong convexity and are not needed elsewhere.

    Parameters
    ----------
    realization : {"averaged", "canonical", "certified", "stack"}, optional
        How the constraints are executed.
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    radius : float, optional
        R >= ||(x0, z0) - (x*, z*)||, where a gap is proved.
    accuracy : float, optional
        Absolute eps instead of tol max(1, |F|).
    reveal : {"range", "sketch"}, optional
        "range": columns may be sent once, turned; "sketch": single images of them.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.Auto()).status
    'optimal'
    """

    name = "auto"
    summary = "the method that fits the objectives and the costs"

    realization: str | None = option(
        None, str, "how the constraints are executed", choices=REALIZATIONS
    )
    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)
    reveal: str | None = option(None, str, REVEAL, choices=("range", "sketch"))
    radius: float | None = option(
        None, float, "R >= ||(x0, z0) - (x*, z*)||, where a gap is proved"
    )
    accuracy: float | None = option(None, float, "absolute eps instead of tol max(1, |F|)")

    def refuse_shape(self, stack: bool) -> None:
        """The method chosen says whether the realization asked for fits."""

    def announce(self, work: Workspace, request: Request) -> None:
        """Of cross-direct, where that is going to be chosen."""
        if self._case(work).summable:
            self._cheapest(CrossDirect(), "", work, request)[0].announce(work, request)

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Of the method chosen."""
        return self.ranked(work, request)[0][0].prepare(work, request)

    def ranked(self, work: Workspace, request: Request) -> list[tuple[Method, str]]:
        """The methods to take one after the other, should one stall."""
        case = self._case(work, request.costs)
        rule = next(rule for rule in RULES if rule.holds(case))
        found = self._cheapest(self._with(rule.method), rule.why, work, request)
        kinds = FALLBACKS.get(type(found[0]))
        bent = case.has("smooth") and not work.curvature.conic
        if kinds is None or (isinstance(found[0], CrossIpm) and not bent):
            return [found]
        if isinstance(found[0], CrossNewton) and found[0].takes_range(work, request):
            return [found]  # nobody else gets nearer
        after = kinds[0] if case.has("strongly convex") else kinds[1]
        return [found, (self._with(after), "what came before it stalled")]

    def alternatives(
        self, work: Workspace, request: Request, chosen: Method
    ) -> tuple[Alternative, ...]:
        """What the method chosen and its rivals would send: the one chosen, then by bill."""
        found = [forecast(method, work, request) for method in self._rivals(chosen, work)]
        rivals = sorted((a for a in found if a is not None), key=lambda a: a.bill)
        first = forecast(chosen, work, request)
        return tuple(rivals if first is None else [first, *rivals])

    def _case(self, work: Workspace, costs: Costs | None = None) -> Case:
        asked = self.realization is not None or self.certificates is not None
        free = not asked and work.stack is None
        return Case(work, costs or Costs(), free)

    def _rivals(self, chosen: Method, work: Workspace) -> list[Method]:
        """Methods that fit where ``chosen`` does; no messages."""
        if work.curvature.conic:
            return []
        if isinstance(chosen, CrossIpm):
            case = self._case(work)
            return [self._with(next(rule.method for rule in FIRST_ORDER if rule.holds(case)))]
        strong, other = RIVALS.get(type(chosen), ((), ()))
        kinds = strong if "strongly convex" in work.capabilities else other
        if isinstance(chosen, CrossCg):  # columns are sent where that is asked for
            out = CrossApapc if self.reveal == "range" else CrossNewton
            kinds = tuple(kind for kind in kinds if kind is not out)
        return [self._with(kind) for kind in kinds]

    def _cheapest(
        self, method: Method, why: str, work: Workspace, request: Request
    ) -> tuple[Method, str]:
        """The one of fewest rounds, unless the bytes of a summed matrix would cost more than its
        rounds and the bill of a rival is lower even with twice the steps.
        """
        costs = request.costs
        k = work.problem.m + work.problem.q
        matrix = work.runtime.average_cost(k * (k + 1) // 2)
        if costs.byte * matrix["bytes"] <= costs.round * matrix["rounds"]:
            return method, why
        ranged = CrossNewton(reveal="range")
        asked = self.reveal == "range" and isinstance(method, CrossCg)
        if asked and ranged.takes_range(work, request):
            ways = (forecast(ranged, work, request), forecast(method, work, request))
            # conjugate directions may take four times as many steps
            if ways[0] and ways[1] and ways[0].bill <= 4 * ways[1].bill:
                return ranged, "columns may be sent: everybody minimises alone"
        mine, *rivals = self.alternatives(work, request, method) or (None,)
        if mine is None or mine.method != method.name or not rivals:
            return method, why
        if 2 * rivals[0].bill >= mine.bill:
            return method, why
        return self._with(find(rivals[0].method)), f"fewer bytes than {mine.method} at these costs"

    def _with(self, kind: Kind) -> Method:
        """The method with those of the options that were given and that it has."""
        known = options_of(kind)
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name in known
        }
        return kind(**given)


# -- what a method would send ----------------------------------------------------------------------
def forecast(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """By the table of the module text; None where nothing is known of the method."""
    found = None if work.stack is not None else _sent(method, work, request)
    if found is None:
        return None
    regime, cost = found
    return Alternative(regime, method.name, cost, request.costs.bill(cost), method.reveals)


def _sent(method: Method, work: Workspace, request: Request) -> tuple[str, Cost] | None:
    """(regime, so many averagings of so many floats); no messages."""
    average = work.runtime.average_cost
    m = work.problem.m
    q = work.problem.q
    k = m + q
    row = average(work.coupling.width + q)
    columns = int(work.curvature.d.sum())
    if isinstance(method, CrossDirect):
        return SUM, average(_matrix(k)) + 2 * average(4 * k)
    if isinstance(method, CrossIpm):
        if compressible(work):
            step = average(_matrix(2 * columns)) + 2 * average(columns)
            return SKETCH, average(m * columns) + 6 * step
        return SUM, 6 * (average(_matrix(k)) + 2 * average(k))
    if isinstance(method, CrossNewton):
        return method.sent(work, request)
    if isinstance(method, CrossCg) and work.eliminated is not None:
        size = min(method.sketch or planned_size(work.runtime, m, request.costs), m)
        steps = 2 if size >= min(columns, m) else 12
        return SKETCH, average(m * size) + (steps + 2) * average(m)
    if isinstance(method, CrossContinuation | CrossSliding):
        return ITERATE, 3000 * row
    if not isinstance(method, CrossCg | CrossApapc):
        return None
    kappa = work.curvature.known().condition
    steps = max(1, math.ceil(min(math.sqrt(kappa) * math.log(2.0 / min(request.tol, 1.0)), 1e9)))
    unknowns = work.coupling.width + (work.problem.n - 1) * q
    most = 2 * max(unknowns, 1)
    return ITERATE, (min(steps, most) if isinstance(method, CrossCg) else 2 * steps) * row


def _matrix(k: int) -> int:
    """Floats of a symmetric k x k matrix and a vector."""
    return k * (k + 1) // 2 + k


# -- by name ---------------------------------------------------------------------------------------
class Registry(UserDict[str, Any]):
    """Classes of methods by name; those given as a place in ``ccmac.paper`` come when asked for."""

    def __getitem__(self, name: str) -> type[Method]:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = imported(found)
        return found  # type: ignore[no-any-return]


REGISTRY = Registry(
    {
        "cross-apapc": CrossApapc,
        "cross-cg": CrossCg,
        "cross-direct": CrossDirect,
        "cross-ipm": CrossIpm,
        "cross-lbfgs": CrossLbfgs,
        "cross-continuation": CrossContinuation,
        "cross-sliding": CrossSliding,
        **METHODS,
        "cross-newton": CrossNewton,  # last: it takes not all that is smooth
    }
)


def find(name: str) -> type[Method]:
    """The class of the method called ``name``."""
    if name == Auto.name:
        return Auto
    if name not in REGISTRY:
        known = [Auto.name, *REGISTRY]
        raise InputError(f"method {shown(name)} is unknown; {nearest(name, known)}")
    return REGISTRY[name]


def parse(method: str | Method, options: Mapping[str, Any] | None = None) -> Method:
    """A method from its name and options, or the one given; refuses what it does not know."""
    if isinstance(method, type) and issubclass(method, Method):
        method = method()
    if isinstance(method, Method):
        if options:
            raise InputError(f"{method.name}: give options to the method itself, not next to it")
        return method
    if not isinstance(method, str):
        raise InputError(
            f"method: expected a name or a method such as ccmac.methods.CrossApapc(), "
            f"got {type(method).__name__}"
        )
    others = {
        option: name for name, cls in reversed(list(REGISTRY.items())) for option in options_of(cls)
    }
    return built(find(method), options or {}, others)


def refuse_unless_fit(method: Method, work: Workspace) -> None:
    """Raise MethodRefused naming the missing need and a method that would work."""
    method.refuse_shape(work.stack is not None)
    if work.curvature.conic and not isinstance(method, CrossIpm | Auto):
        raise MethodRefused(
            f"method {method.name} does not take cones, which some agent has; use {CrossIpm.name}"
        )
    if work.curvature.conic and not work.curvature.polyhedral:
        raise MethodRefused(
            f"method {method.name} takes cones next to quadratics, kinks and smooth losses, and "
            "some agent's objective is none; use another objective, or no cones"
        )
    missing = sorted(method.needs - work.capabilities)
    if missing:
        raise MethodRefused(
            f"method {method.name} needs {' and '.join(missing)}, which the problem does not "
            f"offer; use {_fitting(work)}"
        )


def _fitting(work: Workspace) -> str:
    """The first method whose needs the problem meets."""
    stacked = work.stack is not None
    for name, cls in REGISTRY.items():
        if cls.needs <= work.capabilities and (issubclass(cls, RealizedMethod) or not stacked):
            return name
    return Auto.name


def available_methods() -> Listing:
    """The methods by name: what each does, what it needs of the objectives, its options.

    Returns
    -------
    dict
        ``{"summary", "needs", "options"}`` by name. Printed, it is a table.

    Examples
    --------
    >>> import ccmac
    >>> ccmac.available_methods()["cross-cg"]["needs"]
    ['quadratic', 'smooth', 'strongly convex']
    """
    return Listing(
        {
            name: {"summary": cls.summary, "needs": sorted(cls.needs), "options": described(cls)}
            for name, cls in REGISTRY.items()
        }
    )
