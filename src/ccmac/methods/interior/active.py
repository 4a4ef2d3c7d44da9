"""Active rows: guessed from an interior point, or from the last solution of a warm start.

With the active rows A of the orthants as equations and the multipliers of the others zero, the
optimality conditions are linear, and one sum solves them (a step of the primal-dual active set
method of Hintermueller, Ito and Kunisch, 2002):

    P y + P_z z + G_A'v_A + A'lambda + c = 0,   G_A y + H_A z = h_A,   v_j = 0, j not in A

A row is guessed active where a step took more of its slack than of its multiplier (El-Bakry, Tapia
and Zhang, 1994), whatever their sizes; from then on where v > s. What changes is mended pass by
pass while it gets less. Where the rows are right that is the solution, multipliers included, to the
accuracy of linear algebra; what is found is judged like any other point. A warm start guesses from
the last solution; where that does not settle it goes on a little inside the cones if few rows were
in doubt, else cold.
Cost of a pass: 1 local factorization and 1 averaging; two passes at least.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.methods.interior.equilibration import Units
from ccmac.methods.interior.local import LocalSystem, Point, Shared
from ccmac.methods.interior.system import CommonSystem
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace.conic import StandardForm

if TYPE_CHECKING:
    from ccmac.methods.interior.iteration import Interior, InteriorState

MET = 1e-8  # a slack below this, in equilibrated units, is none
PASSES = 6
FEW = 3  # fewer rows may change as often as before
STILL = 1e-5  # of the common unknowns: a last step
ROWS = 16  # where one row in so many is in doubt the guess tells nothing
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
    """The point that the active rows of a state determine; tau = 1.

    They are mended by what is found while ever fewer change; ``changed`` of them did last.
    """
    system = run.system
    z, dual = np.split(state.common[0] / state.tau, [run.q])
    points = [Point(*(part / state.tau for part in p.flat)) for p in run.points(state)]
    before = run.points(replace(state, own=state.before))
    guesses: list[Guess] = []
    changed = system.degree // ROWS
    for count in range(PASSES):
        run.work.ledger.charge(argmins=1)
        former = guesses
        guesses = [
            Guess(agent, point, z, last)
            for agent, point, last in zip(run.agents, points, before, strict=True)
        ]
        changes = [g.changes(f) for g, f in zip(guesses, former or guesses, strict=True)]
        received = run.runtime.piggyback(np.array(changes)[:, None])
        shares = [g.share(system, k, z, dual) for k, g in enumerate(guesses)]
        entries, total = np.split(run.sum(np.stack(shares)), [system.entries])
        dc = system.factorized(entries)(total)
        z = z + dc[: run.q]
        dual = dual + dc[run.q :]
        points = [g.solved(dc[g.agent.support], z) for g in guesses]
        before = run.units_of_cones
        if count:
            last = changed
            changed = int(received.value[0])
            still = np.abs(dc).max(initial=0.0) <= STILL * np.abs([1.0, *z, *dual]).max()
            if changed >= max(last, FEW) or (still and not changed):
                break
    return run.packed(points, Shared(z, dual, 1.0, 0.0), count=state.count, changed=changed)


class Guess:
    """An agent's optimality conditions with its active rows as equations, as a Newton system.

    A row is active where its slack is a smaller share of what it was ``before`` than its multiplier
    (the indicators of El-Bakry, Tapia and Zhang, 1994).
    """

    def __init__(self, agent: LocalSystem, point: Point, z: Array, before: Point) -> None:
        self.agent = agent = agent.near(point.y, z)
        self.face = agent.model.cone.face(point.s, point.v, before.s, before.v)
        matrix = sp.csr_array(self.face.matrix)
        self._factor = agent.factorized(matrix, np.maximum(self.face.held, HELD))
        self._lack, v = self.face.met(agent.slack(point.y, z), point.v)
        self._point = Point(point.y, point.s, v)
        self._right = np.zeros(0)

    def changes(self, former: Guess) -> int:
        """Rows that are active here and were not, or the reverse."""
        return int(np.count_nonzero((self.face.held == 0.0) != (former.face.held == 0.0)))

    def share(self, system: CommonSystem, k: int, z: Array, dual: Array) -> Array:
        """What agent k here adds to the common matrix and to its right-hand side."""
        agent = self.agent
        p = agent.model
        y, _, v = self._point.flat
        slope = p.P @ y + p.P_z @ z + agent.GT @ v + agent.AT @ dual + p.c
        self._right = np.append(-slope, self._lack)
        on_z = agent.P_zT @ y + p.P_zz @ z + agent.HT @ v + agent.BT @ dual + p.c_z
        wide = -np.concatenate([on_z, p.A @ y + p.B @ z - p.b])
        wide[agent.support] -= agent.border.T @ self._factor.solve(self._right)
        return np.append(system.guessed(k, self._factor.condensed(), agent), wide)

    def solved(self, dc: Array, z: Array) -> Point:
        """The unknowns after dc on the support, with their slacks."""
        agent = self.agent
        step = self._factor.solve(self._right - agent.border @ dc)
        dy, dv = np.split(step, [agent.model.size])
        y = self._point.y + dy
        return Point(y, np.where(agent.equations, 0.0, agent.slack(y, z)), self._point.v + dv)
