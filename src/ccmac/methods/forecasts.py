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
from ccmac.methods.newton.method import USUAL, CrossNewton, steps_after
from ccmac.methods.sliding.method import CrossSliding
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import OPENING, planned_size


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
    if not (short or work.gatherable or (isinstance(method, CrossDirect) and work.hides)):
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
        step = Cost(argmins=1) + average(matrix) + 2 * average(k)
        steps = 9
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
    again = parts.rank if parts is not None and parts.recycles else 0
    planned = planned_size(work.runtime, m, request.costs, again=again)
    size = min(method.sketch or min(planned, OPENING), m)
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
