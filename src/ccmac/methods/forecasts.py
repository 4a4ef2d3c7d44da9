"""What each way of solving would send, from sizes and constants that everybody knows: no messages.

Messages are exact; the number of steps is a count from experience, known within the factor that
goes with it. With kappa the condition of the scaled objectives and k = sqrt(kappa) ln(2/tol):

    cross-direct        1 step, up to STEPS where rounding wants to be removed
    cross-ipm           9 steps (5 to 14 counted; fewer without kinks)
    cross-newton        7 steps where the matrix is summed, 12 on a sketch
    cross-cg            12 steps on a sketch; else k, at most twice the unknowns of the dual
    cross-apapc         2 k averagings
    cross-continuation, cross-sliding   600 averagings

and, apart from the steps, of proofs: a step more for cross-ipm, 5 averagings where z follows from x
(1 for cross-cg), else 3 averagings for each of 2 (cross-newton), 6 (cross-cg) or 8 (cross-apapc).
k is for a cross factor (ccmac.geometry) near 1 and grows with it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ccmac.certificates.proof import NUMBERS
from ccmac.ledger import Cost
from ccmac.methods.apapc import CrossApapc
from ccmac.methods.base import Method, Request
from ccmac.methods.cg import CrossCg
from ccmac.methods.continuation import CrossContinuation
from ccmac.methods.direct import STEPS, CrossDirect
from ccmac.methods.interior.compressed import compressible
from ccmac.methods.interior.elimination import PARTS
from ccmac.methods.interior.iteration import FACTS
from ccmac.methods.interior.method import CrossIpm
from ccmac.methods.newton.eliminated import LENGTHS
from ccmac.methods.newton.method import USUAL, CrossNewton
from ccmac.methods.sliding.method import CrossSliding
from ccmac.plans import ITERATE, SKETCH, SUM, Alternative
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.runtime.notes import gathered_rows_cost
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


def _proof(work: Workspace) -> Cost:
    """Of one point in equations that all know: moved onto them, given its prices, judged."""
    m = work.problem.m
    q = work.problem.q
    runtime = work.runtime
    if not work.gatherable:
        return Cost()
    return gathered_rows_cost(runtime, 2 * m + 3 * q + NUMBERS) + 2 * runtime.average_cost(
        2 * (m + q)
    )


def _triangle(size: int) -> int:
    return size * (size + 1) // 2


def _summed(method: Method, work: Workspace) -> Alternative | None:
    """Methods that sum a matrix."""
    newton = isinstance(method, CrossNewton) and work.gather_explicit() is None
    if not isinstance(method, CrossDirect | CrossIpm) and not newton:
        return None
    if isinstance(method, CrossDirect) and "strongly convex" in work.capabilities:
        return _announced(method, work)
    runtime = work.runtime
    problem = work.problem
    reduced = work.gather_constraints()
    if reduced is None:
        return None
    size = problem.q + reduced.rank
    average = runtime.average_cost
    proofs = Cost()
    if isinstance(method, CrossDirect):
        flat = work.announce_flats().count
        size += flat
        once = average(_triangle(size) + size)
        step = Cost(argmins=1, gradients=1) + _judged(work, flat)
        steps = 1
        within = (1 + STEPS) / 2
        kept = 2 * FLOAT_BYTES * size**2
    elif newton:
        step = Cost(argmins=1, gradients=1) + average(_triangle(size) + size + len(LENGTHS))
        once = Cost()
        steps = USUAL
        within = 2.0
        kept = 2 * FLOAT_BYTES * size**2
        proofs = 2 * _proof(work)
    else:
        k = problem.q + problem.m
        once, step = _interior(work, problem.q, k)
        steps = INTERIOR
        within = 3.0
        kept = 3 * FLOAT_BYTES * (k + 1) ** 2
        proofs = step
    return Alternative(
        SUM, method.name, once, step, steps, within, kept, method.reveals, proofs=proofs
    )


def _announced(method: CrossDirect, work: Workspace) -> Alternative | None:
    """cross-direct whose matrix travels with the equations: known before these are."""
    if not (work.gatherable or work.hides):
        return None
    k = work.problem.q + work.problem.m
    average = work.runtime.average_cost
    once = average(_triangle(k) + k + 1) - average(1)
    step = Cost(argmins=1, gradients=1) + _judged(work, 0)
    kept = 2 * FLOAT_BYTES * k**2
    within = (1 + STEPS) / 2
    return Alternative(SUM, method.name, once, step, 1, within, kept, method.reveals)


def _judged(work: Workspace, flat: int) -> Cost:
    """What a point of cross-direct leaves of everything, for all to hear."""
    width = 4 * work.problem.m + 3 * work.problem.q + flat + NUMBERS
    return gathered_rows_cost(work.runtime, width)


def _interior(work: Workspace, q: int, k: int) -> tuple[Cost, Cost]:
    """(once, a step) of interior points with k shared variables and rows."""
    runtime = work.runtime
    width = _triangle(k) + k + (2 + PARTS) * (k + 1) + FACTS
    messages = runtime.average_cost(width) + runtime.average_cost(k + 1, shown=[1])
    return (
        runtime.gather_cost(3 + 2 * q + -(-k // BITS)),
        Cost(argmins=1) + messages + runtime.gather_cost(1),
    )


def _compressed(method: Method, work: Workspace) -> Alternative | None:
    """Interior points on the range of long rows, at most as many as there are columns."""
    if not isinstance(method, CrossIpm) or not compressible(work):
        return None
    rank = int(work.curvature.d.sum())
    m = work.problem.m
    once, step = _interior(work, rank, 2 * rank)
    once = once + work.runtime.average_cost(m * (rank + SPARE + 1))
    kept = compressible(work) + 3 * FLOAT_BYTES * (2 * rank + 1) ** 2
    return Alternative(
        SKETCH, method.name, once, step, INTERIOR, 3.0, kept, method.reveals, proofs=step
    )


def _sketched(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """Methods that open with a block of vectors."""
    m = work.problem.m
    runtime = work.runtime
    rank = int(work.curvature.d.sum())
    explicit = work.gather_explicit() if isinstance(method, CrossNewton) else None
    if isinstance(method, CrossNewton) and explicit is not None:
        planned = planned_size(runtime, m, request.costs)
        size = min(planned if method.sketch is None else method.sketch, explicit.rank)
        once = runtime.average_cost(m * (1 + size))
        common = explicit.common
        own = Cost(argmins=3) if common else Cost(argmins=2, gradients=3)
        step = own + runtime.average_cost(m if common else m + 2 * work.problem.q + len(LENGTHS))
        proofs = 5 * runtime.average_cost(m)
    elif isinstance(method, CrossCg) and work.eliminated is not None:
        again = rank if work.eliminated.recycles else 0
        most = planned_size(runtime, m, request.costs, again=again)
        size = min(method.sketch or min(most, OPENING), m)
        sketches = [runtime.average_cost(m * k) for k in in_averagings(runtime, m, size)]
        once = sum(sketches, Cost(argmins=size))
        step = Cost(argmins=1) + runtime.average_cost(m)
        proofs = runtime.average_cost(m)
    else:
        return None
    steps = 2 if size >= min(rank, m) else SKETCHED  # a sketch of everything leaves nothing to do
    kept = 2 * FLOAT_BYTES * m * (size + steps)
    return Alternative(
        SKETCH, method.name, once, step, steps, 4.0, kept, method.reveals, proofs=proofs
    )


def _iterated(method: Method, work: Workspace, request: Request) -> Alternative | None:
    """Methods that send one vector at a time."""
    problem = work.problem
    runtime = work.runtime
    if not isinstance(method, CrossCg | CrossApapc | CrossContinuation | CrossSliding):
        return None
    width = work.coupling.width + problem.q
    kept = 8 * FLOAT_BYTES * (width + max(problem.d.values(), default=0))
    step = Cost(gradients=1) + runtime.average_cost(width)
    steps = SLOW
    within = 12.0
    proofs = Cost()
    if isinstance(method, CrossCg):
        unknowns = work.coupling.width + (problem.n - 1) * problem.q
        step = Cost(argmins=1) + runtime.average_cost(width, 2)
        steps = min(_conditioned(work, request, 1.0), 2 * max(unknowns, 1))
        within = 4.0
        proofs = 6 * _proof(work)
    elif isinstance(method, CrossApapc):
        steps = _conditioned(work, request, 2.0)
        within = 4.0
        proofs = 8 * _proof(work)
    return Alternative(
        ITERATE, method.name, Cost(), step, steps, within, kept, method.reveals, proofs=proofs
    )


def _conditioned(work: Workspace, request: Request, factor: float) -> int:
    """factor sqrt(kappa) ln(2/tol)."""
    kappa = work.curvature.known().condition
    accuracy = math.log(2.0 / min(request.plan_tol, 1.0))
    return max(1, math.ceil(min(factor * math.sqrt(kappa) * accuracy, 1e9)))
