"""Quadratics on the kernels of the agents' equations, eliminated to one system that all can sum.

On x_i = C_i^+ c_i + N_i y_i each agent eliminates y_i from its quadratic; with R_i = A_i N_i (or
other rows of the same kind) its part of the KKT matrix in (z, multipliers of the rows) is

    [[H_zz, .], [0, 0]] - [H_zx; R_i] (N_i'H_xx N_i)^{-1} [H_xz, R_i'].

Flat directions of its quadratic (:mod:`.schur`) are no part of N_i then but unknowns of all, behind
those of z: without curvature, with their images under R_i in the corner. None of it needs to know
what other agents' equations are: the sum travels with them.
Cost: q + m =: k, k(k + 3)/2 floats in the message that gathers the equations; 1 argmin.

Flat directions are those along which an agent's quadratic has no curvature:

    P = N'H_xx N,   P = [rest basis] diag(P_rest, 0) [rest basis]',   N a basis of ker C_i

An unpenalized intercept or a free angle has no curvature of its own: coupled rows or shared
variables must hold it. Such directions (H is semidefinite, so that they do not meet z in H either)
are not eliminated; they become unknowns that all solve for, numbered behind z. Which they are is
read off P with its entries in units of what they were before the projection, at the cut of
:mod:`ccmac.linalg.ranks`. Cost: one float an agent in the message that gathers the equations.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import rank_cut
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.equations import Kernel


@dataclass(frozen=True)
class Flat:
    """Orthonormal ``basis`` of the flat directions and ``rest``, both in coordinates of ker C_i.

    ``kept`` is the least curvature that counts, ``dropped`` the largest that does not, over the
    cut. ``first`` numbers the directions among the ``count`` of all agents.
    """

    basis: Array
    rest: Array
    kept: float = math.inf
    dropped: float = 0.0
    first: int = 0
    count: int = 0


def flat_directions(P: Array, sizes: Array) -> Flat:
    """Of a semidefinite P whose diagonal had the ``sizes`` before what it was computed from met."""
    unit = 1.0 / np.sqrt(np.where(sizes > 0, sizes, 1.0))
    values, vectors = np.linalg.eigh(unit[:, None] * P * unit)
    cut = rank_cut(P.shape) * max(1.0, float(values.max(initial=0.0)))
    count = int(np.count_nonzero(values <= cut))
    if not count:
        kept = float(values[0]) / cut if len(values) else math.inf
        return Flat(np.zeros((len(P), 0)), np.eye(len(P)), kept)
    whole, _ = np.linalg.qr(unit[:, None] * vectors[:, :count], mode="complete")
    kept = float(values[count]) / cut if count < len(values) else math.inf
    dropped = max(float(np.abs(values[:count]).max()) / cut, 0.0)
    return Flat(whole[:, :count], whole[:, count:], kept, dropped)


class Flats:
    """Of the agents owned here, numbered once the counts of all are known."""

    def __init__(self, problem: Problem, runtime: Runtime, kernels: list[Kernel]) -> None:
        self._own = []
        for kernel, (i, agent) in zip(kernels, problem.agents.items(), strict=True):
            runtime.mind_the_time()
            d = problem.d[i]
            N = kernel.basis
            H = dense(agent.objective.quadratic(d, problem.q)[0])[:d, :d]
            sizes = np.einsum("ij,ij->j", np.abs(N), np.abs(H) @ np.abs(N))
            self._own.append(flat_directions(N.T @ H @ N, sizes))
        self._owned = list(problem.agents)
        rows = [[float(flat.basis.shape[1])] for flat in self._own]
        self._sent = runtime.piggyback(np.array(rows), whole=True)

    @property
    def counts(self) -> list[int]:
        """All agents' numbers of flat directions."""
        return [int(k) for k in self._sent.value[:, 0]]

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)

    @property
    def own(self) -> list[Flat]:
        """Of the agents owned here."""
        starts = np.concatenate([[0], np.cumsum(self.counts)]).astype(int)
        return [
            Flat(f.basis, f.rest, f.kept, f.dropped, int(starts[i]), int(starts[-1]))
            for i, f in zip(self._owned, self._own, strict=True)
        ]


class LocalModel:
    """One agent's quadratic u'Hu/2 - g'u on its kernel; the images of (z, multipliers) are
    eliminated.

    ``rows`` are R_i. With ``flat`` directions z stands for (z, those of all agents), and ``along``
    takes it to x. Raises LinAlgError where the quadratic is not definite on the rest.
    """

    def __init__(
        self, H: Array, g: Array, kernel: Kernel, rows: Array, flat: Flat | None = None
    ) -> None:
        N = kernel.basis
        point = kernel.point
        self.flat = flat = (
            Flat(np.zeros((N.shape[1], 0)), np.eye(N.shape[1])) if flat is None else flat
        )
        d = len(point)
        q = len(g) - len(point)
        more = flat.count
        own = slice(q + flat.first, q + flat.first + flat.basis.shape[1])
        self.q = q + more
        self.along = np.zeros((d, self.q))
        self.along[:, own] = N @ flat.basis
        self.N = N @ flat.rest if more else N
        self.point = point
        self._own = own
        N = self.N
        self.H_xz, self.H_zz = np.zeros((N.shape[1], self.q)), np.zeros((self.q, self.q))
        self.H_xz[:, :q], self.H_zz[:q, :q] = N.T @ H[:d, d:], H[d:, d:]
        self.factor = scipy.linalg.cho_factor(N.T @ H[:d, :d] @ N) if N.shape[1] else None
        left = g[:d] - H[:d, :d] @ point
        self.g_x = N.T @ left
        self.g_z = self.along.T @ left
        self.g_z[:q] += g[d:] - H[d:, :d] @ point
        self._take(rows)

    def _take(self, rows: Array) -> None:
        self.corner = np.zeros((len(rows), self.q))
        if self.flat.count:
            self.corner[:, self._own] = rows @ self.flat.basis
            rows = rows @ self.flat.rest
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
        if self.flat.count:
            part[self.q :, : self.q] += self.corner
            part[: self.q, self.q :] += self.corner.T
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
        return np.asarray(self.point + self.N @ self.inner(z, multipliers) + self.along @ z)

    def residual(self, z: Array, multipliers: Array) -> Array:
        """This agent's part of what the equations in (z, multipliers) lack."""
        y = self.inner(z, multipliers)
        slope = self.g_z - self.H_zz @ z - self.H_xz.T @ y - self.corner.T @ multipliers
        return np.concatenate([slope, -self.rows @ y - self.corner @ z])


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
