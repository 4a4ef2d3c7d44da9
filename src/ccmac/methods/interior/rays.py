"""The nearest direction that equations and Hessians let pass, from the iterate of an unbounded run.

    min eps ||e||^2 + ||d + e||_H^2   s.t.   K (d + e) = 0,   d + e = 0 where a bound is active,

active meaning that its price exceeds its slack, each beside the largest of all, or that d leads
beyond it. An iterate w comes with w'Hw = O(tau) only, which is slow; this has Hd = O(eps), and
O(eps^2) when it is done again. Cost: one averaging of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.recession import outward
from ccmac.inputs import Array
from ccmac.methods.interior.common import Common, Solver
from ccmac.methods.interior.sides import Newton, Sides
from ccmac.methods.interior.state import Agents, InteriorState
from ccmac.runtime.base import Piggyback

EPSILON = 1e-9
STIFF = 1e2  # weight of entries that stay zero


@dataclass(frozen=True)
class Ray:
    """A direction: the agents' own entries, and z."""

    own: list[Array]
    z: Array

    @classmethod
    def of(cls, iteration: Agents, state: InteriorState) -> Ray:
        """The iterate."""
        own = [p.y / state.kappa for p in iteration.points(state)]
        return cls(own, iteration.common(state).z / state.kappa)

    def point(self, iteration: Agents) -> tuple[Array, Array]:
        """(flat x, z) in the user's units."""
        pairs = zip(self.own, iteration.blocks, strict=True)
        return iteration.shown(np.concatenate([y[: block.d] for y, block in pairs]), self.z)


def largest(iteration: Agents, state: InteriorState) -> Piggyback:
    """The agents' largest slack and price, with the next message."""
    own = [[p.s.max(initial=0.0), p.v.max(initial=0.0)] for p in iteration.points(state)]
    return iteration.runtime.piggyback(np.array(own), whole=True)


def straightened(iteration: Agents, state: InteriorState, before: Ray, weight: float) -> Ray:
    """From the direction ``before``; ``weight`` makes prices as large as slacks."""
    equations = iteration.equations
    common = iteration.common(state)
    z, theta_z = _begun(equations.sides, before.z, common.s, weight * common.v)
    starts = []
    solved = []
    rights = []
    matrices = []
    vectors = []
    own = zip(iteration.blocks, iteration.points(state), before.own, strict=True)
    for block, p, last in own:
        y, theta = _begun(block.sides, last, p.s, weight * p.v)
        on_y, on_z = block.slope(y, z)
        solve = block.factorized(EPSILON + block.sides.spread(theta), common.rho)
        W = block.W[:, block.support]
        starts.append(y)
        solved.append(solve(W))
        rights.append(-solve(np.concatenate([on_y, block.E @ y + block.F @ z])))
        matrices.append(block.schur(solved[-1]))
        share = -np.concatenate([on_z, block.A @ y[: block.d], [0.0]])
        share[block.support] -= W.T @ rights[-1]
        vectors.append(share)
    S, share = iteration.summed(matrices, vectors)
    weights = Newton(equations.sides, theta_z, theta_z, theta_z, theta_z)
    mu = np.zeros(equations.rank)
    phi = np.zeros(len(equations.fixed))
    none = 0 * theta_z
    zero = np.zeros(iteration.k + 1)
    weak = replace(common, s=none, v=none)
    K = equations.matrix(S, zero[:-1], zero, weights, weak)
    K[np.arange(len(z)), np.arange(len(z))] += EPSILON
    right = equations.right(share, weights, none)
    right -= equations.residual(Common(z, mu, phi, none, none, 0.0, 0.0))
    dc = np.append(Solver(K, equations.signs).inner(right[:-1]), 0.0)
    told = equations.told(dc)
    xi = dc[equations.xi]
    pieces = []
    for k, (block, y) in enumerate(zip(iteration.blocks, starts, strict=True)):
        moved = y + (rights[k] - solved[k] @ told[block.support])[: block.size]
        pieces.append(moved + block.flat @ xi[iteration.flat_of[k]])
    return Ray(pieces, z + dc[equations.z])


def _begun(sides: Sides, d: Array, s: Array, v: Array) -> tuple[Array, Array]:
    """(d, zero where a bound is active; the weights of the sides)."""
    active = (s < v) | (sides.slack(d, 0.0) < 0.0)
    start = outward(d, sides.lower, sides.upper)
    start[sides.at[active]] = 0.0
    return start, np.where(active, STIFF, 0.0)
