"""What a method would send, from sizes and constants that everybody knows: no messages.

One formula for each family, with m coupled rows, q shared variables, k = m + q, and W(w) the cost
of averaging w floats:

    sum      k (k + 1) / 2 + k floats: once (cross-direct), or in every step
    sketch   r vectors of m floats once, then m floats a step
    iterate  m + q floats a step

The number of steps is counted from experience, known within the factor that goes with it; with
kappa the condition of the scaled objectives, s = sqrt(kappa) ln(2/tol), for a cross factor near 1:

    cross-direct 1, cross-ipm 9, cross-newton 7 summed, 12 on a sketch
    cross-cg 12 on a sketch; else s, at most twice the unknowns of the dual; cross-apapc 2 s
    cross-continuation, cross-sliding 600
"""

from __future__ import annotations

import math
from dataclasses import replace

from ccmac.ledger import Cost
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Request
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import STEPS, CrossDirect
from ccmac.methods.interior.compressed import compressible
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.newton.method import USUAL, CrossNewton
from ccmac.methods.sliding.method import CrossSliding
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import OPENING, planned_size


def forecast(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """None where nothing is known of the method (a Stack, a comparator)."""
    if work.stack is not None:
        return None
    found: Alternative | None = None
    if isinstance(method, CrossNewton):
        found = _sketched_newton(method, work, request) or _summed_newton(method, work)
    elif isinstance(method, CrossDirect):
        found = _direct(method, work)
    elif isinstance(method, CrossIpm):
        found = _interior(method, work)
    elif isinstance(method, CrossCg) and work.eliminated is not None:
        found = _sketched_cg(method, work, request)
    elif isinstance(method, CrossCg | CrossApapc | CrossContinuation | CrossSliding):
        found = _iterated(method, work, request)
    return found and replace(found, bill=request.costs.bill(found.predicted))


def _matrix(k: int) -> int:
    """Floats of a symmetric matrix and a vector."""
    return k * (k + 1) // 2 + k


def _proof(work: Workspace) -> Cost:
    """Of one point in equations that all know: moved onto them, given multipliers, judged."""
    k = _common(work)
    if not work.gatherable:
        return Cost()
    return work.runtime.gather_cost(3 * k) + 2 * work.runtime.average_cost(2 * k)


def _common(work: Workspace) -> int:
    return work.problem.m + work.problem.q


# -- a matrix is summed ----------------------------------------------------------------------------
def _direct(method: CrossDirect, work: Workspace) -> Alternative | None:
    """The matrix adds to the message that carries the equations; then what a point leaves."""
    if not (work.gatherable or work.hides):
        return None
    k = _common(work)
    average = work.runtime.average_cost
    once = average(_matrix(k) + 1) - average(1)
    judged = average(4 * k) if work.hides else work.runtime.gather_cost(4 * k)
    step = Cost(argmins=1, gradients=1) + judged
    within = (1 + STEPS) / 2
    memory = 2 * FLOAT_BYTES * k**2
    return Alternative(SUM, method.name, once, step, 1, within, memory, method.reveals)


def _summed_newton(method: CrossNewton, work: Workspace) -> Alternative | None:
    """The matrix in every step."""
    if not work.gatherable:
        return None
    k = _common(work)
    step = Cost(argmins=1, gradients=1) + work.runtime.average_cost(_matrix(k))
    memory = 2 * FLOAT_BYTES * k**2
    proofs = 2 * _proof(work)
    return Alternative(
        SUM, method.name, Cost(), step, USUAL, 2.0, memory, method.reveals, proofs=proofs
    )


def _interior(method: CrossIpm, work: Workspace) -> Alternative | None:
    """The matrix in every step and two narrow messages; one more step proves.

    Long rows are first compressed to the range of their columns.
    """
    average = work.runtime.average_cost
    regime = SUM
    k = _common(work)
    once = Cost()
    memory = 0
    if kept := compressible(work):
        columns = int(work.curvature.d.sum())
        regime = SKETCH
        k = 2 * columns
        once = average(work.problem.m * columns)
        memory = kept
    elif not work.gatherable:
        return None
    step = Cost(argmins=1) + average(_matrix(k)) + 2 * average(k)
    memory += 3 * FLOAT_BYTES * k**2
    return Alternative(regime, method.name, once, step, 9, 3.0, memory, method.reveals, proofs=step)


# -- a sketch, then single vectors -----------------------------------------------------------------
def _sketched_newton(method: CrossNewton, work: Workspace, request: Request) -> Alternative | None:
    """Where z follows from x; five averagings of a proof."""
    explicit = work.gather_explicit()
    if explicit is None:
        return None
    m = work.problem.m
    planned = planned_size(work.runtime, m, request.costs)
    size = min(planned if method.sketch is None else method.sketch, explicit.rank)
    own = Cost(argmins=3) if explicit.common else Cost(argmins=2, gradients=3)
    return _sketched(method, work, size, Cost(), own, proofs=5)


def _sketched_cg(method: CrossCg, work: Workspace, request: Request) -> Alternative:
    """Where z follows from the multipliers of the coupled rows; the last step proves."""
    m = work.problem.m
    parts = work.eliminated
    again = parts.rank if parts is not None and parts.recycles else 0
    planned = planned_size(work.runtime, m, request.costs, again=again)
    size = min(method.sketch or min(planned, OPENING), m)
    return _sketched(method, work, size, Cost(argmins=size), Cost(argmins=1), proofs=1)


def _sketched(
    method: Method, work: Workspace, size: int, opening: Cost, own: Cost, proofs: int
) -> Alternative:
    """``size`` vectors of m floats once, one a step; a sketch of everything leaves little to do."""
    m = work.problem.m
    vector = work.runtime.average_cost(m)
    once = opening + work.runtime.average_cost(m * size)
    steps = 2 if size >= min(int(work.curvature.d.sum()), m) else 12
    memory = 2 * FLOAT_BYTES * m * (size + steps)
    return Alternative(
        SKETCH,
        method.name,
        once,
        own + vector,
        steps,
        4.0,
        memory,
        method.reveals,
        proofs=proofs * vector,
    )


# -- one vector an averaging -----------------------------------------------------------------------
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
