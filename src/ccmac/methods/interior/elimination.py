"""One agent's Newton equations at one iterate, its own unknowns eliminated.

Cost: 1 local factorization (:class:`.block.Block`), and a solve a right-hand side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.methods.interior.block import RHO, Block
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Newton

PARTS = 3  # right-hand sides known at once: of the residuals, of t = 0, of t = 1


@dataclass(frozen=True)
class Lack:
    """What the optimality conditions lack at a point, an agent's part.

    ``r_y`` and ``r_E`` of its own, ``own`` its share of the residuals of z, lambda, tau; ``slope``
    is H (y, z), with its curvature ``bend`` and the linear cost.
    """

    r_y: Array
    r_E: Array
    own: Array
    slope: tuple[Array, Array]
    bend: float
    linear: float

    @classmethod
    def at(cls, block: Block, point: OwnPoint, z: Array, lam: Array, tau: float) -> Lack:
        """``lam`` are the prices of the unit rows."""
        y = point.y
        nu = point.nu
        sides = block.sides
        on_y, on_z = block.slope(y, z)
        r_y = on_y - block.g_y * tau + block.E.T @ nu - sides.spread(sides.sign * point.v)
        r_y[: block.d] += block.A.T @ lam
        r_E = block.E @ y + block.F @ z - block.f * tau
        bend = float(y @ on_y + z @ on_z)
        linear = float(block.g_y @ y + block.g_z @ z)
        gap = bend / tau - linear + float(block.f @ nu - sides.signed_bound @ point.v)
        on_common = on_z - block.g_z * tau + block.F.T @ nu
        own = np.concatenate([on_common, block.A @ y[: block.d], [gap]])
        return cls(r_y, r_E, own, (on_y, on_z), bend, linear)

    @property
    def square(self) -> float:
        """||r_y||^2 + ||r_E||^2."""
        return float(self.r_y @ self.r_y + self.r_E @ self.r_E)


class Elimination:
    """One agent's Newton equations at one iterate; ``lam`` are the prices of the unit rows."""

    def __init__(
        self,
        block: Block,
        point: OwnPoint,
        z: Array,
        lam: Array,
        tau: float,
        newton: Newton | None = None,
        rho: float = RHO,
    ) -> None:
        self.block = block
        self.point = point
        self.z = z
        self.tau = tau
        self.k = block.q + len(lam)
        self.newton = newton or Newton.at(block.sides, point.y, point.s, point.v, tau)
        lack = Lack.at(block, point, z, lam, tau)
        self.r_y = lack.r_y
        self.r_E = lack.r_E
        self.own = lack.own
        self.square = lack.square
        self.bend, self.linear, (on_y, on_z) = lack.bend, lack.linear, lack.slope
        tilt = self.newton.tilt
        column = np.concatenate([-block.g_y - tilt, -block.f])
        self.row = np.concatenate([2 / tau * on_y - block.g_y + tilt, block.f])
        self.row_z = 2 / tau * on_z - block.g_z
        self.W = block.W[:, block.support]
        self.solve = block.factorized(self.newton.diagonal, rho)
        self.solved = self.solve(np.column_stack([self.W, column]))

    def right(self, part: int) -> Array:
        """The agent's own right-hand side: of the residuals (0), of t = 0 (1), of t = 1 (2)."""
        on_y, _ = self.newton.right(self.newton.parts[part])
        if part:
            return np.concatenate([on_y, np.zeros(len(self.r_E))])
        return np.concatenate([on_y - self.r_y, -self.r_E])

    def eliminated(self, right: Array, on_tau: float) -> Array:
        """What a right-hand side of its own leaves of the common one."""
        solved = self.solve(right)
        share = np.zeros(self.k + 1)
        share[self.block.support] = -self.W.T @ solved
        share[-1] = on_tau - self.row @ solved
        return share

    def vectors(self) -> list[Array]:
        """Column and row of tau, three right-hand sides."""
        block = self.block
        k = self.k
        column = np.zeros(k)
        row = np.zeros(k + 1)
        column[block.support] = -self.W.T @ self.solved[:, -1]
        column[: block.q] -= block.g_z
        inner = -self.row @ self.solved
        row[block.support], row[k] = inner[:-1], inner[-1]
        row[: block.q] += self.row_z
        row[k] += self.newton.corner - self.bend / self.tau**2
        rights = []
        for part, a in enumerate(self.newton.parts):
            on_tau = float(block.sides.signed_bound @ a)
            rights.append(self.eliminated(self.right(part), on_tau))
        rights[0] -= self.own
        return [column, row, *rights]

    def facts(self) -> Array:
        """Sums of squares and products, and the residuals' shares."""
        squares = float(self.r_y @ self.r_y), float(self.r_E @ self.r_E)
        pairs = float(self.point.s @ self.point.v), float(self.block.sides.count)
        return np.array([*squares, self.bend, self.linear, *pairs, *self.own])

    def curved(self, dy: Array, dz: Array, dtau: float) -> float:
        """||dw - (w/tau) dtau||_H^2 / tau: what w'Hw/tau keeps to second order."""
        along = dtau / self.tau
        dy = dy - along * self.point.y
        dz = dz - along * self.z
        on_y, on_z = self.block.slope(dy, dz)
        return float(dy @ on_y + dz @ on_z) / self.tau

    def step(self, weights: Array, second: Array, dc: Array, dxi: Array) -> OwnPoint:
        """The agent's part of the step that goes with dc = (dz, dlambda, dtau) and dxi.

        ``weights`` of the three right-hand sides and ``second``, a of the second order.
        """
        block = self.block
        parts = self.newton.parts
        a = sum((w * p for w, p in zip(weights, parts, strict=True)), second)
        right = sum(w * self.right(part) for part, w in enumerate(weights))
        right[: block.size] += self.newton.right(second)[0]
        common = np.append(dc[block.support], dc[-1])
        both = self.solve(right) - self.solved @ common
        dy = both[: block.size] + block.flat @ dxi
        dnu = both[block.size :]
        ds, dv = self.newton.steps(a, dy, float(dc[-1]), float(weights[0]))
        return OwnPoint(dy, dnu, ds, dv)
