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

Rows that squares do not tell from dependent ones must depend on the others to the last digit, and
their right-hand sides as well: :class:`Residues` tells. Otherwise ``doubt`` says so.
Cost: one averaging of m(m + 1)/2 + 2 m q + 3 m + 2 floats, and q(q + 3)/2 + 1 where there are D;
m(m + 2 q + 3) + (q + 1)(q + 2) + 2 more in another one where rows seem to depend on others.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, powers
from ccmac.linalg.extended import (
    PRIMES,
    image_of_kernel,
    product_modulo,
    rank_modulo,
    residues,
    side_on_kernel,
)
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
        m = problem.m
        q = problem.q
        n = problem.n
        upper = np.triu_indices(m)
        rows = np.stack([self._row(k, upper) for k in range(len(kernels))])
        ends = np.cumsum([len(upper[0]), m, m * q, m * q, m, m, 2])
        gram, squares, B, sizes, beta, size_b, facts, shared = np.split(runtime.total(rows), ends)
        self.Bbar = B.reshape(m, q).astype(np.longdouble)
        self.size_B = sizes.reshape(m, q)
        self._sides = np.stack([beta, size_b])
        self.angle, self._own = float(facts[0]), Doubt(min(int(facts[1]), Doubt.OPINION))
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
        self.residues: Residues | None = None
        if self._own or self.rank < m + int(table.r.sum()):
            self.residues = Residues(runtime, [self._exact_blocks(k) for k in range(len(kernels))])

    @cached_property
    def doubt(self) -> Doubt:
        """Rows that squares do not tell apart may be apart all the same."""
        exact = self.residues
        found = len(self.D)
        if exact is None:
            return Doubt.NONE
        if exact.shared != (found, found) or exact.rank > self.rank or exact.agree is False:
            return Doubt.OPINION
        if exact.agree is None and self.rank < self.problem.m + found:
            return Doubt.OPINION
        return self._own if exact.excess else Doubt.NONE

    @property
    def independent(self) -> bool:
        """Whether rows are known to be independent, but for those that depend exactly."""
        return self.doubt < Doubt.OPINION and self.least > 0

    @cached_property
    def agree(self) -> bool | None:
        """Whether the equations have a solution, to the last digit; None where nobody asked."""
        return None if self.residues is None else self.residues.agree

    def _exact_blocks(self, k: int) -> Blocks:
        """(agent, excess rank of C_i, its blocks, its right-hand sides)."""
        i, agent = list(self.problem.agents.items())[k]
        [(D, e)] = self.hidden(k) or [(np.zeros((0, self.problem.q)), np.zeros(0))]
        b = np.zeros(self.problem.m) if agent.b is None else agent.b
        c = np.zeros(len(self.C[k])) if agent.c is None else agent.c
        rows = self.A[k], self.B[k], self.C[k], D
        return i, self.kernels[k].space.excess, rows, (b, c, e)

    def _row(self, k: int, upper: Any) -> Array:
        """One agent's square, B, part of beta, angle and doubt."""
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
                [kernel.angle, float(kernel.space.doubt)],
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

    def _share(self, told: Array, counts: Array) -> None:
        """Dhat and ehat from the sums, and how far from the truth they may be."""
        q = self.problem.q
        upper = np.triu_indices(q)
        if not len(told):
            told = np.zeros(len(upper[0]) + q + 1)
        S, right, e2 = np.split(told, [len(upper[0]), len(told) - 1])
        square = np.zeros((q, q))
        grain = self.runtime.averaging.grain
        square[upper] = S
        values, vectors = np.linalg.eigh(square + np.triu(square, 1).T)
        rounding = 8 * EPS * (int(counts.max(initial=0)) + q + self.problem.n)
        size2 = max(float(values.sum()), 0.0)
        size_e = math.sqrt(max(float(e2[0]) + grain, 0.0))
        off = rounding * size2 + q * grain
        there = values > off
        least = float(values[there].min(initial=math.inf))
        root = np.sqrt(values[there])
        self._V = vectors[:, there]
        self.D = root[:, None] * self._V.T
        self.e = (self._V.T @ right) / root
        self.unit_D, self.shared = np.ones(len(root)), row_space(self.D)
        off += float(np.linalg.norm(values[~there]))
        last = max(least - off, 0.0)
        self._stretch = 1.0
        if len(root):
            self.off_D = off / (0.9 * math.sqrt(last)) if last > 0 else math.inf
            off_t = rounding * math.sqrt(size2) * size_e + math.sqrt(q) * grain
            self.off_e = off_t / math.sqrt(last) if last > 0 else math.inf
            self._stretch = math.sqrt(1 + off / last) if last > 0 else math.inf

    def own_shared(self, k: int, prices: Array) -> tuple[Array, Array]:
        """D_i y, S y = Dhat'prices, in the agent's own rows; D_i'D_i y."""
        y = self._V @ (prices / np.linalg.norm(self.D, axis=1))
        q = self.problem.q
        D = next((rows for rows, _ in self.hidden(k)), np.zeros((0, q)))
        own = powers(np.linalg.norm(D, axis=1)) ** 2 * (D @ y)
        return own, D.T @ own

    def _known_to(self, square: Array, off: float) -> None:
        """Decompose S T T'S, known to ``off``."""
        values, vectors = np.linalg.eigh(square)
        values = values[::-1]
        vectors = vectors[:, ::-1]
        self.rank = int(np.count_nonzero(values > off))
        self.U = vectors[:, : self.rank]
        self.U_null = vectors[:, self.rank :]
        self.sigma = np.sqrt(values[: self.rank])
        kept = float(values[self.rank - 1] / off) if self.rank and off > 0 else math.inf
        self.near_cut = {"kept": kept, "dropped": float(self.rank < len(values))}
        self.frobenius = math.sqrt(max(float(np.trace(square)), 0.0))
        last = float(values[self.rank - 1]) if self.rank else math.inf
        self.least = math.sqrt(max(last - off, 0.0)) if self.rank else math.inf


