"""Quadratics on the kernels of the agents' equations, eliminated to one system that all can sum.

On x_i = C_i^+ c_i + N_i y_i each agent eliminates y_i from its quadratic; with R_i = A_i N_i (or
other rows of the same kind) its part of the KKT matrix in (z, multipliers of the rows) is

    [[H_zz, .], [0, 0]] - [H_zx; R_i] (N_i'H_xx N_i)^{-1} [H_xz, R_i'].

None of it needs to know what other agents' equations are: the sum travels with them.
Cost: q + m =: k, k(k + 3)/2 floats in the message that gathers the equations; 1 argmin.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.equations import Kernel


class LocalModel:
    """One agent's quadratic u'Hu/2 - g'u on its kernel; the images of (z, multipliers) are
    eliminated.

    ``rows`` are R_i. Raises LinAlgError where the quadratic is not definite there.
    """

    def __init__(self, H: Array, g: Array, kernel: Kernel, rows: Array) -> None:
        self.N = N = kernel.basis
        self.point = point = kernel.point
        d = len(point)
        self.q = len(g) - d
        self.H_xz = N.T @ H[:d, d:]
        self.H_zz = H[d:, d:]
        self.factor = scipy.linalg.cho_factor(N.T @ H[:d, :d] @ N) if N.shape[1] else None
        self.g_x = N.T @ (g[:d] - H[:d, :d] @ point)
        self.g_z = g[d:] - H[d:, :d] @ point
        self._take(rows)

    def _take(self, rows: Array) -> None:
        self.rows = rows
        self.side = np.hstack([self.H_xz, rows.T])
        self.solved = self.solve(self.side)

    def on(self, rows: Array) -> LocalModel:
        """The same with other rows."""
        other = copy.copy(self)
        other._take(rows)
        return other

    def solve(self, right: Array) -> Array:
        """(N'H_xx N)^{-1} right."""
        if self.factor is None:
            return np.zeros_like(right)
        return np.asarray(scipy.linalg.cho_solve(self.factor, right, check_finite=False))

    def schur(self) -> Array:
        """This agent's part of the KKT matrix in (z, multipliers)."""
        part = -self.side.T @ self.solved
        part[: self.q, : self.q] += self.H_zz
        return np.asarray(part)

    def triangle(self) -> Array:
        """What is sent of it."""
        part = self.schur()
        return np.asarray(part[np.triu_indices(len(part))])

    def inner(self, z: Array, multipliers: Array) -> Array:
        """y that minimises at (z, multipliers)."""
        return self.solve(self.g_x - self.H_xz @ z - self.rows.T @ multipliers)

    def x(self, z: Array, multipliers: Array) -> Array:
        """x that minimises at (z, multipliers)."""
        return np.asarray(self.point + self.N @ self.inner(z, multipliers))

    def residual(self, z: Array, multipliers: Array) -> Array:
        """This agent's part of what the equations in (z, multipliers) lack."""
        y = self.inner(z, multipliers)
        return np.concatenate([self.g_z - self.H_zz @ z - self.H_xz.T @ y, -self.rows @ y])


def residuals(models: Sequence[LocalModel], z: Array, multipliers: Array) -> Array:
    """One row an agent."""
    return np.stack([model.residual(z, multipliers) for model in models])


class Summed:
    """The eliminated quadratics of the agents owned here, and their sum on its way to all."""

    def __init__(self, problem: Problem, runtime: Runtime, kernels: list[Kernel]) -> None:
        k = problem.q + problem.m
        self._split = k * (k + 1) // 2
        self.models: list[LocalModel] = []
        rows = np.full((len(kernels), self._split + k), np.nan)
        runtime.ledger.charge(argmins=1, A=problem.m if "A" in problem.present else 0)
        for row, kernel, (i, agent) in zip(rows, kernels, problem.agents.items(), strict=True):
            runtime.mind_the_time()
            H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
            A = np.zeros((problem.m, problem.d[i])) if agent.A is None else dense(agent.A)
            try:
                model = LocalModel(dense(H), np.asarray(g), kernel, A @ kernel.basis)
            except np.linalg.LinAlgError:
                break  # the sum is then not a number, and all hear of it
            self.models.append(model)
            row[: self._split] = model.triangle()
            row[self._split :] = model.residual(np.zeros(problem.q), np.zeros(problem.m))
        self._sent = runtime.piggyback(rows)

    @property
    def definite(self) -> bool:
        """Whether every agent could eliminate its variables."""
        return bool(np.isfinite(self._sent.value).all())

    @property
    def triangle(self) -> Array:
        """Of the sum of the agents' parts of the KKT matrix in (z, coupled multipliers)."""
        return self._sent.value[: self._split]

    @property
    def right(self) -> Array:
        """The sum of what the equations lack at z = 0 without multipliers."""
        return self._sent.value[self._split :]
