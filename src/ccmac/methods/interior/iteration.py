"""Predictor and corrector on the homogeneous form of a quadratic problem with bounds.

With tau, kappa >= 0 and all right-hand sides times tau, the optimality conditions and

    w'Hw/tau - g'w + (prices times right-hand sides) + kappa = 0

always have a solution that tells what the problem is: tau > 0 gives w/tau with its prices,
kappa > 0 a proof that there is none. A step solves one Newton system twice (Mehrotra's predictor
and corrector) and goes 0.99 of the way to the boundary.
Cost of a step: 3 averagings: the summed matrix with its right-hand sides; the corrector's
right-hand side with the predictor's length; the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.duality import Prices
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, State, rows
from ccmac.methods.interior.block import DELTA, RHO, Block, Common, Elimination, Point
from ccmac.methods.interior.sides import Newton, Sides, longest
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

FRACTION = 0.99
FACTS = 6
PIVOT = 1e-13
VANISHED = 1e-6


@dataclass(frozen=True)
class InteriorState(State):
    """The agents' unknowns (padded to one width), everybody's, and how far they are.

    ``primal`` and ``dual`` are the residuals expected after the step, ``value`` the cost before it.
    """

    own: Array = rows()
    common: Array = rows()
    tau: float = 1.0
    kappa: float = 1.0
    mu: float = 1.0
    primal: float = np.inf
    dual: float = np.inf
    value: float = 0.0
    gap: float = np.inf
    dual_size: float = 1.0
    length: float = 1.0
    count: int = 0


class Interior(Iteration[InteriorState]):
    """Interior-point steps for ``blocks`` under whitened common rows."""

    def __init__(self, work: Workspace, reduced: Reduced, lower: Array, upper: Array, blocks: list[Block], width: int, flats: list[tuple[Array, Array]]) -> None:
        self.work, self.reduced, self.blocks, self.width = work, reduced, blocks, width
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.q, self.rank = self.problem.q, reduced.rank
        self.lower, self.upper = lower, upper
        combine = self.combine = reduced.U / reduced.sigma
        m = self.problem.m
        self.unit = blocks[0].unit
        self.reach = float(np.linalg.norm((reduced.U.T @ reduced.right) / reduced.sigma))
        self.Z_hat = (combine[:m].T * reduced.unit) @ reduced.Bbar.astype(np.float64)
        self.Z_hat = self.Z_hat + combine[m:].T @ reduced.D
        self.v_hat = combine.T @ reduced.right
        self.fixed = np.flatnonzero(lower == upper)
        self.held = lower[self.fixed]
        free_lower, free_upper = lower.copy(), upper.copy()
        free_lower[self.fixed], free_upper[self.fixed] = -np.inf, np.inf
        self.sides = Sides(free_lower, free_upper)
        self.k = self.q + self.rank
        self.G = np.hstack([G for G, _ in flats])
        self.gamma = np.concatenate([g for _, g in flats])
        ends = np.cumsum([0, *(len(g) for _, g in flats)])
        self.flat_of = [slice(ends[i], ends[i + 1]) for i in self.problem.agents]

    # -- the state ---------------------------------------------------------------------------------
    def start(self, x: Array, z: Array, dual: Array | None = None, price: Array | None = None) -> InteriorState:
        points = []
        for block in self.blocks:
            y = block.sides.middle()
            s = block.sides.slack(y, 1.0)
            points.append(Point(y, np.zeros(len(block.f)), s, 1.0 / s))
        mid = self.sides.middle()
        s = self.sides.slack(mid, 1.0)
        common = Common(mid, np.zeros(self.rank), np.zeros(len(self.fixed)), s, 1.0 / s, 1.0, 1.0)
        return self._packed(points, common)

    def _packed(self, points: list[Point], common: Common, **numbers: Any) -> InteriorState:
        own = np.zeros((len(points), self.width))
        for row, p in zip(own, points, strict=True):
            flat = np.concatenate([p.y, p.nu, p.s, p.v])
            row[: len(flat)] = flat
        shared = np.concatenate([common.z, common.mu, common.phi, common.s, common.v])
        return InteriorState(own, shared[None], common.tau, common.kappa, **numbers)

    def points(self, state: InteriorState) -> list[Point]:
        """The agents' unknowns."""
        found = []
        for row, block in zip(state.own, self.blocks, strict=True):
            sizes = [block.size, len(block.f), block.sides.count, block.sides.count]
            found.append(Point(*np.split(row, np.cumsum(sizes))[:4]))
        return found

    def common(self, state: InteriorState) -> Common:
        """Everybody's unknowns."""
        sizes = [self.q, self.rank, len(self.fixed), self.sides.count]
        pieces = np.split(state.common[0], np.cumsum(sizes))
        return Common(*pieces, state.tau, state.kappa)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """w / tau, put on the bounds it lies beyond; w / kappa where tau tells of no solution."""
        scale = state.tau if state.tau > VANISHED * state.kappa else state.kappa
        x = np.empty(self.space.x_size)
        ends = self.space.offsets
        for k, (block, p) in enumerate(zip(self.blocks, self.points(state), strict=True)):
            form = block.form
            x[ends[k] : ends[k + 1]] = np.clip(
                p.y[: block.d] / scale, form.lower[: block.d], form.upper[: block.d]
            )
        z = np.clip(self.common(state).z / scale, self.lower, self.upper)
        return x, np.broadcast_to(z, (len(self.blocks), self.q))

    def prices(self, state: InteriorState, scale: float) -> Prices:
        """In the user's rows, over ``scale``."""
        common, size, reduced = self.common(state), scale * self.unit, self.reduced
        coupled, shared = reduced.prices(self.combine @ (common.mu / size))
        local, terms = [], []
        for k, (block, p) in enumerate(zip(self.blocks, self.points(state), strict=True)):
            space = reduced.kernels[k].space
            nu = p.nu / size
            inside = nu[: space.rank] - space.basis.T @ (reduced.A[k].T @ coupled)
            local.append(space.multipliers(inside))
            terms.append(nu[space.rank : len(nu) - len(block.fixed)])
        return Prices(coupled, shared, local, terms)

    def direction(self, state: InteriorState) -> tuple[Array, Array]:
        """(flat x, z) as they are, not over tau."""
        pieces = [p.y[: b.d] for b, p in zip(self.blocks, self.points(state), strict=True)]
        return np.concatenate(pieces), self.common(state).z

    # -- the common system -------------------------------------------------------------------------
    def _assembled(self, total: Array, common: Common, newton: Newton) -> tuple[Array, list[Array]]:
        q, k, p, f = self.q, self.k, len(self.gamma), len(self.fixed)
        upper = np.triu_indices(k)
        ends = np.cumsum([len(upper[0]), k, k + 1, k + 1, k + 1, k + 1])
        triangle, column, row, *rights, _ = np.split(total, ends)
        size = k + p + f + 1
        K = np.zeros((size, size))
        K[upper] = triangle
        K[:k, :k] += np.triu(K[:k, :k], 1).T
        z, mu, xi, phi, tau = slice(0, q), slice(q, k), slice(k, k + p), slice(k + p, k + p + f), size - 1
        K[z, z] += np.diag(newton.diagonal + RHO)
        K[mu, z] += self.Z_hat
        K[z, mu] += self.Z_hat.T
        K[mu, mu] -= DELTA * np.eye(self.rank)
        K[phi, phi] = -DELTA * np.eye(f)
        K[xi, xi] = RHO * np.eye(p)
        K[mu, xi], K[xi, mu] = self.G, self.G.T
        K[xi, tau], K[tau, xi] = -self.gamma, -self.gamma
        K[np.arange(k + p, k + p + f), self.fixed] = 1.0
        K[self.fixed, np.arange(k + p, k + p + f)] = 1.0
        K[:k, tau] = column
        K[z, tau] -= newton.tilt
        K[mu, tau] -= self.v_hat
        K[phi, tau] = -self.held
        K[tau, :k], K[tau, tau] = row[:k], row[k] + newton.corner - common.kappa / common.tau
        K[tau, z] += newton.tilt
        K[tau, mu] += self.v_hat
        K[tau, phi] = self.held
        full = []
        for part, (right, a) in enumerate(zip(rights, newton.parts, strict=True)):
            on_z, on_tau = newton.right(a)
            full.append(self._right(right, on_z, on_tau))
            if part == 0:
                full[0] -= self._residual(common)
        full[1][tau] += common.kappa
        full[2][tau] -= 1.0 / common.tau
        return K, full

    def _right(self, share: Array, on_z: Array, on_tau: float) -> Array:
        out = np.concatenate([share[:-1], np.zeros(len(self.gamma) + len(self.fixed)), share[-1:]])
        out[: self.q] += on_z
        out[-1] += on_tau
        return out

    def _residual(self, c: Common) -> Array:
        """The common part of what the equations of z, mu, phi, tau lack."""
        sides = self.sides
        on_z = self.Z_hat.T @ c.mu - sides.spread(sides.sign * c.v)
        on_z[self.fixed] += c.phi
        on_mu = self.Z_hat @ c.z - self.v_hat * c.tau
        on_phi = c.z[self.fixed] - self.held * c.tau
        gap = self.v_hat @ c.mu + self.held @ c.phi - sides.signed_bound @ c.v + c.kappa
        on_xi = self.G.T @ c.mu - self.gamma * c.tau
        return np.concatenate([on_z, on_mu, on_xi, on_phi, [gap]])

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: InteriorState) -> InteriorState:
        """Predictor, corrector, one step."""
        n, common, points = self.problem.n, self.common(state), self.points(state)
        parts = [Elimination(b, p, common) for b, p in zip(self.blocks, points, strict=True)]
        total = self.runtime.average(np.stack([e.message() for e in parts]))[0] * n
        newton = Newton.at(self.sides, common.z, common.s, common.v, common.tau)
        K, (X, Y0, Y1) = self._assembled(total, common, newton)
        system = _Solver(K)
        facts = total[-(FACTS + self.k + 1) :]
        count = facts[5] + self.sides.count + 1
        mu = float(facts[4] + common.s @ common.v + common.tau * common.kappa) / count
        # predictor
        dc = system.solve(X + Y0)
        a_z = newton.parts[0] + newton.parts[1]
        ds, dv = newton.steps(a_z, dc[: self.q], dc[-1], 1.0)
        dkappa = -common.kappa - common.kappa / common.tau * dc[-1]
        trial = []
        for e, xi in zip(parts, self._flats(dc), strict=True):
            a = e.newton.parts[0] + e.newton.parts[1]
            trial.append(e.step(a, e.right(0) + e.right(1), self._own(dc), xi, 1.0))
        second = [e.newton.second(t.s, t.v) for e, t in zip(parts, trial, strict=True)]
        shares = []
        for e, a, d in zip(parts, second, trial, strict=True):
            on_y, on_tau = e.newton.right(a)
            on_tau -= e.curved(d.y, dc[: self.q], float(dc[-1]))
            shares.append(e.eliminated(np.concatenate([on_y, np.zeros(len(e.r_E))]), on_tau))
        Y2 = self.runtime.average(np.stack(shares))[0] * n
        alpha = self._length(points, trial, common, (ds, dv, dc[-1], dkappa), riding=True)
        second_z = newton.second(ds, dv)
        Y2 = self._right(Y2, *newton.right(second_z))
        Y2[-1] += dc[-1] * dkappa / common.tau
        # corrector
        sigma = (1.0 - min(alpha, 1.0)) ** 3
        eta, target = 1.0 - sigma, sigma * mu
        weight = min(alpha, 1.0)
        cross, second_z = -weight * dc[-1] * dkappa, weight * second_z
        second = [weight * a for a in second]
        dc = system.solve(eta * X + Y0 + target * Y1 + weight * Y2)
        a_z = eta * newton.parts[0] + newton.parts[1] + target * newton.parts[2] + second_z
        ds, dv = newton.steps(a_z, dc[: self.q], dc[-1], eta)
        dkappa = (target + cross) / common.tau - common.kappa - common.kappa / common.tau * dc[-1]
        steps = []
        for e, a2, xi in zip(parts, second, self._flats(dc), strict=True):
            p = e.newton.parts
            a = eta * p[0] + p[1] + target * p[2] + a2
            on_y, _ = e.newton.right(a2)
            right = eta * e.right(0) + e.right(1) + target * e.right(2)
            right[: len(on_y)] += on_y
            steps.append(e.step(a, right, self._own(dc), xi, eta))
        alpha = self._length(points, steps, common, (ds, dv, dc[-1], dkappa))
        alpha = min(1.0, FRACTION * alpha)
        moved = [p.moved(s, alpha) for p, s in zip(points, steps, strict=True)]
        left = 1.0 - alpha * eta
        after = Common(
            common.z + alpha * dc[: self.q], common.mu + alpha * dc[self.q : self.k],
            common.phi + alpha * dc[self.k + len(self.gamma) : -1], common.s + alpha * ds, common.v + alpha * dv,
            common.tau + alpha * float(dc[-1]), common.kappa + alpha * float(dkappa),
        )
        off = facts[FACTS:] + np.delete(self._residual(common), np.s_[self.k : -1])
        primal = left * float(np.sqrt(facts[1] + off[self.q : self.k] @ off[self.q : self.k]))
        dual = left * float(np.sqrt(facts[0] + off[: self.q] @ off[: self.q]))
        value = 0.5 * float(facts[2]) / common.tau**2 - float(facts[3]) / common.tau
        return self._packed(
            moved, after, mu=float(mu * (1 - alpha * (1 - sigma))), primal=primal, dual=dual, value=value,
            gap=float(mu * (1 - alpha * (1 - sigma)) * count / after.tau**2), dual_size=float(np.linalg.norm(after.mu)),
            length=float(alpha), count=state.count + 1,
        )

    def _own(self, dc: Array) -> Array:
        """What agents know of a common step: z, mu, tau."""
        return np.concatenate([dc[: self.k], dc[-1:]])

    def _flats(self, dc: Array) -> list[Array]:
        """The agents' flat directions in a common step."""
        xi = dc[self.k : self.k + len(self.gamma)]
        return [xi[at] for at in self.flat_of]

    def _length(self, points: list[Point], steps: list[Point], common: Common, change: Any, riding: bool = False) -> float:
        own = [[min(longest(p.s, d.s), longest(p.v, d.v))] for p, d in zip(points, steps, strict=True)]
        everybody = self.runtime.gather(np.array(own), riding=riding)
        ds, dv, dtau, dkappa = change
        scalars = longest(np.array([common.tau, common.kappa]), np.array([dtau, dkappa]))
        return min(float(everybody.min()), longest(common.s, ds), longest(common.v, dv), scalars)

    def finished(self, state: InteriorState) -> bool:
        """No step is left."""
        return state.count >= 100 or state.length < 1e-9

    @property
    def cost(self) -> Cost:
        """Three averagings."""
        k = self.k
        width = k * (k + 1) // 2 + k + 4 * (k + 1) + FACTS + k + 1
        runtime = self.runtime
        return (
            runtime.average_cost(width) + runtime.average_cost(k + 1)
            + runtime.total_cost(self.problem.n, riding=True) + runtime.total_cost(self.problem.n)
        )


class _Solver:
    """The common system with tau last; tau stays where rounding leaves nothing of its pivot."""

    def __init__(self, K: Array) -> None:
        self.K, self.row, self.column = K[:-1, :-1], K[-1, :-1], K[:-1, -1]
        self.lu = scipy.linalg.lu_factor(self.K, check_finite=False) if len(K) > 1 else None
        self.along = self._inner(self.column)
        self.pivot = float(K[-1, -1] - self.row @ self.along)
        size = abs(float(K[-1, -1])) + float(np.abs(self.row) @ np.abs(self.along))
        self.moves = self.pivot < -PIVOT * size

    def _inner(self, right: Array) -> Array:
        if self.lu is None:
            return right
        x = scipy.linalg.lu_solve(self.lu, right, check_finite=False)
        return np.asarray(x + scipy.linalg.lu_solve(self.lu, right - self.K @ x, check_finite=False))

    def solve(self, right: Array) -> Array:
        """The common step."""
        first = self._inner(right[:-1])
        dtau = (right[-1] - self.row @ first) / self.pivot if self.moves else 0.0
        return np.append(first - dtau * self.along, dtau)
