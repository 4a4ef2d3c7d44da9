"""One agent's part of the Newton system: its block factorized, the common unknowns left.

The agent's unknowns are y = (x_i, t) and the multipliers nu of its own rows E y + F z = f tau (an
orthonormal form of C_i, the epigraphs' rows, entries fixed by equal bounds). Everybody's are
c = (z, mu, tau), mu for the whitened coupled and shared rows. With

    M = [[H_yy + Theta + rho, E'], [E, -delta]],  W the columns and V the rows of c,

the agent adds V M^{-1} W and V M^{-1} r to what is summed. W = V' but for tau.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.methods.interior.sides import Newton, Sides
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace.reduced import Kernel

RHO = 1e-10  # curvature of the proximal term: directions that nothing holds
DELTA = 1e-10  # its counterpart on rows: dependent ones
FLAT = 1e-9  # singular values below this share of the largest: a direction without curvature
DENSE = 250  # unknowns up to which a block is factorized as a dense matrix


class Block:
    """The data of one agent, cost scaled by ``unit``."""

    def __init__(self, form: Polyhedral, d: int, kernel: Kernel, A_hat: Array, unit: float) -> None:
        self.d, self.q, self.form, self.unit = d, len(form.g) - d, form, unit
        aux = sum(len(term.a) for term in form.terms)
        self.size = d + aux
        H, g = unit * form.H, unit * form.g
        self.H_xx, self.H_xz, self.H_zz = H[:d, :d], _dense(H[:d, d:]), _dense(H[d:, d:])
        self.g_y = np.concatenate([g[:d], *(-unit * term.a for term in form.terms)])
        self.g_z = g[d:]
        lower = np.concatenate([form.lower[:d], *(term.lower for term in form.terms)])
        upper = np.concatenate([form.upper[:d], np.full(aux, np.inf)])
        self.fixed = np.flatnonzero(lower == upper)
        self._rows(kernel, lower[self.fixed])
        lower[self.fixed], upper[self.fixed] = -np.inf, np.inf
        self.sides = Sides(lower, upper)
        self.A = A_hat
        self.W = np.zeros((self.size + len(self.f), self.q + len(A_hat)))
        self.W[:d, : self.q], self.W[:d, self.q :] = self.H_xz, A_hat.T
        self.W[self.size :, : self.q] = self.F
        self.flat = self._flat()

    def _rows(self, kernel: Kernel, values: Array) -> None:
        """E y + F z = f: own equations, epigraphs, fixed entries."""
        d, size, q = self.d, self.size, self.q
        rows = [sp.hstack([sp.csr_array(kernel.space.basis.T), sp.csr_array((kernel.space.rank, size - d))])]
        shared, right = [np.zeros((kernel.space.rank, q))], [kernel.space.basis.T @ kernel.point]
        start = d
        for term in self.form.terms:
            own = sp.csr_array(term.R[:, :d])
            gap, rest = start - d, size - start - len(term.a)
            count = len(term.h)
            empty = sp.csr_array((count, gap)), sp.csr_array((count, rest))
            rows.append(sp.hstack([own, empty[0], term.T, empty[1]]))
            shared.append(_dense(term.R[:, d:]))
            right.append(term.h)
            start += len(term.a)
        ones = np.ones(len(self.fixed))
        pick = (ones, (np.arange(len(self.fixed)), self.fixed))
        rows.append(sp.csr_array(pick, shape=(len(self.fixed), size)))
        shared.append(np.zeros((len(self.fixed), q)))
        right.append(values)
        self.E: Any = sp.csr_array(sp.vstack(rows))
        self.F, self.f = np.vstack(shared), np.concatenate(right)
        small = size + len(self.f) <= DENSE
        self.E = self.E.toarray() if small else self.E
        H = _dense(self.H_xx) if small else sp.csr_array(self.H_xx)
        self.H_xx = H
        self.small = small

    def _flat(self) -> Array:
        """Orthonormal directions of free entries along which E y and the gradient stay."""
        bounded = np.zeros(self.size, dtype=bool)
        bounded[self.sides.at] = True
        free = np.flatnonzero(~bounded)
        if not len(free):
            return np.zeros((self.size, 0))
        H = np.zeros((self.d, self.size))
        H[:, : self.d] = _dense(self.H_xx)
        stacked = np.vstack([H[:, free], _dense(self.E)[:, free]])
        _, s, Vt = np.linalg.svd(stacked, full_matrices=True)
        rank = int(np.count_nonzero(s > FLAT * max(1.0, float(s.max(initial=0.0)))))
        basis = np.zeros((self.size, len(free) - rank))
        basis[free] = Vt[rank:].T
        return basis

    # -- products ----------------------------------------------------------------------------------
    def slope(self, y: Array, z: Array) -> tuple[Array, Array]:
        """H (y, z), by blocks."""
        x, on_y = y[: self.d], np.zeros(self.size)
        on_y[: self.d] = self.H_xx @ x + self.H_xz @ z
        return on_y, self.H_xz.T @ x + self.H_zz @ z

    def factorized(self, diagonal: Array) -> Any:
        """v -> M^{-1} v."""
        size, rows = self.size, len(self.f)
        if self.small:
            M = np.zeros((size + rows, size + rows))
            M[: self.d, : self.d] = self.H_xx
            M[:size, :size] += self.flat @ self.flat.T
            M[np.arange(size), np.arange(size)] += diagonal + RHO
            M[:size, size:], M[size:, :size] = self.E.T, self.E
            M[np.arange(size, size + rows), np.arange(size, size + rows)] = -DELTA
            factor = scipy.linalg.lu_factor(M, check_finite=False)
            return lambda v: scipy.linalg.lu_solve(factor, v, check_finite=False)
        top = sp.block_diag([self.H_xx, sp.csr_array((size - self.d, size - self.d))])
        top = top + sp.diags_array(diagonal + RHO)
        if self.flat.shape[1]:
            top = top + sp.csr_array(self.flat) @ sp.csr_array(self.flat).T
        M = sp.block_array([[top, self.E.T], [self.E, -DELTA * sp.eye_array(rows)]], format="csc")
        lu = spla.splu(M)
        return lu.solve


@dataclass(frozen=True)
class Point:
    """An agent's unknowns: y, nu, and the slacks and prices of its bounds."""

    y: Array
    nu: Array
    s: Array
    v: Array

    def moved(self, step: Point, alpha: float) -> Point:
        """A step of length alpha."""
        return Point(
            self.y + alpha * step.y, self.nu + alpha * step.nu, self.s + alpha * step.s,
            self.v + alpha * step.v,
        )  # fmt: skip


