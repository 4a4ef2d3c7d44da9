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
from conic.agent import Agent, Point, Shared

if TYPE_CHECKING:
    from conic.iteration import Interior, InteriorState

PASSES = 2  # sums: the system, then what rounding and proximal terms left
HELD = 1e-10  # proximal weight of active rows, less than that of an interior point
WRONG = 1e-9  # a multiplier below this, in equilibrated units, is rounding


def settled(run: Interior, state: InteriorState) -> InteriorState:
    """The point that the active rows of a state determine; tau = 1."""
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
