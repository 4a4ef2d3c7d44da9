"""Whether there is any feasible point, whatever the objective.

Interior points on the same rows and on the sets where the objectives are finite, with no cost at
all: tau > 0 shows a feasible point, kappa > 0 a contradiction, whose multipliers are tested.
Cost: up to 2 gatherings, 3 averagings a step, and those of a test of multipliers.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.duality import DualPoint
from ccmac.certificates.farkas import Farkas, Infeasibility, Lambda, crossing
from ccmac.inputs import Array
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.interior.made import forms_of, interior
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.objectives.function import Function
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.objectives.sets import OneRow
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints

RAY = 1.0  # kappa over tau beyond which there may be none
AGAIN = 10.0  # how much it must grow before that is looked at again


def domain(objective: Objective, d: int, q: int) -> Polyhedral:
    """Where f(x, z) is finite: bounds and rows, no cost. Sets of no known kind are left out."""
    if isinstance(objective, Limited):
        inner = domain(objective.objective, objective.d, q)
        spread = inner.spread(objective.seen, d + q)
        return spread.within(objective.lower, objective.upper)
    if isinstance(objective, Separable):
        x = _domain(objective.x_part, d)
        z = _domain(objective.z_part, q)
        return x.spread(np.arange(d), d + q) + z.spread(np.arange(d, d + q), d + q)
    return _domain(objective if isinstance(objective, Function) else None, d + q)


def _domain(part: Function | None, size: int) -> Polyhedral:
    found = Polyhedral.zero(size)
    if isinstance(part, Sum):
        for term in part.parts:
            found = found + _domain(term, size)
    elif isinstance(part, OneRow):
        found = found.within(np.full(size, part.least), np.full(size, np.inf))
        found = found.with_terms(_row(part.row(size), part.bound, equal=part.equal))
    elif part is not None and part.is_polyhedral:
        form = part.polyhedral_at(size)
        found = found.within(form.lower, form.upper)
    return found


def _row(a: Array, b: float, *, equal: bool) -> Epigraph:
    """a'v <= b, or = b: an epigraph without cost."""
    T = sp.csr_array(np.ones((1, 0 if equal else 1)))
    low = -np.inf if equal else 0.0
    return Epigraph(a[None], T, np.array([b]), np.zeros(T.shape[1]), low, np.inf)


def decided(work: Workspace, reduced: Constraints) -> Infeasibility | bool:
    """Proof that rows and sets exclude each other; True where a point is found; False: neither."""
    run, bounds = interior(work, reduced, shape=domain)
    found = crossing(bounds, work.problem.m)
    farkas = Farkas(work, forms_of(work, domain), ends_of(bounds))
    state = run.inside()
    due = RAY
    while found is None and not run.finished(state):
        state = run.step(state)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio <= 1.0 and state.primal <= PROMISED * state.tau:
            return True
        if ratio >= due:
            due = AGAIN * ratio
            found = farkas.test(multipliers(reduced, run.multipliers(state, state.kappa)))
    # A misfit that is small beside large sides: kappa stays small, and y points at it.
    return found or farkas.test(multipliers(reduced, run.multipliers(state, 1.0))) or False


def multipliers(reduced: Constraints, prices: DualPoint) -> Lambda:
    """Those of interior points as ones whose lambda'v is to exceed what bounds allow."""
    shared = [-reduced.own_shared(k, prices.shared)[0] for k in range(len(prices.local))]
    return Lambda(-prices.coupled, [-v for v in prices.local], shared, [-v for v in prices.terms])


def ends_of(bounds: Array) -> tuple[Array, Array]:
    """Everybody's lower and upper ends of z, from rows of both."""
    low, high = np.split(bounds, 2, axis=1)
    return low.max(axis=0), high.min(axis=0)
