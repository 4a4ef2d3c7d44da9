"""Active rows: guessed from an interior point, or from the last solution of a warm start.

With the active rows A of the orthants as equations and the multipliers of the others zero, the
optimality conditions are linear, and one sum solves them (a step of the primal-dual active set
method of Hintermueller, Ito and Kunisch, 2002):

    P y + P_z z + G_A'v_A + A'lambda + c = 0,   G_A y + H_A z = h_A,   v_j = 0, j not in A

Where the guess v > s is right that is the solution itself, multipliers included, to the accuracy of
linear algebra; what it finds is judged like any other point.
Cost: 1 local factorization, 2 averagings (the second of the common unknowns alone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.objectives.polyhedral import Polyhedral
from conic.agent import Agent, Point, Shared
from conic.equilibration import Units
from conic.model import Model

if TYPE_CHECKING:
    from conic.iteration import Interior, InteriorState

ROOM = 1e-3  # least slack and multiplier of a warm start, in equilibrated units
MET = 1e-8  # a slack below this, in equilibrated units, is none
PASSES = 2  # sums: the system, then what rounding and proximal terms left
HELD = 1e-10  # proximal weight of active rows, less than that of an interior point
WRONG = 1e-9  # a multiplier below this, in equilibrated units, is rounding


def guess(
    form: Polyhedral, p: Model, units: Units, point: tuple[Array, Array], along: Array
) -> Point:
    """An agent's unknowns at the user's (x, z), with ``along`` = A'lambda + C'kappa.

    Multipliers of bounds and signs make up for what is left of the slope; a bound on z, whose slope
    is everybody's, is taken for active where it is met.
    """
    x, z = point
    u = np.append(x, z)
    slacks = []
    slopes = []
    for term in form.terms:
        image = np.asarray(term.R @ u) - term.h
        slacks.append(term.slack(image))
        slopes.append(term.multiplier(image))
    y = np.concatenate([x, *slacks]) / (units.far * units.y)
    z = z / (units.far * units.z)
    slack = np.where(p.cone.equations, 0.0, p.h - p.G @ y - p.H @ z)
    v = np.zeros(p.rows)
    if form.terms:
        part = p.parts["epigraphs"]
        v[part] = units.cost * np.concatenate(slopes) / units.rows[part]
    slope = p.P @ y + p.P_z @ z + p.c + p.G.T @ v
    slope[: p.d] += units.cost * units.y[: p.d] * along
    need = np.maximum(-(p.G @ slope), 0.0)
    on_z = np.diff(p.H.indptr) > 0
    need[on_z] = np.where(slack[on_z] <= MET, 1.0, 0.0)
    inside = np.maximum(slack, ROOM)
    free = p.cone.equations
    return Point(y, np.where(free, 0.0, inside), np.where(free, v, np.maximum(need, ROOM)))


def settled(run: Interior, state: InteriorState) -> InteriorState:
    """The point that the active rows of a state determine; tau = 1."""
    run.work.ledger.charge(argmins=1)
    z, dual = np.split(state.common[0] / state.tau, [run.q])
    points = [Point(*(part / state.tau for part in p.flat)) for p in run.points(state)]
    guesses = [Guess(agent, point) for agent, point in zip(run.agents, points, strict=True)]
    points = [g.begin(p) for g, p in zip(guesses, points, strict=True)]
    solve = None
    for _ in range(PASSES):
        shares = []
        for k, (g, p) in enumerate(zip(guesses, points, strict=True)):
            own, common = g.residual(p, z, dual)
            wide = run.system.spread(k, np.append(own, 0.0))[:-1] + common
            entries = run.system.guessed(k, g.matrix()) if solve is None else np.zeros(0)
            shares.append(np.append(entries, wide))
        total = run.sum(np.stack(shares))
        if solve is None:
            entries, total = np.split(total, [run.system.entries])
            solve = run.system.factorized(entries)
        dc = solve(total)
        points = [g.moved(p, dc[g.agent.support]) for g, p in zip(guesses, points, strict=True)]
        z = z + dc[: run.q]
        dual = dual + dc[run.q :]
    points = [g.with_slacks(p, z) for g, p in zip(guesses, points, strict=True)]
    return run.packed(points, Shared(z, dual, 1.0, 0.0), count=state.count)


class Guess:
    """An agent's optimality conditions with its active rows as equations, as a Newton system."""

    def __init__(self, agent: Agent, point: Point) -> None:
        self.agent = agent
        self.active = agent.equations | (point.v > point.s + WRONG)
        p = agent.model
        held = sp.csr_array(sp.diags_array(self.active.astype(np.float64)))
        self._solve = agent.factorized(held, np.where(self.active, HELD, 1.0))
        self._border = agent.border.toarray()
        self._border[p.size :] *= self.active[:, None]
        self._right = np.zeros(p.size + p.rows)

    def begin(self, point: Point) -> Point:
        """Multipliers of rows that are not active are none."""
        return Point(point.y, np.zeros_like(point.s), np.where(self.active, point.v, 0.0))

    def matrix(self) -> Array:
        """-V M^{-1} U on the support."""
        return np.asarray(-(self._border.T @ self._solve(self._border)))

    def residual(self, point: Point, z: Array, dual: Array) -> tuple[Array, Array]:
        """Its share of the common right-hand side: on the support, and on all of (z, lambda)."""
        agent = self.agent
        p = agent.model
        y, _, v = point.flat
        slope = p.P @ y + p.P_z @ z + agent.GT @ v + agent.AT @ dual + p.c
        rows = np.where(self.active, agent.slack(y, z), 0.0)
        self._right = np.append(-slope, rows)
        on_z = agent.P_zT @ y + p.P_zz @ z + agent.HT @ v + agent.BT @ dual + p.c_z
        common = -np.concatenate([on_z, p.A @ y + p.B @ z - p.b])
        return -(self._border.T @ self._solve(self._right)), common

    def moved(self, point: Point, dc: Array) -> Point:
        """The unknowns after dc on the support."""
        step = self._solve(self._right - self._border @ dc)
        dy, dv = np.split(step, [self.agent.model.size])
        return Point(point.y + dy, point.s, point.v + np.where(self.active, dv, 0.0))

    def with_slacks(self, point: Point, z: Array) -> Point:
        """Slacks of the rows that are not active."""
        slack = np.where(self.active, 0.0, self.agent.slack(point.y, z))
        return Point(point.y, slack, point.v)
