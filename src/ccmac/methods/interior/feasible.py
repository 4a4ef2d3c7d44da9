"""Whether there is any feasible point, whatever the objective.

Interior points on the same rows and on the sets where the objectives are finite, with no cost at
all: tau > 0 shows a feasible point, kappa > 0 a contradiction, whose multipliers are tested.
Cost: up to 2 gatherings, 3 averagings a step, and those of a test of multipliers. An agent whose
own rows and sets exclude each other is found by the agents alone, in one more gathering.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.farkas import Farkas, Infeasibility, Lambda
from ccmac.inputs import Array
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.interior.equilibration import equilibrating, scaled
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.verdict import PARTS, Verdicts
from ccmac.network import Network
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.objectives.base import Function
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.objectives.sets import OneRow
from ccmac.problem import Problem
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.conic import conic_models


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


class Sets:
    """Interior points on the rows and sets of a problem, without its cost."""

    def __init__(self, work: Workspace) -> None:
        problem = work.problem
        self.work = work
        self.forms = [
            domain(a.objective, problem.d[i], problem.q) for i, a in problem.agents.items()
        ]
        models = conic_models(work, self.forms)
        units = equilibrating(models, work.runtime)
        inner = [scaled(p, own) for p, own in zip(models, units, strict=True)]
        self.run = Interior(work, self.forms, inner, units, "sets")
        self.verdict = Verdicts(work, self.forms, models)

    def decided(self) -> tuple[Infeasibility | bool, Lambda | None]:
        """Proof that they exclude each other, and its multipliers; True where a point is found;
        False: neither.
        """
        run = self.run
        state = run.start(np.zeros(0), np.zeros(0))
        due = 1.0
        while not run.finished(state):
            state = run.step(state)
            ratio = state.kappa / max(state.tau, 1e-300)
            if ratio <= 1.0 and state.primal <= PROMISED:
                return True, None
            if ratio >= due:
                due = 10.0 * ratio
                found = self.verdict(run, state)
                if isinstance(found, Infeasibility):
                    return found, self.verdict.given(run, state)
        found = self.verdict(run, state)
        if isinstance(found, Infeasibility):
            return found, self.verdict.given(run, state)
        return False, None


def decided(work: Workspace) -> Infeasibility | bool:
    """Proof that rows and sets exclude each other; True where a point is found; False: neither."""
    return Sets(work).decided()[0]


def alone(work: Workspace) -> Infeasibility | None:
    """Of the first agent whose own rows and sets exclude each other, whatever others do.

    Every agent looks for itself: one local minimisation, a gathering, and a test.
    """
    problem = work.problem
    sets = []
    lambdas: list[Lambda | None] = []
    for i, agent in problem.agents.items():
        own = replace(agent, A=sp.csr_array((0, problem.d[i])), B=None, b=None)
        runtime = InProcess(Network.complete(1))
        sets.append(Sets(Workspace(Problem([own], q=problem.q), runtime)))
        lambdas.append(sets[-1].decided()[1])
    work.ledger.charge(argmins=1)
    found = work.runtime.gather(np.array([[float(given is not None)] for given in lambdas]))[:, 0]
    if not found.any():
        return None
    first = int(np.argmax(found))
    rows = [
        _own_rows(s, given if i == first else None)
        for s, given, i in zip(sets, lambdas, problem.agents, strict=True)
    ]
    forms = [s.forms[0] for s in sets]
    models = conic_models(work, forms)
    ends = Verdicts(work, forms, models).both()
    given = Lambda(np.zeros(problem.m), *(list(part) for part in zip(*rows, strict=True)))
    return Farkas(work, forms, ends).test(given)


def _own_rows(sets: Sets, given: Lambda | None) -> list[Array]:
    """One agent's multipliers of C, D, sets and cones; zeros where it has none to tell."""
    [p] = sets.verdict.models
    if given is None:
        sizes = (p.parts.get(name, slice(0, 0)) for name in PARTS)
        return [np.zeros(part.stop - part.start) for part in sizes]
    return [rows[0] for rows in (given.local, given.shared, given.terms, given.cones)]
