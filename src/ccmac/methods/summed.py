"""Quadratics on the kernels of the agents' equations, eliminated to one system that all can sum.

On x_i = C_i^+ c_i + N_i y_i with the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.reduced.Reduced`; Ahat_i, Zhat its parts, What What' = I), each agent
eliminates y_i from its quadratic, and the sum over agents of

    [[H_zz, .], [0, 0]] - [H_zx; Ahat_i] (N_i'H_xx N_i)^{-1} [H_xz, Ahat_i']

with Zhat in the corner is the whole KKT system in (z, mu).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.problem import Problem
from ccmac.workspace.reduced import Kernel, Reduced

Solve = Callable[[Array], Array]


class Whitened:
    """Ahat_i, Zhat and v_hat."""

    def __init__(self, problem: Problem, reduced: Reduced) -> None:
        self.q, self.rank, self.n = problem.q, reduced.rank, problem.n
        combine = reduced.U / reduced.sigma  # whitened rows = combine' times scaled rows
        top = combine[: problem.m].T * reduced.unit
        below = combine[problem.m :].T @ reduced.D
        self.Z = top @ reduced.Bbar.astype(np.float64) + below
        self.v = combine.T @ reduced.right
        self.kernels: list[Kernel] = reduced.kernels
        self.A = [
            top @ (A @ kernel.basis) for A, kernel in zip(reduced.A, reduced.kernels, strict=True)
        ]
        self._upper = np.triu_indices(self.size)

    @property
    def size(self) -> int:
        """Unknowns of the summed system."""
        return self.q + self.rank

    def triangle(self, part: Array) -> Array:
        """What one agent sends of its part of the matrix."""
        return np.asarray(part[: self.size, : self.size][self._upper])

    def factorized(self, triangle: Array) -> Solve:
        """Solves with the summed matrix, Zhat in its corner."""
        K, q = np.zeros((self.size, self.size)), self.q
        K[self._upper] = triangle
        K = K + np.triu(K, 1).T
        K[q:, :q] += self.Z
        K[:q, q:] += self.Z.T
        lu = scipy.linalg.lu_factor(K)
        return lambda right: np.asarray(scipy.linalg.lu_solve(lu, right, check_finite=False))

    def lacking(self, total: Array, z: Array, mu: Array) -> Array:
        """What the equations in (z, mu) lack, from the sum of the agents' parts."""
        own = np.concatenate([-self.Z.T @ mu, self.v - self.Z @ z])
        return np.asarray(total + own)


class LocalModel:
    """One agent's quadratic u'Hu/2 - g'u on its kernel; the images of (z, mu) are eliminated.

    Raises LinAlgError where it is not definite there.
    """

    def __init__(self, H: Array, g: Array, kernel: Kernel, A_hat: Array) -> None:
        N, point = kernel.basis, kernel.point
        d, q = len(point), len(g) - len(point)
        self.N, self.A_hat, self.point = N, A_hat, point
        self.H_xz, self.H_zz = N.T @ H[:d, d:], H[d:, d:]
        self.factor = scipy.linalg.cho_factor(N.T @ H[:d, :d] @ N) if N.shape[1] else None
        self.g_x, self.g_z = N.T @ (g[:d] - H[:d, :d] @ point), g[d:] - H[d:, :d] @ point
        self.side = np.hstack([self.H_xz, A_hat.T])
        self.solved = self.solve(self.side)
        self.q = q

    def solve(self, right: Array) -> Array:
        """(N'H_xx N)^{-1} right."""
        if self.factor is None:
            return np.zeros_like(right)
        return np.asarray(scipy.linalg.cho_solve(self.factor, right, check_finite=False))

    def schur(self) -> Array:
        """This agent's part of the KKT matrix in (z, mu)."""
        part = -self.side.T @ self.solved
        part[: self.q, : self.q] += self.H_zz
        return np.asarray(part)

    def inner(self, z: Array, mu: Array) -> Array:
        """y that minimises at (z, mu)."""
        return self.solve(self.g_x - self.H_xz @ z - self.A_hat.T @ mu)

    def x(self, z: Array, mu: Array) -> Array:
        """x that minimises at (z, mu)."""
        return np.asarray(self.point + self.N @ self.inner(z, mu))

    def residual(self, z: Array, mu: Array) -> Array:
        """This agent's part of what the equations in (z, mu) lack."""
        y = self.inner(z, mu)
        slope = self.g_z - self.H_zz @ z - self.H_xz.T @ y
        return np.concatenate([slope, -self.A_hat @ y])


def residuals(models: Sequence[LocalModel], z: Array, mu: Array) -> Array:
    """One row an agent."""
    return np.stack([model.residual(z, mu) for model in models])
