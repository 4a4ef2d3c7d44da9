"""Active rows: guessed from an interior point, or from the last solution of a warm start.

With the active rows A of the orthants as equations and the multipliers of the others zero, the
optimality conditions are linear, and one sum solves them (a step of the primal-dual active set
method of Hintermueller, Ito and Kunisch, 2002):

    P y + P_z z + G_A'v_A + A'lambda + c = 0,   G_A y + H_A z = h_A,   v_j = 0, j not in A

Where the guess v > s is right that is the solution itself, multipliers included, to the accuracy of
linear algebra; what it finds is judged like any other point. From the last solution of a warm start
the guess is mended in a few passes; if it does not settle, the run starts cold.
Cost of a pass: 1 local factorization and 1 averaging; of a guess within a run 2 averagings, the
second of the common unknowns alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.methods.interior.equilibration import Units
from ccmac.methods.interior.local import LocalSystem, Point, Shared
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace.conic import StandardForm

if TYPE_CHECKING:
    from ccmac.methods.interior.iteration import Interior, InteriorState

MET = 1e-8  # a slack below this, in equilibrated units, is none
# Passes of a warm start, one step's averagings; then fewer rows, far away half, must change.
FEW = 3
HELD = 1e-10  # proximal weight of active rows, less than that of an interior point


def guess(
    form: Polyhedral, p: StandardForm, units: Units, point: tuple[Array, Array], along: Array
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
    p = p.near(y, z)
    slack = np.where(p.cone.equations, 0.0, p.h - p.G @ y - p.H @ z)
    v = np.zeros(p.rows)
    if form.terms:
        part = p.parts["epigraphs"]
        v[part] = units.cost * np.concatenate(slopes) / units.rows[part]
    slope = p.P @ y + p.P_z @ z + p.c + p.G.T @ v
    slope[: p.d] += units.cost * units.y[: p.d] * along
    need = np.maximum(-(p.G @ slope), 0.0)
    general = np.diff(p.H.indptr) > 0  # rows on z and of cones
    general[p.parts.get("cones", slice(0, 0))] = True
    need[general] = np.where(slack[general] <= MET, 1.0, 0.0)
    free = p.cone.equations
    return Point(y, np.where(free, 0.0, np.maximum(slack, 0.0)), np.where(free, v, need))


def settled(run: Interior, state: InteriorState) -> InteriorState:
    """The point that the active rows of a state determine; tau = 1."""
    run.work.ledger.charge(argmins=1)
    z, dual = np.split(state.common[0] / state.tau, [run.q])
    points = [Point(*(part / state.tau for part in p.flat)) for p in run.points(state)]
    system = Guesses(run, points, z)
    # the second for what rounding and proximal terms left
    for _ in range(2):
        points, z, dual = system.solved(points, z, dual)
    points = system.with_slacks(points, z)
    return run.packed(points, Shared(z, dual, 1.0, 0.0), count=state.count)


def mended(run: Interior, state: InteriorState) -> InteriorState:
    """One pass of a warm start; the state's ``changed`` is what the pass before changed."""
    run.work.ledger.charge(argmins=1)
    z, dual = np.split(state.common[0], [run.q])
    points = run.points(state)
    system = Guesses(run, points, z)
    received = run.runtime.piggyback(np.array([[c] for c in system.changes(points)]))
    points, z, dual = system.solved(points, z, dual)
    points = system.with_slacks(points, z)
    changed = int(received.value[0])
    fall = 1 if run.is_near(changed) else 2
    state = replace(
        run.packed(points, Shared(z, dual, 1.0, 0.0), count=state.count + 1),
        warm=state.warm + 1,
        changed=changed,
        lost=int(changed == 0 or (state.warm >= FEW and fall * changed >= state.changed)),
        guessed=state.guessed,
        guessed_common=state.guessed_common,
    )
    return state