@dataclass(frozen=True)
class Common:
    """What everybody knows: z, mu, phi (rows of fixed z), slacks and prices on z, tau, kappa.

    The agents' flat directions xi are unknowns of a step only: they are part of y.
    """

    z: Array
    mu: Array
    phi: Array
    s: Array
    v: Array
    tau: float
    kappa: float


class Elimination:
    """One agent's Newton equations at one iterate."""

    def __init__(self, block: Block, point: Point, common: Common) -> None:
        self.block, self.point = block, point
        z, mu, tau = common.z, common.mu, common.tau
        self.z, self.tau = z, tau
        y, nu, q = point.y, point.nu, block.q
        self.newton = Newton.at(block.sides, y, point.s, point.v, tau)
        on_y, on_z = block.slope(y, z)
        sides = block.sides
        self.r_y = on_y - block.g_y * tau + block.E.T @ nu - sides.spread(sides.sign * point.v)
        self.r_y[: block.d] += block.A.T @ mu
        self.r_E = block.E @ y + block.F @ z - block.f * tau
        self.bend = float(y @ on_y + z @ on_z)
        self.linear = float(block.g_y @ y + block.g_z @ z)
        gap = self.bend / tau - self.linear + float(block.f @ nu) - sides.signed_bound @ point.v
        self.own = np.concatenate(
            [on_z - block.g_z * tau + block.F.T @ nu, block.A @ y[: block.d], [gap]]
        )  # this agent's share of the residuals of z, mu, tau
        tilt = self.newton.tilt
        self.column = np.concatenate([-block.g_y - tilt, -block.f])
        self.row = np.concatenate([2 / tau * on_y - block.g_y + tilt, block.f])
        self.row_z = 2 / tau * on_z - block.g_z
        self.corner = self.newton.corner - self.bend / tau**2
        self.solve = block.factorized(self.newton.diagonal)
        self.solved = self.solve(np.column_stack([block.W, self.column]))
        self.k = q + len(block.A)

    def right(self, part: int) -> Array:
        """The agent's own right-hand side for a of the residuals (0), t = 0 (1), t = 1 (2)."""
        on_y, _ = self.newton.right(self.newton.parts[part])
        if part:
            return np.concatenate([on_y, np.zeros(len(self.r_E))])
        return np.concatenate([on_y - self.r_y, -self.r_E])

    def eliminated(self, right: Array, on_tau: float, own: Array | None = None) -> Array:
        """Its share of the common right-hand side."""
        solved = self.solve(right)
        share = np.zeros(self.k + 1) if own is None else -own
        share[:-1] -= self.block.W.T @ solved
        share[-1] += on_tau - self.row @ solved
        return share

    def message(self) -> Array:
        """Triangle of the matrix, column, row and corner of tau; three right-hand sides; facts."""
        block, k = self.block, self.k
        q = block.q
        S = -block.W.T @ self.solved[:, :k]
        S[:q, :q] += block.H_zz
        column = -block.W.T @ self.solved[:, k]
        column[:q] -= block.g_z
        row = -self.row @ self.solved
        row[:q] += self.row_z
        row[k] += self.corner
        rights = []
        for part, a in enumerate(self.newton.parts):
            on_tau = float(block.sides.signed_bound @ a)
            rights.append(self.eliminated(self.right(part), on_tau, None if part else self.own))
        facts = [
            float(self.r_y @ self.r_y), float(self.r_E @ self.r_E), self.bend, self.linear,
            float(self.point.s @ self.point.v), float(block.sides.count), *self.own,
        ]  # fmt: skip
        return np.concatenate([S[np.triu_indices(k)], column, row, *rights, facts])

    def curved(self, dy: Array, dz: Array, dtau: float) -> float:
        """||dw - (w/tau) dtau||_H^2 / tau: what is left of w'Hw/tau to second order."""
        tau = self.tau
        dy, dz = dy - dtau / tau * self.point.y, dz - dtau / tau * self.z
        on_y, on_z = self.block.slope(dy, dz)
        return float(dy @ on_y + dz @ on_z) / tau

    def step(self, a: Array, right: Array, dc: Array, dxi: Array, eta: float) -> Point:
        """The agent's part of the step that goes with the common one, dc and dxi."""
        block = self.block
        both = self.solve(right) - self.solved @ dc
        dy, dnu = both[: block.size] + block.flat @ dxi, both[block.size :]
        ds, dv = self.newton.steps(a, dy, dc[-1], eta)
        return Point(dy, dnu, ds, dv)


def _dense(matrix: Any) -> Array:
    return matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)
