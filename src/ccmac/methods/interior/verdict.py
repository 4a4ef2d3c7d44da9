"""Certificates that there is no solution, from an interior point that runs off to infinity.

Where kappa outgrows tau, (lambda, v) tends to a Farkas certificate or (y, z) to a recession
direction. A direction is first projected onto its active rows and the kernel of P, by

    minimize ||d - d_0||^2 / 2 + (w/2) d'P d   s.t.   A d = 0,  G_A d = 0,     w large,

in two sums; both are judged in the agents' own blocks.

Whether there is any feasible point is asked of interior points on the same rows and on the sets
where the objectives are finite, without cost: tau > 0 shows one, kappa > 0 a contradiction.
Cost: up to 2 gatherings, 3 averagings a step, and those of a test of multipliers. An agent whose
own rows and sets exclude each other is found by the agents alone, in one more gathering.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.farkas import Farkas, Infeasibility, Lambda, crossing
from ccmac.certificates.recession import Recession, Recessions
from ccmac.inputs import Array
from ccmac.linalg.tolerances import PROMISED
from ccmac.methods.interior.active import settled
from ccmac.methods.interior.equilibration import equilibrating, scaled
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.local import LocalSystem
from ccmac.methods.interior.system import CommonSystem
from ccmac.network import Network
from ccmac.objectives import Limited, Objective, Separable, Sum
from ccmac.objectives.base import Function
from ccmac.objectives.polyhedral import Epigraph, Polyhedral
from ccmac.objectives.sets import OneRow
from ccmac.problem import Problem
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from ccmac.workspace.conic import StandardForm, conic_models

HEAVY = 1e9  # w over the largest entry of P
PARTS = ("C", "D", "epigraphs", "cones")  # whose multipliers a Farkas certificate has


class Verdicts:
    """Looks at rays of one problem; bounds on z are gathered when the first one is looked at."""

    def __init__(
        self, work: Workspace, forms: list[Polyhedral], models: list[StandardForm]
    ) -> None:
        self.work = work
        self.forms = forms
        self.models = models

    def __call__(
        self, iteration: Interior, state: InteriorState
    ) -> Infeasibility | Recession | None:
        """What the state proves, if anything."""
        conflict = crossing(self.ends, self.work.problem.m)
        if conflict is not None:
            return conflict
        both = self.both()
        conflict = Farkas(self.work, self.forms, both).test(self.given(iteration, state))
        reduced = self.work.gather_constraints()
        if conflict is not None or reduced is None:
            return conflict
        recessions = Recessions(self.work, reduced, self.forms, both)
        ray = state
        # the second from what the first one left
        for _ in range(2):
            ray = straightened(iteration, ray)
            found = recessions.test(*iteration.direction(ray))
            if found is not None:
                return found
        return None

    def both(self) -> tuple[Array, Array]:
        """The bounds on z that hold for all."""
        lower, upper = np.split(self.ends, 2, axis=1)
        return lower.max(axis=0), upper.min(axis=0)

    def given(self, iteration: Interior, state: InteriorState) -> Lambda:
        """The multipliers that may prove a contradiction."""
        dual, rows = iteration.multipliers(state)
        none = slice(0, 0)
        parts = (
            [-v[p.parts.get(name, none)] for v, p in zip(rows, self.models, strict=True)]
            for name in PARTS
        )
        return Lambda(-dual, *parts)

    @cached_property
    def ends(self) -> Array:
        """Every agent's lower and upper bounds on z."""
        q = self.work.problem.q
        rows = [
            np.append(f.lower[len(f.lower) - q :], f.upper[len(f.upper) - q :]) for f in self.forms
        ]
        return self.work.runtime.gather(np.array(rows))


def straightened(run: Interior, state: InteriorState) -> InteriorState:
    """The state with its direction projected; tau = kappa = 1."""
    size = max(state.kappa, 1e-300)
    models = []
    shared = run.shared(state)
    for model, point in zip(run.models, run.points(state), strict=True):
        p = model.near(point.y / shared.tau, shared.z / shared.tau).patterned()
        largest = max(float(np.abs(M.data).max(initial=0.0)) for M in (p.P, p.P_z, p.P_zz))
        w = HEAVY / largest if largest > 0 else 0.0
        models.append(
            replace(
                p,
                P=sp.csr_array(sp.eye_array(p.size) + w * p.P),
                P_z=sp.csr_array(w * p.P_z),
                P_zz=sp.csr_array(w * p.P_zz),
                c=-point.y / size,
                c_z=np.zeros_like(p.c_z),
                h=np.zeros_like(p.h),
                b=np.zeros_like(p.b),
                smooth=(),
            )
        )
    ray = copy(run)
    ray.models = models
    ray.agents = [LocalSystem(p) for p in models]
    table = run.work.agreed[run.name]
    ray.system = CommonSystem(ray.agents, table, run.q, run.m)
    return replace(settled(ray, replace(state, tau=size)), kappa=1.0)


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

    def decided(self, *, closest: bool = False) -> tuple[Infeasibility | bool, Lambda | None]:
        """Proof that they exclude each other, and its multipliers; True where a point is found;
        False: neither. ``closest``: the last of several proofs, whose defect is least.
        """
        run = self.run
        state = run.start(np.zeros(0), np.zeros(0))
        due = 1.0
        best: tuple[Infeasibility | bool, Lambda | None] = False, None
        while not run.finished(state):
            state = run.step(state)
            ratio = state.kappa / max(state.tau, 1e-300)
            if ratio <= 1.0 and state.primal <= PROMISED:
                return True, None
            if ratio >= due:
                due = 10.0 * ratio
                found = self.verdict(run, state)
                if isinstance(found, Infeasibility):
                    best = found, self.verdict.given(run, state)
                    if not closest or ratio >= 1e12:  # another ray says nothing new
                        return best
                elif best[0]:
                    return best
        found = self.verdict(run, state)
        if isinstance(found, Infeasibility):
            return found, self.verdict.given(run, state)
        return best


def decided(work: Workspace) -> Infeasibility | bool:
    """Proof that rows and sets exclude each other; True where a point is found; False: neither."""
    found = Sets(work).decided()[0]
    return alone(work) or found if isinstance(found, Infeasibility) else found


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
        lambdas.append(sets[-1].decided(closest=True)[1])
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