class Guesses:
    """Everybody's guess at these points, and the summed system that they make."""

    def __init__(self, run: Interior, points: list[Point], z: Array) -> None:
        self.run = run
        self.own = [
            Guess(agent.near(point.y, z), point)
            for agent, point in zip(run.agents, points, strict=True)
        ]
        self._solve: Callable[[Array], Array] | None = None

    def changes(self, points: list[Point]) -> list[int]:
        """How many rows are active here and were not in the pass before, or the reverse."""
        return [g.changes(p) for g, p in zip(self.own, points, strict=True)]

    def solved(
        self, points: list[Point], z: Array, dual: Array
    ) -> tuple[list[Point], Array, Array]:
        """One solution for what the equations lack: one averaging, the first with the matrix."""
        system = self.run.system
        points = [g.begin(p, z) for g, p in zip(self.own, points, strict=True)]
        shares = []
        for k, (g, p) in enumerate(zip(self.own, points, strict=True)):
            own, common = g.residual(p, z, dual)
            wide = system.spread(k, np.append(own, 0.0))[:-1] + common
            entries = system.guessed(k, g.matrix(), g.agent) if self._solve is None else np.zeros(0)
            shares.append(np.append(entries, wide))
        total = self.run.sum(np.stack(shares))
        if self._solve is None:
            entries, total = np.split(total, [system.entries])
            self._solve = system.factorized(entries)
        dc = self._solve(total)
        points = [g.moved(p, dc[g.agent.support]) for g, p in zip(self.own, points, strict=True)]
        return points, z + dc[: self.run.q], dual + dc[self.run.q :]

    def with_slacks(self, points: list[Point], z: Array) -> list[Point]:
        """Slacks of the rows that are not active."""
        return [g.with_slacks(p, z) for g, p in zip(self.own, points, strict=True)]


class Guess:
    """An agent's optimality conditions with its active rows as equations, as a Newton system."""

    def __init__(self, agent: LocalSystem, point: Point) -> None:
        self.agent = agent
        p = agent.model
        self.face = p.cone.face(point.s, point.v)
        matrix = sp.csr_array(self.face.matrix)
        self.active = matrix.diagonal() != 0
        self._factor = agent.factorized(matrix, np.maximum(self.face.held, HELD))
        self._solve = self._factor.solve
        self._border = agent.border
        self._right = np.zeros(p.size + p.rows)

    def changes(self, point: Point) -> int:
        """Rows whose slack is there but count as active, or the reverse."""
        before = self.agent.equations | (point.s == 0.0)
        return int(np.count_nonzero(self.active != before))

    def begin(self, point: Point, z: Array) -> Point:
        """Multipliers as they are on the faces: none where rows are not active."""
        slack = self.agent.slack(point.y, z)
        return Point(point.y, np.zeros_like(point.s), self.face.met(slack, point.v)[1])

    def matrix(self) -> Array:
        """-V M^{-1} U on the support."""
        return self._factor.condensed()

    def residual(self, point: Point, z: Array, dual: Array) -> tuple[Array, Array]:
        """Its share of the common right-hand side: on the support, and on all of (z, lambda)."""
        agent = self.agent
        p = agent.model
        y, _, v = point.flat
        slope = p.P @ y + p.P_z @ z + agent.GT @ v + agent.AT @ dual + p.c
        rows = self.face.met(agent.slack(y, z), v)[0]
        self._right = np.append(-slope, rows)
        on_z = agent.P_zT @ y + p.P_zz @ z + agent.HT @ v + agent.BT @ dual + p.c_z
        common = -np.concatenate([on_z, p.A @ y + p.B @ z - p.b])
        return -(self._border.T @ self._solve(self._right)), common

    def moved(self, point: Point, dc: Array) -> Point:
        """The unknowns after dc on the support."""
        step = self._solve(self._right - self._border @ dc)
        dy, dv = np.split(step, [self.agent.model.size])
        return Point(point.y + dy, point.s, point.v + dv)

    def with_slacks(self, point: Point, z: Array) -> Point:
        """Slacks of the rows that are not active."""
        slack = np.where(self.active, 0.0, self.agent.slack(point.y, z))
        return Point(point.y, slack, point.v)
