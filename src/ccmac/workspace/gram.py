"""The coupled equations on ker C as their sum shows them, where nobody's rows may be seen.

    T T' = sum_i (A_i N_i)(A_i N_i)' + Bbar Bbar',    Bbar = sum_i B_i

Masked averagings show sums alone. From this one all know the singular values of T squared: rounding
leaves 1e-16 of the largest square, so that what is below 1e-8 of the largest cannot be told from
zero, and the least singular value is known to that. Independent rows of a moderate condition are
proved to be independent; where they are not, ``doubt`` says so and bounds are infinite. Shared
equations D would have to be squared without knowing their rows; there is no such form.
Cost: one averaging of m(m + 1)/2 + 2 m q + 3 m + 2 floats.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.ranks import Doubt, row_space
from ccmac.linalg.tolerances import EPS
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.masked import Masked
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.reduced import Kernel, Reduced, affordable, powers


def squarable(problem: Problem, runtime: Runtime, table: CurvatureTable) -> bool:
    """Whether rows are masked, few, and none of them shared."""
    masked = isinstance(runtime.averaging, Masked) and "D" not in problem.present
    return masked and affordable(problem, table)


class Gram(Reduced):
    """:class:`Reduced` without shared rows, from sums over the agents."""

    rounded = 2 * EPS

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, kernels: list[Kernel]
    ) -> None:
        self._take(problem, runtime, kernels)
        m, q, n = problem.m, problem.q, problem.n
        upper = np.triu_indices(m)
        rows = np.stack([self._row(k, upper) for k in range(len(kernels))])
        ends = np.cumsum([len(upper[0]), m, m * q, m * q, m, m])
        gram, squares, B, sizes, beta, size_b, facts = np.split(runtime.total(rows), ends)
        self.Bbar = B.reshape(m, q).astype(np.longdouble)
        self.size_B = sizes.reshape(m, q)
        self._sides = np.stack([beta, size_b])
        self.angle, self._own = float(facts[0]), Doubt(min(int(facts[1]), Doubt.OPINION))
        self.D, self.e, self.unit_D = np.zeros((0, q)), np.zeros(0), np.zeros(0)
        self.rows_of, self.shared = [slice(0, 0)] * n, row_space(self.D)
        whole = squares + np.sum(self.size_B**2, axis=1)
        self.unit = powers(np.sqrt(whole))
        before = float(np.sum(self.unit**2 * whole))
        widest = int(table.d.max(initial=0)) + m + q + n
        lost = float(self.unit.max(initial=0.0)) ** 2 * m * runtime.averaging.grain
        T = np.zeros((m, m))
        T[upper] = gram
        T = self.unit[:, None] * (T + np.triu(T, 1).T) * self.unit
        scaled = self.unit[:, None] * B.reshape(m, q)
        self._known_to(T + scaled @ scaled.T, (8 * EPS * widest + 2 * self.angle) * before + lost)

    @cached_property
    def doubt(self) -> Doubt:
        """Rows that squares do not tell apart may be apart all the same."""
        return self._own if self.rank == self.problem.m else Doubt.OPINION

    def _row(self, k: int, upper: Any) -> Array:
        """One agent's square, B, part of beta, angle and doubt."""
        kernel, A, B, side = self.kernels[k], self.A[k], self.B[k], self._side(k)
        inside = A @ kernel.basis
        return np.concatenate(
            [(inside @ inside.T)[upper], np.sum(A**2, axis=1), B.ravel(), np.abs(B).ravel(), side,
             np.abs(side), [kernel.angle, float(kernel.space.doubt)]]
        )  # fmt: skip

    def _known_to(self, square: Array, off: float) -> None:
        """Decompose S T T'S, known to ``off``."""
        values, vectors = np.linalg.eigh(square)
        values, vectors = values[::-1], vectors[:, ::-1]
        self.rank = int(np.count_nonzero(values > off))
        self.U, self.U_null = vectors[:, : self.rank], vectors[:, self.rank :]
        self.sigma = np.sqrt(values[: self.rank])
        kept = float(values[self.rank - 1] / off) if self.rank and off > 0 else math.inf
        self.near_cut = {"kept": kept, "dropped": float(self.rank < len(values))}
        self.frobenius = math.sqrt(max(float(np.trace(square)), 0.0))
        last = float(values[self.rank - 1]) if self.rank else math.inf
        self.least = math.sqrt(max(last - off, 0.0)) if self.rank else math.inf
