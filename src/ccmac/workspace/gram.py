"""The coupled equations on ker C as their sum shows them, where nobody's rows may be seen.

    T T' = sum_i (A_i N_i)(A_i N_i)' + Bbar Bbar',    Bbar = sum_i B_i

Masked averagings show sums alone. From this one all know the singular values of T squared: rounding
leaves 1e-16 of the largest square, so that what is below 1e-8 of the largest cannot be told from
zero, and the least singular value is known to that. Independent rows of a moderate condition are
proved to be independent; where they are not, ``doubt`` says so and bounds are infinite.

Of the shared rows, brought to length one by their owners, all know S = D'D and t = D'e, from which
r equations follow that say the same: with S = V diag(s) V' (its r positive eigenvalues)

    Dhat z = ehat,    Dhat = s^(1/2) V',    ehat = s^(-1/2) V't.

With S known to ``off``, some rotation of the rows D is within off / (0.9 s_r^(1/2)) of Dhat
(Procrustes: Tu and others 2016, lemma 5.4); and as D'(D z - e) = S z - t, with t known to off_t,

    ||D z - e|| <= (1 + off / s_r)^(1/2) ||Dhat z - ehat|| + (off ||z|| + off_t) / s_r^(1/2).

That is all if D has r rows. If it has more, those must depend on each other to the last digit, and
their right-hand sides as well: sums of weighted squares of (D, e) modulo two primes tell
(:func:`_exact_ranks`). Otherwise ``doubt`` says so.
Cost: one averaging of m(m + 1)/2 + 2 m q + 3 m + 2 floats, and q(q + 3)/2 + 1 where there are D;
(q + 1)(q + 2) more in another one where D has more than r rows.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, powers
from ccmac.linalg.extended import PRIMES, product_modulo, rank_modulo, residues
from ccmac.linalg.ranks import Doubt, row_space
from ccmac.linalg.tolerances import EPS
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.local import Kernel
from ccmac.workspace.reduced import Reduced


class Gram(Reduced):
    """:class:`Reduced` from sums over the agents; ``D`` and ``e`` are Dhat and ehat."""

    rounded = 2 * EPS

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, kernels: list[Kernel]
    ) -> None:
        self._take(problem, runtime, kernels)
        m, q, n = problem.m, problem.q, problem.n
        upper = np.triu_indices(m)
        rows = np.stack([self._row(k, upper) for k in range(len(kernels))])
        ends = np.cumsum([len(upper[0]), m, m * q, m * q, m, m, 2])
        gram, squares, B, sizes, beta, size_b, facts, shared = np.split(runtime.total(rows), ends)
        self.Bbar = B.reshape(m, q).astype(np.longdouble)
        self.size_B = sizes.reshape(m, q)
        self._sides = np.stack([beta, size_b])
        self.angle, self._own = float(facts[0]), Doubt(min(int(facts[1]), Doubt.OPINION))
        self._share(shared, table.r)
        whole = squares + np.sum(self.size_B**2, axis=1)
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
    def doubt(self) -> Doubt:
        """Rows that squares do not tell apart may be apart all the same."""
        return self._own if self.rank == self.problem.m + self._count else Doubt.OPINION

    def _row(self, k: int, upper: Any) -> Array:
        """One agent's square, B, part of beta, angle and doubt."""
        kernel, A, B, side = self.kernels[k], self.A[k], self.B[k], self._side(k)
        inside = A @ kernel.basis
        return np.concatenate(
            [(inside @ inside.T)[upper], np.sum(A**2, axis=1), B.ravel(), np.abs(B).ravel(), side,
             np.abs(side), [kernel.angle, float(kernel.space.doubt)], *self._squared(k)]
        )  # fmt: skip

    def _squared(self, k: int) -> list[Array]:
        """One agent's D'D, D'e and e'e of unit rows."""
        found = []
        for rows, right in self.hidden(k):
            unit = powers(np.linalg.norm(rows, axis=1))
            D, e = unit[:, None] * rows, unit * right
            found += [(D.T @ D)[np.triu_indices(D.shape[1])], D.T @ e, np.array([e @ e])]
        return found

    def hidden(self, k: int) -> list[tuple[Array, Array]]:
        """As they are."""
        i, agent = list(self.problem.agents.items())[k]
        if "D" not in self.problem.present:
            return []
        D = np.zeros((0, self.problem.q)) if agent.D is None else dense(agent.D)
        return [(D, np.zeros(self.problem.r[i]) if agent.e is None else agent.e)]

    def _share(self, told: Array, counts: Array) -> None:
        """Dhat and ehat from the sums, and how far from the truth they may be."""
        q, count = self.problem.q, int(counts.sum())
        upper = np.triu_indices(q)
        if not len(told):
            told = np.zeros(len(upper[0]) + q + 1)
        S, right, e2 = np.split(told, [len(upper[0]), len(told) - 1])
        square, grain = np.zeros((q, q)), self.runtime.averaging.grain
        square[upper] = S
        values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
        rounding = 8 * EPS * (int(counts.max(initial=0)) + q + self.problem.n)
        size2, size_e = max(float(values.sum()), 0.0), math.sqrt(max(float(e2[0]) + grain, 0.0))
        off = rounding * size2 + q * grain
        there = values > off
        least = float(values[there].min(initial=math.inf))
        root, self._V = np.sqrt(values[there]), vectors[:, there]
        self.D, self.e = root[:, None] * self._V.T, (self._V.T @ right) / root
        self.unit_D, self.shared = np.ones(len(root)), row_space(self.D)
        exactly = (len(root),) * 2
        if len(root) < count:
            own = [self.hidden(k)[0] for k in range(len(self.kernels))]
            exactly = _exact_ranks(self.runtime, list(self.problem.agents), own)
        self._count = len(root) if exactly == (len(root),) * 2 else count
        off += float(np.linalg.norm(values[~there]))
        last, self._stretch = max(least - off, 0.0), 1.0
        if len(root):
            self.off_D = off / (0.9 * math.sqrt(last)) if last > 0 else math.inf
            off_t = rounding * math.sqrt(size2) * size_e + math.sqrt(q) * grain
            self.off_e = off_t / math.sqrt(last) if last > 0 else math.inf
            self._stretch = math.sqrt(1 + off / last) if last > 0 else math.inf

    def own_shared(self, k: int, prices: Array) -> tuple[Array, Array]:
        """D_i y, S y = Dhat'prices, in the agent's own rows; D_i'D_i y."""
        y, q = self._V @ (prices / np.linalg.norm(self.D, axis=1)), self.problem.q
        D = next((rows for rows, _ in self.hidden(k)), np.zeros((0, q)))
        own = powers(np.linalg.norm(D, axis=1)) ** 2 * (D @ y)
        return own, D.T @ own

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


