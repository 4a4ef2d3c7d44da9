"""Settling: which bounds are active is guessed, and the equations that follow are solved at once.

A step solves the optimality conditions with slacks and prices that exclude each other
(:class:`.sides.Exclusive`), tau = 1, linearized. Multipliers may have any sign and slacks follow
the point, so that a step needs no message but the sum of its matrix. With the active bounds guessed
it ends at the solution itself where the guess is right, prices included, to the accuracy of the
linear algebra (Hintermueller, Ito and Kunisch, 2002); what it finds is proved like anything else.
Cost of a step: 1 local factorization, 1 averaging.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccmac.inputs import Array
from ccmac.methods.interior.common import Common, Solver
from ccmac.methods.interior.elimination import Elimination
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Exclusive
from ccmac.methods.interior.state import Agents, InteriorState


@dataclass(frozen=True)
class Lacking:
    """What the agents' equations lack, summed: shares of the common ones, squares of their own."""

    agents: Agents
    own: Array
    square: float

    def slope(self, c: Common) -> Array:
        """Of the Lagrangian in z."""
        equations = self.agents.equations
        return np.asarray(self.own[: equations.q] + equations.residual(c)[equations.z])

    def far(self, c: Common) -> float:
        """Sum of squares of what all equations but those of slacks and prices lack."""
        equations = self.agents.equations
        rows = equations.top.T @ self.own[equations.q : -1] + equations.residual(c)[equations.mu]
        slope = self.slope(c)
        return self.square + float(slope @ slope + rows @ rows)


def settled(agents: Agents, state: InteriorState, pull: float = 0.0) -> InteriorState:
    """One step with the active bounds guessed, from the point and the prices of ``state``.

    ``pull`` is the weight of a term pull ||w - w0||^2 / 2, w0 inside the bounds as at the start:
    among many solutions it leads to one that is no larger than need be, up to that term's slope.
    """
    scale = state.tau
    equations = agents.equations
    c = agents.common(state)
    z, mu, phi, v = (part / scale for part in (c.z, c.mu, c.phi, c.v))
    before = Common(z, mu, phi, equations.sides.slack(z, 1.0), v, 1.0, 0.0)
    lam = equations.lam(mu)
    points = []
    parts = []
    for block, p in zip(agents.blocks, agents.points(state), strict=True):
        y = p.y / scale
        points.append(OwnPoint(y, p.nu / scale, block.sides.slack(y, 1.0), p.v / scale))
        newton = Exclusive.guessed(block.sides, points[-1].s, points[-1].v)
        parts.append(Elimination(block, points[-1], before.z, lam, 1.0, newton))
        parts[-1].r_y += pull * (y - block.sides.middle())
    steps, step = _step(agents, parts, before, pull * (z - equations.sides.middle()))
    moved = [p.moved(d, 1.0) for p, d in zip(points, steps, strict=True)]
    return replace(agents.packed(moved, before.moved(step, 1.0)), count=state.count)


def _step(
    agents: Agents, parts: list[Elimination], c: Common, pull: Array
) -> tuple[list[OwnPoint], Common]:
    """(the agents' steps, everybody's): one averaging. ``pull`` is on z."""
    equations = agents.equations
    zero = np.zeros(agents.k + 1)
    agents.work.ledger.charge(argmins=1)
    matrices = [e.block.schur(e.solved[:, :-1]) for e in parts]
    shares = [e.eliminated(e.right(0), 0.0) - e.own for e in parts]
    S, share = agents.summed(matrices, shares)
    newton = Exclusive.guessed(equations.sides, c.s, c.v)
    right = equations.right(share, newton, newton.shift) - equations.residual(c)
    right[equations.z] -= pull
    matrix = equations.matrix(S, zero[:-1], zero, newton, c)
    dc = np.append(Solver(matrix, equations.signs).inner(right[:-1]), 0.0)
    told = equations.told(dc)
    xi = dc[equations.xi]
    steps = []
    for e, at in zip(parts, agents.flat_of, strict=True):
        none = np.zeros(e.block.sides.count)
        steps.append(e.step(np.ones(1), none, told, xi[at]))
    ds, dv = newton.steps(newton.shift, dc[equations.z], 0.0, 1.0)
    common = Common(dc[equations.z], dc[equations.mu], dc[equations.phi], ds, dv, 0.0, 0.0)
    return steps, common