Blocks = tuple[int, int, tuple[Array, Array, Array, Array], tuple[Array, Array, Array]]


class Residues:
    """Ranks and agreement of the equations to the last digit, from sums modulo two primes.

    With F_i a basis of A_i ker C_i, M_i = [D_i e_i] and diagonal weights W_i, R_i that are drawn at
    random modulo a prime, sum F_i W_i F_i' has the range of all F_i and sum M_i'R_i M_i the rows of
    all M_i, but for one in 10^6 draws for each of the two primes. So rank T is that of

        [sum F W F'  sum B; 0  sum D'R D],

    and with D z = e solvable, T (y, z) = (beta, e) is so if (sum beta, sum D'R e) adds nothing.
    ``excess`` is by how much the ranks of the C_i exceed those decomposed. One averaging.
    """

    def __init__(self, runtime: Runtime, blocks: list[Blocks]) -> None:
        _, _, (A, B, _, _), _ = blocks[0]
        self.m = len(A)
        self.q = B.shape[1]
        self._wide, self._deep = np.triu_indices(self.m), np.triu_indices(self.q + 1)
        *parts, numbers = np.split(
            runtime.total(np.stack([self._told(*block) for block in blocks])),
            np.cumsum([self._width, self._width]),
        )
        self.excess, unknown = (int(v) for v in np.rint(numbers))
        pairs = zip(PRIMES, parts, strict=True)
        found = np.max([self._ranks(np.rint(v).astype(np.int64), p) for p, v in pairs], axis=0)
        self.rank, whole, *shared = (int(v) for v in found)
        self.shared = shared[0], shared[1]
        agree = self.rank == whole and shared[0] == shared[1]
        self.agree: bool | None = None if unknown else agree

    @property
    def _width(self) -> int:
        """Floats for one prime."""
        return int(len(self._wide[0]) + self.m * (self.q + 1) + len(self._deep[0]))

    def _told(
        self, i: int, excess: int, rows: tuple[Array, ...], sides: tuple[Array, ...]
    ) -> Array:
        """One agent's part of the sums."""
        (A, B, C, D), (b, c, e) = rows, sides
        told: list[Any] = []
        unknown = False
        for prime in PRIMES:
            random = np.random.default_rng([prime, i])
            F = image_of_kernel(A, C, prime)
            M = residues(np.column_stack([D, e]), prime)
            for basis, upper in ((F.T, self._wide), (M, self._deep)):
                weights = random.integers(1, prime, (len(basis), 1))
                told.append(product_modulo((weights * basis % prime).T, basis, prime)[upper])
            none, *side = side_on_kernel(A, C, (b, c), prime)
            unknown = unknown or bool(none)
            told += [residues(B, prime).ravel(), side]
        return np.concatenate([*told, [excess, unknown]]).astype(np.float64)

    def _ranks(self, part: Any, prime: int) -> tuple[int, ...]:
        """(rank T, with the right-hand sides, rank D, rank [D e]) modulo the prime."""
        m = self.m
        q = self.q
        wide = len(self._wide[0])
        deep = len(self._deep[0])
        F = np.zeros((m, m), dtype=np.int64)
        M = np.zeros((q + 1, q + 1), dtype=np.int64)
        F[self._wide], M[self._deep] = part[:wide], part[wide : wide + deep]
        F = F + np.triu(F, 1).T
        M = M + np.triu(M, 1).T
        B, side = np.split(part[wide + deep :], [m * q])
        upper = np.hstack([F, B.reshape(m, q), side[:, None]])
        lower = np.hstack([np.zeros((q, m), dtype=np.int64), M[:q]])
        T = np.vstack([upper, lower]) % prime
        tried = T[:, :-1], T, M[:q, :q] % prime, M % prime
        return tuple(rank_modulo(v, prime) for v in tried)
