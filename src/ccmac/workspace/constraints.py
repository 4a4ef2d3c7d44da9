"""The equations that everybody can know: coupled and shared ones on ker C, gathered once.

    T (y, z) = (sum_i A_i N_i y_i + Bbar z,  D z) = (beta, e),     x_i = C_i^+ c_i + N_i y_i

with N_i an orthonormal basis of ker C_i, Bbar = sum_i B_i, beta = sum_i b_i - A_i C_i^+ c_i. Each
agent sends the triangular factor of A_i N_i, its B_i, its part of beta and its rows of D; all rows
are brought to length one by powers of two, which changes no digit. Nothing is squared: singular
values of T are known to rounding, so that rank, least singular value, the nearest feasible point
and contradictions are computed and not estimated. Cost: one gathering of m min(m, d) + m (q + 2) +
r (q + 1) + 1 floats per agent, where that is affordable.

Where nobody's rows may be seen, sums take their place (:class:`SummedConstraints`):

    T T' = sum_i (A_i N_i)(A_i N_i)' + Bbar Bbar',    S = sum_i D_i'D_i,    t = sum_i D_i'e_i

Masked averagings show sums alone. From these all know the singular values of T squared, but for
rounding: squares below 1e-11 of the largest are zero, by convention. With S = V diag(s) V' (its
positive eigenvalues) the shared rows say the same as diag(s)^(1/2) V'z = diag(s)^(-1/2) V't.
Cost: one averaging of m(m + 1)/2 + m q + 2 m + 1 floats, and q(q + 3)/2 + 1 where there are D.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, powers
from ccmac.linalg.extended import Long, norm
from ccmac.linalg.ranks import rank_cut, redundant, row_space
from ccmac.linalg.tolerances import EPS, GRAM_RANK, RANK
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime
from ccmac.workspace.declared import CurvatureTable
from ccmac.workspace.equations import Kernel, LocalEquations

Rows = TypeVar("Rows", Array, Long)

ROWS = 1_200  # of T: one dense decomposition (a second)


def affordable(problem: Problem, table: CurvatureTable, room: int = 1) -> bool:
    """Whether T may be gathered, by sizes that all know; ``room`` > 1: nothing else would do."""
    m = problem.m
    q = problem.q
    n = len(table.d)
    d = int(table.d.max(initial=0))
    floats = m * (min(m, d) + q + 2) + int(table.r.max(initial=0)) * (q + 1)
    squares = float(np.sum((table.d + q) ** 2))  # dense kernels and Hessians
    small = floats <= room * 250_000 and max(n * floats, squares) <= 20_000_000
    # Where nothing else would do the decomposition may take a minute.
    return small and m + int(table.r.sum()) <= (ROWS if room == 1 else 4_200)


class Constraints:
    """T with its decomposition: scaled rows S T = U diag(sigma) V', cut at the rank.

    ``least`` is a lower bound of the least positive singular value of S T that counts what rounding
    and the angles of the kernels may have changed; 0 where it may be zero. ``off`` is what D (times
    ||z||) and e may be off by.
    """

    off = 0.0

    convention = f"singular values of unit rows below {RANK:.0e} of the largest are zero"

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, kernels: list[Kernel]
    ) -> None:
        self._take(problem, runtime, kernels)
        m = problem.m
        q = problem.q
        n = problem.n
        deep = int(table.r.max(initial=0))
        wide = min(m, int(table.d.max(initial=0)))
        rows = np.stack([self._message(k, wide, deep) for k in range(len(self.kernels))])
        ends = np.cumsum([m * wide, m * q, m, m, deep * q, deep])
        factors, B, beta, squares, D, e, angle = np.split(runtime.gather(rows), ends, axis=1)
        self.Bbar = np.add.reduce(B.astype(np.longdouble)).reshape(m, q)
        self._beta: Piggyback | Array = np.add.reduce(beta)
        self.angle = float(angle.max())
        counts = table.r.astype(int)
        used = np.arange(deep)[None, :] < counts[:, None]
        D = D.reshape(n, deep, q)[used]
        ends = np.cumsum(counts)
        self.rows_of = [slice(end - k, end) for end, k in zip(ends, counts, strict=True)]
        self.unit_D = powers(np.linalg.norm(D, axis=1))
        self.D = self.unit_D[:, None] * D
        self.e = self.unit_D * e.reshape(n, deep)[used]
        self.shared = row_space(self.D)
        # Rows are measured before the projection: what it cancelled must not be blown up.
        whole = np.add.reduce(squares) + np.sum(self.Bbar.astype(np.float64) ** 2, axis=1)
        self.unit = powers(np.sqrt(whole))
        size = math.hypot(norm(self.unit * np.sqrt(whole)), norm(self.D))
        many = n + m + wide + int(table.d.max(initial=0))
        side = factors.reshape(n, m, wide).transpose(1, 0, 2).reshape(m, n * wide)
        self._decompose(side[:, np.any(side, axis=0)], (4 * EPS * many + self.angle) * size)

    @cached_property
    def redundant(self) -> dict[str, Any]:
        """Rows that were left out as dependent: coupled ones, and those of D by agents."""
        m = self.problem.m
        rows = redundant(self.U)
        owners = {i: np.arange(own.start, own.stop) for i, own in enumerate(self.rows_of)}
        shared = {i: np.flatnonzero(np.isin(own + m, rows)) for i, own in owners.items()}
        return {
            "coupled": [k for k in rows if k < m],
            "shared": {str(i): found.tolist() for i, found in shared.items() if len(found)},
        }

    def _take(self, problem: Problem, runtime: Runtime, kernels: list[Kernel]) -> None:
        """The blocks of the agents owned here."""
        self.problem = problem
        self.runtime = runtime
        self.kernels = kernels
        m = problem.m
        q = problem.q
        d = problem.d.values()
        self.A = [_filled(a, m, k) for a, k in zip(problem.blocks("A"), d, strict=True)]
        self.B = [_filled(b, m, q) for b in problem.blocks("B")]
        sizes = zip(problem.blocks("C"), problem.p.values(), d, strict=True)
        self.C = [_filled(c, rows, k) for c, rows, k in sizes]
        sides = zip(problem.blocks("D"), problem.r.values(), strict=True)
        self.own_D = [_filled(block, rows, q) for block, rows in sides]

    def _message(self, k: int, wide: int, deep: int) -> Array:
        """One agent's factor, B, part of beta, squares of rows, D, e; the angle of its kernel."""
        m = self.problem.m
        kernel = self.kernels[k]
        inside = self.A[k] @ kernel.basis
        factor = np.zeros((m, wide))
        if inside.size:
            lower = np.asarray(np.linalg.qr(inside.T, mode="r")).T
            factor[:, : lower.shape[1]] = lower
        D = np.zeros((deep, self.problem.q))
        e = np.zeros(deep)
        rows = len(self.own_D[k])
        D[:rows] = self.own_D[k]
        e[:rows] = self.problem.sides("e")[k]
        squares = np.sum(self.A[k] ** 2, axis=1)
        parts = (factor, self.B[k], self._side(k), squares, D, e, [kernel.angle])
        return np.concatenate([np.ravel(part) for part in parts])

    def _side(self, k: int) -> Array:
        """One agent's part of beta."""
        return np.asarray(self.problem.sides("b")[k] - self.A[k] @ self.kernels[k].point)

    def _decompose(self, coupled: Array, slack: float) -> None:
        """``slack``: how far rounding and the kernels' angles may have moved T."""
        m, r = len(self.unit), len(self.D)
        coupled = np.hstack([coupled, self.Bbar.astype(np.float64)])
        shared = np.hstack([np.zeros((r, coupled.shape[1] - self.problem.q)), self.D])
        T = np.vstack([self.unit[:, None] * coupled, shared])
        if T.shape[0] < T.shape[1]:  # the same left vectors and singular values in a square
            T = np.asarray(np.linalg.qr(T.T, mode="r")).T
        U, s = np.linalg.svd(T)[:2] if T.size else (np.eye(m + r), np.zeros(0))
        self._cut(U, s, rank_cut(T.shape) * max(float(s.max(initial=0.0)), 1.0), slack)

    def _cut(self, U: Array, s: Array, cut: float, slack: float) -> None:
        """Left vectors and singular values (or their squares) above the cut."""
        self.rank = int(np.count_nonzero(s > cut))
        self.U = U[:, : self.rank]
        self.sigma = s[: self.rank]
        dropped = float(s[self.rank] / cut) if self.rank < len(s) and cut else 0.0
        kept = float(self.sigma[-1] / cut) if self.rank else math.inf
        self.near_cut = {"kept": kept, "dropped": max(dropped, 0.0)}
        self.least = max(float(self.sigma[-1]) - slack, 0.0) if self.rank else math.inf

    # -- right-hand sides ----------------------------------------------------------------------
    def again(self, problem: Problem, local: LocalEquations) -> Constraints:
        """The same equations with the b_i and c_i of ``problem``, which travel with a message."""
        other = copy.copy(self)
        points = np.split(local.point, np.cumsum(list(problem.d.values()))[:-1])
        pairs = zip(self.kernels, points, strict=True)
        other.problem, other.kernels = problem, [replace(k, point=p) for k, p in pairs]
        if problem.m:
            rows = [other._side(k) for k in range(len(self.kernels))]
            other._beta = self.runtime.piggyback(np.stack(rows))
        return other

    @property
    def beta(self) -> Array:
        """sum_i b_i - A_i C_i^+ c_i."""
        if isinstance(self._beta, Piggyback):
            self._beta = self._beta.value
        return self._beta

    # -- in scaled rows (coupled, then shared) -------------------------------------------------
    @property
    def right(self) -> Array:
        """The scaled right-hand side (beta, e)."""
        return np.concatenate([self.unit * self.beta, self.e])

    def inverse_gram(self, rows: Array) -> Array:
        """(S T T' S)^+ rows."""
        return np.asarray(self.U @ ((self.U.T @ rows) / self.sigma**2))

    def multipliers(self, rows: Rows) -> tuple[Rows, Rows]:
        """(coupled, shared) multipliers in the equations' own rows from those of scaled rows."""
        return self.unit * rows[: len(self.unit)], rows[len(self.unit) :]

    def own_shared(self, k: int, multipliers: Array) -> tuple[Array, Array]:
        """(multipliers of the scaled shared rows in an agent's own rows, D_i' of them)."""
        own = self.rows_of[list(self.problem.agents)[k]]
        return self.unit_D[own] * multipliers[own], self.D[own].T @ multipliers[own]

    @property
    def condition(self) -> float:
        """Of the scaled rows over their row space."""
        if not self.rank:
            return 1.0
        return float(self.sigma[0] / self.least) if self.least > 0 else math.inf


