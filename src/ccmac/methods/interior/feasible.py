"""Whether there is any feasible point, whatever the objective.

Interior points on the same rows and on the sets where the objectives are finite, with no cost at
all: tau > 0 shows a feasible point, kappa > 0 a contradiction, whose multipliers are tested.
Cost: up to 2 gatherings, 3 averagings a step, and those of a test of multipliers.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.farkas import Infeasibility
from ccmac.inputs import Array
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.interior.equilibration import equilibrating, scaled
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.verdict import Verdicts
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.objectives.function import Function
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.objectives.sets import OneRow
from ccmac.workspace import Workspace
from ccmac.workspace.conic import conic_models

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


def decided(work: Workspace) -> Infeasibility | bool:
    """Proof that rows and sets exclude each other; True where a point is found; False: neither."""
    problem = work.problem
    forms = [domain(a.objective, problem.d[i], problem.q) for i, a in problem.agents.items()]
    models = conic_models(work, forms)
    units = equilibrating(models, work.runtime)
    inner = [scaled(p, own) for p, own in zip(models, units, strict=True)]
    run = Interior(work, forms, inner, units, "sets")
    verdict = Verdicts(work, forms, models)
    state = run.start(np.zeros(0), np.zeros(0))
    due = RAY
    while not run.finished(state):
        state = run.step(state)
        ratio = state.kappa / max(state.tau, 1e-300)
        if ratio <= 1.0 and state.primal <= PROMISED:
            return True
        if ratio >= due:
            due = AGAIN * ratio
            found = verdict(run, state)
            if isinstance(found, Infeasibility):
                return found
    found = verdict(run, state)
    return found if isinstance(found, Infeasibility) else False
