"""The summed KKT system of a quadratic on all equations, solved by everybody alike.

With the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.reduced.Reduced`; Ahat_i, Zhat its parts, What What' = I), the sum over
agents of their eliminated parts (:mod:`ccmac.workspace.summed`, rows Ahat_i) with Zhat in the
corner is the whole KKT system in (z, mu). It may be summed in whitened rows, or in the agents' own
and be whitened by all alike, which squares the condition of the equations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.problem import Problem
from ccmac.workspace.reduced import Kernel, Reduced

Solve = Callable[[Array], Array]


class Whitened:
    """Ahat_i, Zhat and v_hat; ``flat`` more unknowns stand behind z, their columns in the sum."""

    def __init__(self, problem: Problem, reduced: Reduced, flat: int = 0) -> None:
        self.q, self.m, self.rank, self.n = problem.q + flat, problem.m, reduced.rank, problem.n
        self.combine = reduced.U / reduced.sigma  # whitened rows = combine' times scaled rows
        self.top = self.combine[: problem.m].T * reduced.unit
        below = self.combine[problem.m :].T @ reduced.D
        self.Z = np.zeros((reduced.rank, self.q))
        self.Z[:, : problem.q] = self.top @ reduced.Bbar.astype(np.float64) + below
        self.v = self.combine.T @ reduced.right
        self.kernels: list[Kernel] = reduced.kernels
        self.A = [
            self.top @ (A @ kernel.basis)
            for A, kernel in zip(reduced.A, reduced.kernels, strict=True)
        ]

    @property
    def size(self) -> int:
        """Unknowns of the summed system."""
        return self.q + self.rank

    def rows(self, total: Array) -> Array:
        """(z part, part of the coupled rows) with the rows whitened."""
        return np.concatenate([total[: self.q], self.top @ total[self.q :]])

    def whitened(self, triangle: Array) -> Array:
        """The triangle of a sum in the coupled rows, as one in whitened rows."""
        own = _symmetric(triangle, self.q + self.m)
        half = np.vstack([own[: self.q], self.top @ own[self.q :]])
        whole = np.hstack([half[:, : self.q], half[:, self.q :] @ self.top.T])
        return np.asarray(whole[np.triu_indices(self.size)])

    def matrix(self, triangle: Array) -> Array:
        """The summed matrix (triangle in whitened rows) with Zhat in its corner."""
        K, q = _symmetric(triangle, self.size), self.q
        K[q:, :q] += self.Z
        K[:q, q:] += self.Z.T
        return K

    def factorized(self, triangle: Array) -> Solve:
        """Solves with :meth:`matrix`."""
        return solver(self.matrix(triangle))

    def lacking(self, total: Array, z: Array, mu: Array) -> Array:
        """What the equations in (z, mu) lack, from the sum of the agents' parts."""
        own = np.concatenate([-self.Z.T @ mu, self.v - self.Z @ z])
        return np.asarray(total + own)


def solver(K: Array) -> Solve:
    """Solves with K."""
    lu = scipy.linalg.lu_factor(K)
    return lambda right: np.asarray(scipy.linalg.lu_solve(lu, right, check_finite=False))


def _symmetric(triangle: Array, size: int) -> Array:
    """The symmetric matrix with this upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.asarray(matrix + np.triu(matrix, 1).T)