def _filled(block: object, rows: int, columns: int) -> Array:
    return np.zeros((rows, columns)) if block is None else dense(block)


class SummedConstraints(Constraints):
    """:class:`Constraints` from sums over the agents; ``D`` and ``e`` are those of the module text.

    ``misfit`` is the distance of the e_i from what any z gives.
    """

    convention = (
        f"eigenvalues of the rows' Gram matrix below {GRAM_RANK:.0e} of the largest are zero"
    )

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, kernels: list[Kernel]
    ) -> None:
        self._take(problem, runtime, kernels)
        m = problem.m
        q = problem.q
        upper = np.triu_indices(m)
        rows = np.stack([self._row(k) for k in range(len(kernels))])
        ends = np.cumsum([len(upper[0]), m, m * q, m, 1])
        gram, squares, B, beta, angle, shared = np.split(runtime.total(rows), ends)
        self.Bbar = B.reshape(m, q).astype(np.longdouble)
        self._beta = beta
        self.angle = float(angle[0])
        self._share(shared, int(table.r.sum()))
        whole = squares + np.sum(B.reshape(m, q) ** 2, axis=1)
        self.unit = powers(np.sqrt(whole))
        scaled = np.vstack([self.unit[:, None] * B.reshape(m, q), self.D])
        square = scaled @ scaled.T
        square[:m, :m] += self.unit[:, None] * _symmetric(gram, m) * self.unit
        size = float(np.sum(self.unit**2 * whole)) + float(np.trace(scaled @ scaled.T))
        many = int(table.d.max(initial=0)) + int(table.r.max(initial=0)) + m + q + problem.n
        grain = runtime.averaging.grain * (q + m * float(self.unit.max(initial=0.0)) ** 2)
        values, vectors = np.linalg.eigh(square)
        cut = GRAM_RANK * float(values.max(initial=0.0))
        self._cut(
            vectors[:, ::-1], values[::-1], cut, (16 * EPS * many + 2 * self.angle) * size + grain
        )
        self.sigma = np.sqrt(self.sigma)
        self.least = math.sqrt(self.least)

    @cached_property
    def redundant(self) -> dict[str, Any]:
        """Coupled rows that were left out as dependent, and how many shared ones."""
        rows = redundant(self.U)
        coupled = [k for k in rows if k < self.problem.m]
        return {"coupled": coupled, "shared": len(rows) - len(coupled) + self._shared_left_out}

    @property
    def independent(self) -> bool:
        """Whether the least singular value is known to be positive."""
        return self.least > 0

    def _row(self, k: int) -> Array:
        """One agent's square, squares of rows, B, part of beta, angle; D'D, D'e, e'e of unit D."""
        kernel = self.kernels[k]
        inside = self.A[k] @ kernel.basis
        parts = [
            (inside @ inside.T)[np.triu_indices(len(inside))],
            np.sum(self.A[k] ** 2, axis=1),
            self.B[k].ravel(),
            self._side(k),
            [kernel.angle],
        ]
        if "D" in self.problem.present:
            unit = self._own_unit(k)
            D = unit[:, None] * self.own_D[k]
            e = unit * self.problem.sides("e")[k]
            parts += [(D.T @ D)[np.triu_indices(D.shape[1])], D.T @ e, [e @ e]]
        return np.concatenate(parts)

    def _own_unit(self, k: int) -> Array:
        return powers(np.linalg.norm(self.own_D[k], axis=1))

    def _share(self, sums: Array, count: int) -> None:
        """D and e from the sums over the ``count`` rows of all."""
        q = self.problem.q
        if not len(sums):
            sums = np.zeros(q * (q + 3) // 2 + 1)
        S, right, squares = np.split(sums, [q * (q + 1) // 2, len(sums) - 1])
        values, vectors = np.linalg.eigh(_symmetric(S, q))
        there = values > GRAM_RANK * values.max(initial=0.0)
        root = np.sqrt(values[there])
        self._V = vectors[:, there]
        self._shared_left_out = count - len(root)
        self.D = root[:, None] * self._V.T
        self.e = (self._V.T @ right) / root
        self.unit_D = np.ones(len(root))
        self.shared = row_space(self.D)
        self.misfit = math.sqrt(max(float(squares[0]) - norm(self.e) ** 2, 0.0))
        if len(root):
            size = float(values.sum()) + math.sqrt(
                float(values.sum()) * max(float(squares[0]), 0.0)
            )
            lost = 8 * EPS * (count + q) * size + q * self.runtime.averaging.grain
            self.off = lost / float(root[0])

    def own_shared(self, k: int, multipliers: Array) -> tuple[Array, Array]:
        """D_i y, S y = D'lambda, in the agent's own rows; D_i'D_i y."""
        y = self._V @ (multipliers / np.linalg.norm(self.D, axis=1))
        own = self._own_unit(k) ** 2 * (self.own_D[k] @ y)
        return own, self.own_D[k].T @ own

    def own_misfit(self, k: int) -> Array:
        """Multipliers of an agent's own rows along e_i - D_i z at the z nearest to all of them."""
        z = self._V @ (self.e / np.linalg.norm(self.D, axis=1))
        misfit = self.problem.sides("e")[k] - self.own_D[k] @ z
        return np.asarray(self._own_unit(k) ** 2 * misfit)


def _symmetric(triangle: Array, size: int) -> Array:
    """The symmetric matrix with this upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.asarray(matrix + np.triu(matrix, 1).T)
