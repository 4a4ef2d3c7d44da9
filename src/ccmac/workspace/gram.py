"""The coupled equations on ker C as their sum shows them, where nobody's rows may be seen.

    T T' = sum_i (A_i N_i)(A_i N_i)' + Bbar Bbar',    Bbar = sum_i B_i

Masked averagings show sums alone. From this one all know the singular values of T squared, but for
rounding: squares below 1e-11 of the largest are zero, by convention, and rows that depend on others
but for singular values of 3e-6 count as dependent.

Of the shared rows, brought to length one by their owners, all know S = D'D and t = D'e, from which
r equations follow that say the same: with S = V diag(s) V' (its r positive eigenvalues)

    Dhat z = ehat,    Dhat = s^(1/2) V',    ehat = s^(-1/2) V't.

With S known to ``off``, some rotation of the rows D is within off / (0.9 s_r^(1/2)) of Dhat
(Procrustes: Tu and others 2016, lemma 5.4); and as D'(D z - e) = S z - t, with t known to off_t,

    ||D z - e|| <= (1 + off / s_r)^(1/2) ||Dhat z - ehat|| + (off ||z|| + off_t) / s_r^(1/2).

Cost: one averaging of m(m + 1)/2 + 2 m q + 3 m + 1 floats, and q(q + 3)/2 + 1 where there are D.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, powers
from ccmac.linalg.ranks import redundant, row_space
from ccmac.linalg.tolerances import EPS, GRAM_RANK
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.local import Kernel
from ccmac.workspace.reduced import Reduced


class Gram(Reduced):
    """:class:`Reduced` from sums over the agents; ``D`` and ``e`` are Dhat and ehat."""

    _stretch = 1.0  # of violations of D z = e, at most, over those of Dhat z = ehat
    convention = (
        f"eigenvalues of the rows' Gram matrix below {GRAM_RANK:.0e} of the largest are zero"
    )

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, kernels: list[Kernel]
    ) -> None:
        self._take(problem, runtime, kernels)
        m = problem.m
        q = problem.q
        n = problem.n
        upper = np.triu_indices(m)
        rows = np.stack([self._row(k, upper) for k in range(len(kernels))])
        ends = np.cumsum([len(upper[0]), m, m * q, m * q, m, m, 1])
        gram, squares, B, sizes, beta, size_b, facts, shared = np.split(runtime.total(rows), ends)
        self.Bbar = B.reshape(m, q).astype(np.longdouble)
        self.size_B = sizes.reshape(m, q)
        self._sides = np.stack([beta, size_b])
        self.angle = float(facts[0])
        self._share(shared, table.r)
        whole = squares + np.sum(B.reshape(m, q) ** 2, axis=1)  # sums are rounded once
        self.unit = powers(np.sqrt(whole))
        before = float(np.sum(self.unit**2 * whole))
        widest = int(table.d.max(initial=0)) + m + q + n
        lost = float(self.unit.max(initial=0.0)) ** 2 * m * runtime.averaging.grain
        T = np.zeros((m, m))
        T[upper] = gram
        T = self.unit[:, None] * (T + np.triu(T, 1).T) * self.unit
        scaled = self.unit[:, None] * B.reshape(m, q)
        off = (8 * EPS * widest + 2 * self.angle) * before + lost
        both = np.vstack([scaled, self.D])
        square = both @ both.T
        square[:m, :m] += T
        off += self.off_D * (2 * float(np.linalg.norm(both)) + self.off_D)
        self._known_to(square, off)
        self.least /= self._stretch

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

    def _row(self, k: int, upper: Any) -> Array:
        """One agent's square, B, part of beta, and angle."""
        kernel = self.kernels[k]
        A = self.A[k]
        B = self.B[k]
        side = self._side(k)
        inside = A @ kernel.basis
        return np.concatenate(
            [
                (inside @ inside.T)[upper],
                np.sum(A**2, axis=1),
                B.ravel(),
                np.abs(B).ravel(),
                side,
                np.abs(side),
                [kernel.angle],
                *self._squared(k),
            ]
        )

    def _squared(self, k: int) -> list[Array]:
        """One agent's D'D, D'e and e'e of unit rows."""
        found = []
        for rows, right in self.hidden(k):
            unit = powers(np.linalg.norm(rows, axis=1))
            D = unit[:, None] * rows
            e = unit * right
            found += [(D.T @ D)[np.triu_indices(D.shape[1])], D.T @ e, np.array([e @ e])]
        return found

    def hidden(self, k: int) -> list[tuple[Array, Array]]:
        """As they are."""
        i, agent = list(self.problem.agents.items())[k]
        if "D" not in self.problem.present:
            return []
        D = np.zeros((0, self.problem.q)) if agent.D is None else dense(agent.D)
        return [(D, np.zeros(self.problem.r[i]) if agent.e is None else agent.e)]

    def _share(self, sums: Array, counts: Array) -> None:
        """Dhat and ehat from the sums, and how far from the truth they may be."""
        q = self.problem.q
        upper = np.triu_indices(q)
        if not len(sums):
            sums = np.zeros(len(upper[0]) + q + 1)
        S, right, squares = np.split(sums, [len(upper[0]), len(sums) - 1])
        square = np.zeros((q, q))
        square[upper] = S
        values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
        there = values > GRAM_RANK * values.max(initial=0.0)
        self._shared_left_out = int(counts.sum()) - int(np.count_nonzero(there))
        root = np.sqrt(values[there])
        self._V = vectors[:, there]
        self.D = root[:, None] * self._V.T
        self.e = (self._V.T @ right) / root
        self.unit_D = np.ones(len(root))
        self.shared = row_space(self.D)
        if not len(root):
            return
        grain = self.runtime.averaging.grain
        rounding = 8 * EPS * (int(counts.max(initial=0)) + q + self.problem.n)
        size = max(float(values.sum()), 0.0)
        off = rounding * size + q * grain + float(np.linalg.norm(values[~there]))
        last = max(float(values[there][0]) - off, 1e-300)
        size_e = math.sqrt(max(float(squares[0]) + grain, 0.0))
        off_t = rounding * math.sqrt(size) * size_e + math.sqrt(q) * grain
        self.off_D = off / (0.9 * math.sqrt(last))
        self.off_e = off_t / math.sqrt(last)
        self._stretch = math.sqrt(1 + off / last)

    def own_shared(self, k: int, multipliers: Array) -> tuple[Array, Array]:
        """D_i y, S y = Dhat'lambda, in the agent's own rows; D_i'D_i y."""
        y = self._V @ (multipliers / np.linalg.norm(self.D, axis=1))
        q = self.problem.q
        D = next((rows for rows, _ in self.hidden(k)), np.zeros((0, q)))
        own = powers(np.linalg.norm(D, axis=1)) ** 2 * (D @ y)
        return own, D.T @ own

    def _known_to(self, square: Array, off: float) -> None:
        """Decompose S T T'S, known to ``off``."""
        values, vectors = np.linalg.eigh(square)
        values = values[::-1]
        vectors = vectors[:, ::-1]
        cut = GRAM_RANK * float(values.max(initial=0.0))
        self.rank = int(np.count_nonzero(values > cut))
        self.U = vectors[:, : self.rank]
        self.U_null = vectors[:, self.rank :]
        self.sigma = np.sqrt(values[: self.rank])
        kept = float(values[self.rank - 1] / cut) if self.rank else math.inf
        dropped = float(values[self.rank] / cut) if self.rank < len(values) and cut else 0.0
        self.near_cut = {"kept": kept, "dropped": max(dropped, 0.0)}
        self.frobenius = math.sqrt(max(float(np.trace(square)), 0.0))
        last = float(values[self.rank - 1]) if self.rank else math.inf
        self.least = math.sqrt(max(last - off, 0.0)) if self.rank else math.inf
