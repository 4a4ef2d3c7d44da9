"""Whether there is any feasible point, whatever the objective.

Interior points on the same rows and on the sets where the objectives are finite, with no cost at
all: tau > 0 shows a feasible point and kappa > 0 a contradiction, of which K'y = 0 is one of the
equations solved (with a quadratic cost it would hold up to Hw, which vanishes slowly along a ray).
A point is shown where bounds hold as they are and unit rows up to the rounding of doubles.
Cost: up to 2 gatherings, 3 averagings a step, 1 for a contradiction that is tried (at the end in
any case) and 3 for a point that is tried to be shown; for problems that fall without end, or whose
run ends without an answer.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.duality import Duality, crossing
from ccmac.certificates.infeasibility import Infeasibility
from ccmac.inputs import Array
from ccmac.methods.interior.block import RHO
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.made import forms_of, interior
from ccmac.methods.interior.settling import settled
from ccmac.methods.interior.state import InteriorState
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.objectives.function import Function
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.objectives.sets import OneRow
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

MET = 1e-8  # residual of the equations over tau from which on a point is tried
SHOWN = 1e-13  # violation of unit rows beside the size of a solution, with which it is feasible
HIDDEN = 1e-10  # the same for what rounding may hide of it
TRIES = 8  # points tried to be shown
RAY = 1.0  # kappa over tau beyond which there may be none
LAST = 1e-3  # the same at the end of a run that gains nothing more
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


def decided(work: Workspace, reduced: Reduced, start: tuple[Array, Array]) -> Infeasibility | bool:
    """Proof that rows and sets exclude each other; True where a point is shown; False: neither."""
    run, bounds = interior(work, reduced, shape=domain)
    duality = Duality(work, reduced, forms_of(work, domain), bounds, start)
    found = crossing(bounds, work.problem.m)
    state = run.inside()
    due = RAY
    tries = 0
    fixed = work.runtime.ride(np.array([[float(k.point @ k.point)] for k in reduced.kernels]))
    while found is None and not run.finished(state) and tries < TRIES:
        state = run.step(state)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio <= 1.0 and state.primal <= MET * state.tau:
            tries += 1
            if _shown(run, duality, state, math.hypot(run.reach, math.sqrt(fixed.value[0]))):
                return True
        if ratio >= (LAST if run.finished(state) else due):
            due = AGAIN * ratio
            found = duality.contradiction(run.prices(state, state.kappa), run.reach)
    if found is None:
        # A misfit that is small beside large sides: kappa stays small, and y points at it.
        found = duality.contradiction(run.prices(state, 1.0), run.reach)
    return found or False


def _shown(run: Interior, duality: Duality, state: InteriorState, size: float) -> bool:
    """Whether the point of ``state``, or one step onto the active bounds, meets everything.

    ``size`` is that of a point that meets the equations.
    """
    for tried in (state, settled(run, state, RHO)):
        x, z = run.point(tried)
        found, _ = duality.gap(x, z[0], run.prices(tried, tried.tau))
        beside = max(1.0, size)
        if found.lacks <= SHOWN * beside and found.hidden <= HIDDEN * beside:
            return True
    return False
