"""``method="auto"``: a table of rules chooses the method that fits, and says why.

The rules go from few to many communication rounds; the first that holds decides. Where bytes are
expensive a rival of lower predicted cost takes its place; after a stall the next method goes on.

What a method would send follows from sizes and constants that everybody knows: no messages. With m
coupled rows, q shared variables and k = m + q, the cost of averaging

    sum      k (k + 1) / 2 + k floats: once (cross-direct), or in every step
    sketch   r vectors of m floats once, then m floats a step
    iterate  m + q floats a step

The number of steps is counted from experience, known within the factor that goes with it; with
kappa the condition of the scaled objectives, s = sqrt(kappa) ln(2/tol), for a cross factor near 1:

    cross-direct 1, cross-ipm 6, cross-newton 7 summed, 12 on a sketch
    cross-cg 12 on a sketch; else s, at most twice the unknowns of the dual; cross-apapc 2 s
    cross-continuation, cross-sliding 600
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ccmac.ledger import GREATEST, Cost, Costs
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Prepared, Request, option, options_of
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import STEPS, CrossDirect
from ccmac.methods.interior.compressed import compressible
from ccmac.methods.interior.method import CrossIpm, solvable
from ccmac.methods.lbfgs import CrossLbfgs
from ccmac.methods.local import without_factorizations
from ccmac.methods.newton.method import REVEAL, USUAL, CrossNewton, steps_after, summable
from ccmac.methods.realized import CERTIFICATES, REALIZATIONS
from ccmac.methods.sliding.method import CrossSliding
from ccmac.methods.system import affordable
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.realizations.base import Certificates
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.workspace import Workspace
from ccmac.workspace.dual import planned_size

Kind = type[Method]


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
        """Quadratics whose equations all agents may know, in full or (masked) in sums."""
        work = self.work
        hidden = work.hides and self.has("strongly convex")
        return self.factorable and (work.gatherable or hidden)

    def in_one_sum(self) -> bool:
        """Summable, flat directions few enough; masked rows have to be seen to be independent."""
        if not self.summable:
            return False
        if (sums := self.work.gather_sums()) is not None:
            return sums.independent
        if self.has("strongly convex"):
            return True
        known = self.work.gather_constraints()
        return known is not None and affordable(self.work, known)

    def has_newton(self) -> bool:
        """Whether cross-newton has a form: z follows from x, or its matrix can be summed."""
        if not self.free or not self.has("smooth") or self.has("quadratic"):
            return False
        if self.costs.round <= 0:
            return False
        return self.work.gather_explicit() is not None or summable(self.work) is not None

    def averagings_dominate(self) -> bool:
        """Whether one averaging costs more than the gradients of one local minimisation."""
        averaging = self.costs.round * self.work.runtime.averaging.rounds
        gradients = 20  # inside one entrywise minimisation: 15 to 22 counted on real data
        expensive = averaging >= gradients * self.costs.gradient and averaging > 0
        return expensive and without_factorizations(self.work)

    def has_short_rows(self) -> bool:
        """Whether long rows of few columns can be made short."""
        return self.free and bool(compressible(self.work))

    def has_small_blocks(self) -> bool:
        """Whether the agents' blocks and the common system are small, and there are kinks, bounds
        or a quadratic.
        """
        smooth = self.has("smooth") and not self.has("quadratic")
        return self.free and not smooth and solvable(self.work)


@dataclass(frozen=True)
class Rule:
    """A condition, the method taken where it holds, and the reason shown."""

    holds: Callable[[Case], bool]
    method: Kind
    why: str


# First-order methods without strong convexity, one vector an averaging; no messages to decide.
FIRST_ORDER = (
    Rule(
        lambda c: c.has("prox", "smooth") and c.work.curvature.separable,
        CrossSliding,
        "smooth but not strongly convex, and every objective has a prox",
    ),
    Rule(
        lambda c: c.has("prox") and not c.has("smooth"),
        CrossSliding,
        "not smooth, and every objective has a prox",
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
    Rule(Case.in_one_sum, CrossDirect, "quadratic with flat directions, in one sum"),
    Rule(
        lambda c: c.has("polyhedral") and c.has_short_rows(),
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
}

# What fits as well, with other bytes and rounds: where F is strongly convex, and elsewhere. Of
# interior points it is a first-order method.
RIVALS: dict[Kind, tuple[tuple[Kind, ...], tuple[Kind, ...]]] = {
    CrossDirect: ((CrossCg, CrossApapc), (CrossIpm, CrossContinuation)),
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

    def finds_falls(self, work: Workspace) -> bool:
        """Where cross-direct is chosen."""
        return self._case(work).in_one_sum()

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Of the method chosen."""
        return self.ranked(work, request)[0][0].prepare(work, request)

    def ranked(self, work: Workspace, request: Request) -> list[tuple[Method, str]]:
        """The methods to take one after the other, should one stall."""
        case = self._case(work, request.costs)
        rule = next(rule for rule in RULES if rule.holds(case))
        found = self._cheapest(self._with(rule.method), rule.why, work, request)
        kinds = FALLBACKS.get(type(found[0]))
        if kinds is None or self._exhausts(found[0], work, request):
            return [found]
        after = kinds[0] if case.has("strongly convex") else kinds[1]
        return [found, (self._with(after), "what came before it stalled")]

    def _exhausts(self, method: Method, work: Workspace, request: Request) -> bool:
        """Whether everybody minimises alone, to rounding: nobody else gets nearer."""
        explicit = work.gather_explicit() if isinstance(method, CrossNewton) else None
        return (
            isinstance(method, CrossNewton)
            and explicit is not None
            and method.takes_range(work, explicit, request)
        )

    def alternatives(
        self, work: Workspace, request: Request, chosen: Method
    ) -> tuple[Alternative, ...]:
        """What the method chosen and its rivals would send: the one chosen, then by bill."""
        first = forecast(chosen, work, request)
        spent = work.ledger.of("setup")
        gathered = work.constraints is not None and "strongly convex" in work.capabilities
        if first is not None and first.method == CrossDirect.name and gathered:
            spent = spent - first.once  # rivals would not have sent a matrix with the equations
        before = Cost({unit: count for unit, count in spent.items() if unit not in GREATEST})
        found = [forecast(method, work, request) for method in self._rivals(chosen, work)]
        known = [replace(a, once=before + a.once) for a in found if a is not None]
        known.sort(key=lambda a: a.bill)
        return tuple(known if first is None else [first, *known])

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
        rounds and a rival's bill is lower even with more steps than it is predicted to take.
        """
        costs = request.costs
        k = work.problem.m + work.problem.q
        matrix = work.runtime.average_cost(k * (k + 1) // 2)
        if costs.byte * matrix["bytes"] <= costs.round * matrix["rounds"]:
            return method, why
        if self.reveal == "range" and work.eliminated is not None:
            work.gather_explicit()  # says how many steps a sketch leaves
        mine = forecast(method, work, request)
        if mine is None:
            return method, why
        best = mine.bill
        for rival in self._rivals(method, work):
            found = forecast(rival, work, request)
            if found is not None and (bill := costs.bill(found.cautious)) < best:
                method = rival
                best = bill
                why = f"fewer bytes than {mine.method} at these costs"
        return method, why

    def _with(self, kind: Kind) -> Method:
        """The method with those of the options that were given and that it has."""
        known = options_of(kind)
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name in known
        }
        return kind(**given)


# -- what a method would send ----------------------------------------------------------------------
def forecast(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """None where nothing is known of the method (a Stack, a comparator)."""
    found: Alternative | None = None
    if work.stack is not None:
        return None
    explicit = work.gather_explicit() if isinstance(method, CrossNewton) else None
    if isinstance(method, CrossNewton) and explicit is not None:
        ranged = method.takes_range(work, explicit, request)
        found = method.by_range(work) if ranged else method.by_sketch(work, explicit, request)
    elif isinstance(method, CrossCg) and work.eliminated is not None:
        found = _sketched(method, work, request)
    elif isinstance(method, CrossDirect | CrossIpm | CrossNewton):
        found = _summed(method, work)
    elif isinstance(method, CrossCg | CrossApapc | CrossContinuation | CrossSliding):
        found = _iterated(method, work, request)
    return found and replace(found, bill=request.costs.bill(found.predicted))


def _proof(work: Workspace) -> Cost:
    """Of one point in equations that all know: moved onto them, given multipliers, judged."""
    k = work.problem.m + work.problem.q
    if not work.gatherable:
        return Cost()
    return work.runtime.gather_cost(3 * k) + 2 * work.runtime.average_cost(2 * k)


def _summed(method: Method, work: Workspace) -> Alternative | None:
    """A matrix of k x k and a vector: with the equations (cross-direct), or in every step.

    Interior points send two narrow messages more a step, and long rows on the range of their
    columns.
    """
    average = work.runtime.average_cost
    k = work.problem.m + work.problem.q
    columns = int(work.curvature.d.sum())
    interior = isinstance(method, CrossIpm)
    short = compressible(work) if interior else 0
    there = solvable(work) if interior else work.gatherable
    if not (short or there or (isinstance(method, CrossDirect) and work.hides)):
        return None
    k = 2 * columns if short else k
    matrix = k * (k + 1) // 2 + k
    memory = (3 if interior else 2) * FLOAT_BYTES * k**2 + short
    once = Cost()
    proofs = Cost()
    if isinstance(method, CrossDirect):
        once = average(matrix + 1) - average(1)
        judged = average(4 * k) if work.hides else work.runtime.gather_cost(4 * k)
        step = Cost(argmins=1, gradients=1) + judged
        steps = 1
        within = (1 + STEPS) / 2
    elif interior:
        once = average(work.problem.m * columns) if short else Cost()
        step = Cost(argmins=1) + average(matrix + 5 * k) + average(2 * k) + average(1)
        steps = 6
        within = 3.0
        proofs = step
    else:
        step = Cost(argmins=1, gradients=1) + average(matrix)
        steps = USUAL
        within = 2.0
        proofs = 2 * _proof(work)
    regime = SKETCH if short else SUM
    name = method.name
    return Alternative(
        regime, name, once, step, steps, within, memory, method.reveals, proofs=proofs
    )


def _sketched(method: CrossCg, work: Workspace, request: Request) -> Alternative:
    """A block of vectors of m floats once, one a step; a block of everything leaves little."""
    m = work.problem.m
    average = work.runtime.average_cost
    parts = work.eliminated
    again = parts.rank if parts is not None and work.recycles else 0
    planned = planned_size(work.runtime, m, request.costs, again=again)
    size = min(method.sketch or planned, m)
    once = Cost(argmins=size) + average(m * size)
    steps = 2 if size >= min(int(work.curvature.d.sum()), m) else 12
    if (explicit := work.known_explicit) is not None:
        steps = steps_after(size, work, explicit, request)
    memory = 2 * FLOAT_BYTES * m * (size + steps)
    step = Cost(argmins=1) + average(m)
    return Alternative(
        SKETCH, method.name, once, step, steps, 4.0, memory, method.reveals, proofs=average(m)
    )


def _iterated(method: Method, work: Workspace, request: Request) -> Alternative:
    """One vector of rows and shared variables a step; proofs between."""
    problem = work.problem
    width = work.coupling.width + problem.q
    memory = 8 * FLOAT_BYTES * (width + max(problem.d.values(), default=0))
    step = Cost(gradients=1) + work.runtime.average_cost(width)
    steps = 600
    within = 12.0
    proofs = Cost()
    if isinstance(method, CrossCg):
        unknowns = work.coupling.width + (problem.n - 1) * problem.q
        step = Cost(argmins=1) + work.runtime.average_cost(width)
        steps = min(_conditioned(work, request, 1.0), 2 * max(unknowns, 1))
        within = 4.0
        proofs = 6 * _proof(work)
    elif isinstance(method, CrossApapc):
        steps = _conditioned(work, request, 2.0)
        within = 4.0
        proofs = 8 * _proof(work)
    return Alternative(
        ITERATE, method.name, Cost(), step, steps, within, memory, method.reveals, proofs=proofs
    )


def _conditioned(work: Workspace, request: Request, factor: float) -> int:
    """factor sqrt(kappa) ln(2/tol)."""
    kappa = work.curvature.known().condition
    accuracy = math.log(2.0 / min(request.plan_tol, 1.0))
    return max(1, math.ceil(min(factor * math.sqrt(kappa) * accuracy, 1e9)))
