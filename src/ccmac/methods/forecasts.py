"""What each way of solving would send, from sizes and constants that everybody knows: no messages.

Messages are exact; the number of steps is a count from experience, known within the factor that
goes with it. With kappa the condition of the scaled objectives and k = sqrt(kappa) ln(2/tol):

    cross-direct        1 step, up to STEPS where rounding wants to be removed
    cross-ipm           9 steps (5 to 14 counted; fewer without kinks)
    cross-newton        7 steps where the matrix is summed, 12 on a sketch
    cross-cg            12 steps on a sketch; else k, at most twice the unknowns of the dual
    cross-apapc         2 k averagings
    cross-continuation, cross-sliding   600 averagings

k is for a cross factor (ccmac.geometry) near 1 and grows with it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ccmac.certificates.share import NUMBERS
from ccmac.ledger import Cost
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Request
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation.method import CrossContinuation
from ccmac.methods.direct import STEPS, CrossDirect
from ccmac.methods.interior.elimination import PARTS
from ccmac.methods.interior.iteration import FACTS
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.newton.eliminated import LENGTHS
from ccmac.methods.newton.method import USUAL, CrossNewton
from ccmac.methods.sliding.method import CrossSliding
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.runtime.notes import heard_cost
from ccmac.workspace import Workspace
from ccmac.workspace.blocks import OPENING, SPARE, in_averagings, planned_size
from ccmac.workspace.coupling import BITS

INTERIOR = 9
SKETCHED = 12
SLOW = 600


def forecast(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """None where nothing is known of the method (a Stack, a comparator)."""
    if work.stack is not None:
        return None
    found = _compressed(method, work) or _summed(method, work)
    found = found or _sketched(method, work, request)
    found = found or _iterated(method, work, request)
    return found and replace(found, bill=request.costs.bill(found.predicted))


def _triangle(size: int) -> int:
    return size * (size + 1) // 2


def _summed(method: Method, work: Workspace) -> Alternative | None:
    """Methods that sum a matrix."""
    newton = isinstance(method, CrossNewton) and work.explicit is None
    if not isinstance(method, CrossDirect | CrossIpm) and not newton:
        return None
    direct = isinstance(method, CrossDirect)
    reduced, runtime, problem = work.reduced, work.runtime, work.problem
    if direct and reduced is None and "strongly convex" in work.capabilities:
        reduced = work.gram
    if reduced is None:
        return None
    size, average = problem.q + reduced.rank, runtime.average_cost
    kept = 2 * FLOAT_BYTES * size**2
    if direct:
        k = problem.q + problem.m  # what is summed travels with the equations
        once = average(_triangle(k) + k + 1) - average(1)
        flat = 0
        if "strongly convex" not in work.capabilities:  # ... after them, with flat directions
            flat = work.flats.count
            once, kept = (
                average(_triangle(size + flat) + size + flat),
                2 * FLOAT_BYTES * (size + flat) ** 2,
            )
        width = 4 * problem.m + 3 * problem.q + flat + NUMBERS
        told = heard_cost(runtime, width)
        step = Cost(argmins=1, gradients=1) + told
        steps, within = 1, (1 + STEPS) / 2
    elif newton:
        step = Cost(argmins=1, gradients=1) + average(_triangle(size) + size + len(LENGTHS))
        once, steps, within = Cost(), USUAL, 2.0
    else:
        k = problem.q + problem.m
        once, step = _interior(work, problem.q, k)
        steps, within, kept = INTERIOR, 3.0, 3 * FLOAT_BYTES * (k + 1) ** 2
    return Alternative(SUM, method.name, once, step, steps, within, kept, method.reveals)


def _interior(work: Workspace, q: int, k: int) -> tuple[Cost, Cost]:
    """(once, a step) of interior points with k shared variables and rows."""
    runtime, n = work.runtime, work.problem.n
    room = 1 if runtime.averaging.rows_known else n
    width = _triangle(k) + k + (2 + PARTS) * (k + 1) + FACTS
    messages = runtime.average_cost(width) + runtime.average_cost(k + 1, room)
    return (
        runtime.gather_cost(3 + 2 * q + -(-k // BITS)),
        Cost(argmins=1) + messages + runtime.gather_cost(1),
    )


def _compressed(method: Method, work: Workspace) -> Alternative | None:
    """Interior points on the range of long rows, at most as many as there are columns."""
    if not isinstance(method, CrossIpm) or not work.compressible:
        return None
    rank, m = int(work.curvature.d.sum()), work.problem.m
    once, step = _interior(work, rank, 2 * rank)
    once = once + work.runtime.average_cost(m * (rank + SPARE + 1))
    kept = work.compressible + 3 * FLOAT_BYTES * (2 * rank + 1) ** 2
    return Alternative(SKETCH, method.name, once, step, INTERIOR, 3.0, kept, method.reveals)


def _sketched(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """Methods that open with a block of vectors."""
    m, runtime, rank = work.problem.m, work.runtime, int(work.curvature.d.sum())
    if isinstance(method, CrossNewton) and work.explicit is not None:
        planned = planned_size(runtime, m, request.costs)
        size = min(planned if method.sketch is None else method.sketch, work.explicit.rank)
        once, common = runtime.average_cost(m * (1 + size)), work.explicit.common
        own = Cost(argmins=3) if common else Cost(argmins=2, gradients=3)
        step = own + runtime.average_cost(m if common else m + 2 * work.problem.q + len(LENGTHS))
    elif isinstance(method, CrossCg) and work.eliminated is not None:
        again = rank if work.eliminated.recycles else 0
        most = planned_size(runtime, m, request.costs, again=again)
        size = min(method.sketch or min(most, OPENING), m)
        sketches = [runtime.average_cost(m * k) for k in in_averagings(runtime, m, size)]
        once = sum(sketches, Cost(argmins=size))
        step = Cost(argmins=1) + runtime.average_cost(m)
    else:
        return None
    steps = 2 if size >= min(rank, m) else SKETCHED  # a sketch of everything leaves nothing to do
    kept = 2 * FLOAT_BYTES * m * (size + steps)
    return Alternative(SKETCH, method.name, once, step, steps, 4.0, kept, method.reveals)


def _iterated(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """Methods that send one vector at a time."""
    problem, runtime = work.problem, work.runtime
    if not isinstance(method, CrossCg | CrossApapc | CrossContinuation | CrossSliding):
        return None
    width = work.coupling.width + problem.q
    kept = 8 * FLOAT_BYTES * (width + max(problem.d.values(), default=0))
    step, steps, within = Cost(gradients=1) + runtime.average_cost(width), SLOW, 12.0
    if isinstance(method, CrossCg):
        unknowns = work.coupling.width + (problem.n - 1) * problem.q
        step = Cost(argmins=1) + runtime.average_cost(width, 2)
        steps, within = min(_conditioned(work, request, 1.0), 2 * max(unknowns, 1)), 4.0
    elif isinstance(method, CrossApapc):
        if work.coupling.few is not None:
            own = work.coupling.among(problem.q)
            step = Cost(gradients=1) + runtime.average_cost(width, own=own)
        steps, within = _conditioned(work, request, 2.0), 4.0
    return Alternative(ITERATE, method.name, Cost(), step, steps, within, kept, method.reveals)


def _conditioned(work: Workspace, request: Request, factor: float) -> int:
    """factor sqrt(kappa) ln(2/tol)."""
    kappa = work.curvature.known().condition
    accuracy = math.log(2.0 / min(request.plan_tol, 1.0))
    return max(1, math.ceil(min(factor * math.sqrt(kappa) * accuracy, 1e9)))
