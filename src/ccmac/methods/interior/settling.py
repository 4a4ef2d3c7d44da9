"""Settling: which bounds are active is guessed, and the equations that follow are solved at once.

A step solves Newton's equations of the optimality conditions with every bound's complementarity as
one smooth equation (:class:`.sides.Smoothed`), tau = 1. Prices may have any sign and slacks follow
the point, so that a step is never shortened and needs no message but the sum of its matrix. With
mu = 0 it is an active-set step: where the guess is right it ends at the solution itself, prices
included, to the accuracy of the linear algebra (Chen and Harker, 1993; Hintermueller, Ito and
Kunisch, 2002). It converges locally only: it is tried from a point with prices, and what it finds
is proved like anything else. Cost of a step: 1 local factorization, 1 averaging.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccmac.inputs import Array
from ccmac.methods.interior.block import Elimination
from ccmac.methods.interior.common import Common, Solver
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Sides, Smoothed
from ccmac.methods.interior.state import Agents, InteriorState

MUS = (1e-6, 1e-8, 0.0, 0.0, 0.0)  # of the steps from a warm start
WORSE = 1e3  # times as far from optimal as the best step before: it will not settle


def begun(agents: Agents, x: Array, z: Array, dual: Array, price: Array) -> InteriorState:
    """The state at (x, z) with K'lambda in ``dual`` (user units) and the coupled ``price``."""
    equations, reduced, space = agents.equations, agents.reduced, agents.space
    points, unit = [], agents.unit
    for k, block in enumerate(agents.blocks):
        along = unit * space.x_of(space.x(dual), k)
        points.append(block.near(space.x_of(x, k), z, along))
    rows = np.zeros(len(reduced.U))
    m = len(reduced.unit)
    rows[:m] = unit * price[:m] / reduced.unit
    mu, sides = reduced.sigma * (reduced.U.T @ rows), equations.sides
    none = np.zeros(sides.count)
    common = Common(z, mu, np.zeros(len(equations.fixed)), none, none, 1.0, 0.0)
    return agents.packed(points, common, warm=1)


def settled(agents: Agents, state: InteriorState, mu: float) -> InteriorState:
    """One step from the point and the prices of ``state``, over its tau.

    ``gap`` of the new state is how far the old one was from the optimality conditions.
    """
    equations, scale = agents.equations, state.tau
    c = agents.common(state)
    before = Common(
        c.z / scale, c.mu / scale, c.phi / scale, c.s / scale, c.v / scale, 1.0, 0.0
    )  # fmt: skip
    agents.work.ledger.charge(argmins=1)
    lam, k, points, parts = equations.lam(before.mu), agents.k, [], []
    for block, p in zip(agents.blocks, agents.points(state), strict=True):
        points.append(OwnPoint(*(v / scale for v in (p.y, p.nu, p.s, p.v))))
        newton = Smoothed.near(block.sides, points[-1].y, points[-1].v, mu)
        parts.append(Elimination(block, points[-1], before.z, lam, 1.0, newton))
    S, total = agents.summed(
        [e.block.schur(e.solved[:, :-1]) for e in parts], [_message(e) for e in parts]
    )
    share, own, lack = total[: k + 1], total[k + 1 : -1], float(total[-1])
    if state.warm == 1:  # nobody could know the prices of the bounds on z
        slope = own[: equations.q] + equations.residual(before)[equations.z]
        before = replace(before, v=priced(equations.sides, slope))
    newton = Smoothed.near(equations.sides, before.z, before.v, mu)
    residual, zero = equations.residual(before), np.zeros(k + 1)
    right = equations.right(share, newton, newton.shift) - residual
    solver = Solver(equations.matrix(S, zero[:-1], zero, newton, before), equations.signs)
    dc = np.append(solver.inner(right[:-1]), 0.0)
    told, xi, moved = equations.told(dc), dc[equations.xi], []
    for e, p, at in zip(parts, points, agents.flat_of, strict=True):
        none = np.zeros(e.block.sides.count)
        end = p.moved(e.step(np.ones(1), none, told, xi[at]), 1.0)
        moved.append(replace(end, s=e.block.sides.slack(end.y, 1.0)))
    _, dv = newton.steps(newton.shift, dc[equations.z], 0.0, 1.0)
    z = before.z + dc[equations.z]
    after = Common(
        z, before.mu + dc[equations.mu], before.phi + dc[equations.phi],
        equations.sides.slack(z, 1.0), before.v + dv, 1.0, 0.0,
    )  # fmt: skip
    off = np.append(
        own[: equations.q] + residual[equations.z],
        equations.top.T @ own[equations.q : -1] + residual[equations.mu],
    )
    far = float(np.sqrt(lack + newton.lack + off @ off))
    hopeless = not far <= WORSE * max(state.gap, 1e-12) or not np.isfinite(dc).all()
    return agents.packed(
        moved, after, gap=min(far, state.gap), count=state.count + 1,
        warm=len(MUS) + 2 if hopeless else state.warm + 1,
    )  # fmt: skip


def _message(e: Elimination) -> Array:
    """What an agent adds to the right-hand side, its residuals' shares, how far it is."""
    assert isinstance(e.newton, Smoothed)
    lack = float(e.r_y @ e.r_y + e.r_E @ e.r_E) + e.newton.lack
    return np.concatenate([e.eliminated(e.right(0), 0.0) - e.own, e.own, [lack]])


def priced(sides: Sides, slope: Array) -> Array:
    """Prices of bounds that balance a slope of the Lagrangian."""
    return np.asarray(np.maximum(sides.sign * slope[sides.at], 0.0))