def _exact_ranks(
    runtime: Runtime, agents: list[int], own: list[tuple[Array, Array]]
) -> tuple[int, int]:
    """(rank of D, rank of [D e]) to the last digit, from sums of M'RM, M = [D_i e_i].

    R are diagonal weights, drawn at random modulo a prime: but for one in 10^6 draws for each of
    the two primes, M'RM has the rank of M. One averaging.
    """
    rows, size = [], own[0][0].shape[1] + 1
    upper = np.triu_indices(size)
    for i, (D, e) in zip(agents, own, strict=True):
        told = []
        for prime in PRIMES:
            M = residues(np.column_stack([D, e]), prime)
            weights = np.random.default_rng([prime, i]).integers(1, prime, (len(M), 1))
            told.append(product_modulo((weights * M % prime).T, M, prime)[upper])
        rows.append(np.concatenate(told).astype(np.float64))
    ranks = []
    for prime, part in zip(PRIMES, np.split(runtime.total(np.stack(rows)), 2), strict=True):
        square = np.zeros((size, size), dtype=np.int64)
        square[upper] = np.rint(part).astype(np.int64) % prime
        square = np.triu(square, 1).T + square
        ranks.append([rank_modulo(M, prime) for M in (square[:-1, :-1], square)])
    rank, augmented = np.max(ranks, axis=0)
    return int(rank), int(augmented)
