"""The equations that everybody can know: coupled and shared ones on ker C, gathered once.

    T (y, z) = (sum_i A_i N_i y_i + Bbar z,  D z) = (beta, e),     x_i = C_i^+ c_i + N_i y_i

with N_i an orthonormal basis of ker C_i, Bbar = sum_i B_i, beta = sum_i b_i - A_i C_i^+ c_i. Each
agent sends the triangular factor of A_i N_i, its B_i, its part of beta and its rows of D; all rows
are brought to length one by powers of two, which changes no digit. Nothing is squared: singular
values of T are known to rounding, so that rank, least singular value, the nearest feasible point
and contradictions are computed and not estimated. Cost: one gathering of l min(l, d) + l (q + 2) +
r (q + 1) floats per agent, where that is affordable; l is m, or the longest support where an agent
has few rows (:mod:`ccmac.workspace.coupling`).

Where nobody's rows may be seen, sums take their place (:class:`SummedConstraints`):

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

import copy
import math
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, powers
from ccmac.linalg.extended import EPS_LONG, Long, norm
from ccmac.linalg.ranks import rank_cut, redundant, row_space
from ccmac.linalg.tolerances import EPS, GRAM_RANK, RANK
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime
from ccmac.workspace.coupling import Packing, Supports
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.local import Kernel, LocalEquations

Rows = TypeVar("Rows", Array, Long)

FLOATS = 250_000  # per agent, in one message (2 MB)
ALL_FLOATS = 20_000_000  # of all agents, kept by everybody
SQUARES = 20_000_000  # sum of (d_i + q)^2: dense kernels and Hessians
ROWS = 1_200  # of T: one dense decomposition (a second); with inequalities and bounds
MANY = 4_200  # as many (a minute): nothing else would do


def affordable(
    problem: Problem, table: CurvatureTable, room: int = 1, supports: Supports | None = None
) -> bool:
    """Whether T may be gathered, by sizes that all know; ``room`` > 1: nothing else would do."""
    m = problem.m
    q = problem.q
    r = table.r
    d = int(table.d.max(initial=0))
    n = len(table.d)
    length = Packing(supports, n, m).length
    floats = length * (min(length, d) + q + 1) + int(r.max(initial=0)) * (q + 1)
    squares = float(np.sum((table.d + q) ** 2))
    small = floats <= room * FLOATS and n * floats <= ALL_FLOATS and squares <= SQUARES
    return small and m + int(r.sum()) <= (ROWS if room == 1 else MANY)


class Constraints:
    """T with its decomposition: scaled rows S T = U diag(sigma) V', cut at the rank.

    ``least`` is a lower bound of the least positive singular value of S T that counts what rounding
    and the angles of the kernels may have changed; 0 where it may be zero. ``off_D``
    and ``off_e`` are what D (its norm) and e may be off by.
    """

    off_D = 0.0
    off_e = 0.0
    convention = f"singular values of unit rows below {RANK:.0e} of the largest are zero"

    def __init__(
        self,
        problem: Problem,
        runtime: Runtime,
        table: CurvatureTable,
        kernels: list[Kernel],
        supports: Supports | None = None,
    ) -> None:
        self._take(problem, runtime, kernels)
        self.packing = Packing(supports, runtime.n, problem.m)
        m = problem.m
        q = problem.q
        length = self.packing.length
        deep = int(table.r.max(initial=0))
        wide = min(length, int(table.d.max(initial=0)))
        rows = np.stack([self._message(k, wide, deep) for k in range(len(self.kernels))])
        gathered = runtime.gather(rows)
        ends = np.cumsum([length * wide, length * q, length, length, deep * q, deep])
        factors, B, beta, squares, D, e, facts = np.split(gathered, ends, axis=1)
        unpacked = self.packing.unpacked
        factors = unpacked(factors, wide)
        B = unpacked(B, q)
        squares = unpacked(squares)
        beta = unpacked(beta) if not facts[:, 1:].any() else self._all_sides()
        self.Bbar = np.add.reduce(B.astype(np.longdouble))
        self.size_B = np.add.reduce(np.abs(B))  # the sum may cancel
        self._sides: Piggyback | Array = np.stack(
            [np.add.reduce(beta), np.add.reduce(np.abs(beta))]
        )
        self.angle = float(facts[:, 0].max())
        counts = table.r.astype(int)
        n = len(table.r)
        used = np.arange(deep)[None, :] < counts[:, None]
        D = D.reshape(n, deep, q)[used]
        e = e.reshape(n, deep)[used]
        ends = np.cumsum(counts)
        self.rows_of = [slice(end - k, end) for end, k in zip(ends, counts, strict=True)]
        unit = powers(np.linalg.norm(D, axis=1))
        self.D = unit[:, None] * D
        self.e = unit * e
        self.unit_D = unit
        self.shared = row_space(self.D)
        # Rows are measured before the projection: what it cancelled must not be blown up.
        whole = np.add.reduce(squares) + np.sum(self.Bbar.astype(np.float64) ** 2, axis=1)
        self.unit = powers(np.sqrt(whole))
        before = math.hypot(float(np.linalg.norm(self.unit * np.sqrt(whole))), norm(self.D))
        rounding = 4 * EPS * (n + m + wide + int(table.d.max(initial=0))) * before
        rounding += n * EPS_LONG * norm(self.unit[:, None] * self.size_B)
        self._decompose(factors, rounding + self.angle * before)

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
        own = zip(problem.blocks("C"), problem.p.values(), d, strict=True)
        self.C = [_filled(c, rows, k) for c, rows, k in own]

    def _message(self, k: int, wide: int, deep: int) -> Array:
        """One agent's factor, B, part of beta, rows of D; the angle of its kernel."""
        problem = self.problem
        kernel = self.kernels[k]
        i = list(problem.agents)[k]
        agent = problem.agents[i]
        q = problem.q
        packed = self.packing.packed
        factor = self.packing.factor
        side = self._side(k)
        D = np.zeros((deep, q))
        e = np.zeros(deep)
        if agent.D is not None:
            D[: problem.r[i]] = dense(agent.D)
            if agent.e is not None:
                e[: problem.r[i]] = agent.e
        return np.concatenate(
            [
                factor(self.A[k] @ kernel.basis, i, wide),
                packed(self.B[k], i),
                packed(side, i),
                packed(np.sum(self.A[k] ** 2, axis=1), i),
                D.ravel(),
                e,
                [kernel.angle],
                *([] if self.packing.supports is None else [[self.packing.outside(side, i)]]),
            ]
        )

    def _side(self, k: int) -> Array:
        """One agent's part of beta."""
        agent = list(self.problem.agents.values())[k]
        kernel = self.kernels[k]
        return np.asarray(_side(agent.b, self.problem.m) - self.A[k] @ kernel.point)

    def _all_sides(self) -> Array:
        """The agents' parts of beta where somebody's lies in rows of others: one averaging."""
        return self.runtime.gather(np.stack([self._side(k) for k in range(len(self.kernels))]))

    def _decompose(self, factors: Array, slack: float) -> None:
        """``slack``: how far rounding and the kernels' angles may have moved T."""
        (n, m, wide), (r, q) = factors.shape, self.D.shape
        side = factors.transpose(1, 0, 2).reshape(m, n * wide)
        coupled = np.hstack([side[:, np.any(side, axis=0)], self.Bbar.astype(np.float64)])
        shared = np.hstack([np.zeros((r, coupled.shape[1] - q)), self.D])
        T = np.vstack([self.unit[:, None] * coupled, shared])
        if T.shape[0] < T.shape[1]:  # the same left vectors and singular values in a square
            T = np.asarray(np.linalg.qr(T.T, mode="r")).T
        U, s = np.linalg.svd(T)[:2] if T.size else (np.eye(m + r), np.zeros(0))
        top = float(s[0]) if s.size else 0.0
        cut = rank_cut(T.shape) * max(top, 1.0)
        self.rank = int(np.count_nonzero(s > cut)) if top > 0 else 0
        self.U = U[:, : self.rank]
        self.U_null = U[:, self.rank :]
        self.sigma = s[: self.rank]
        dropped = float(s[self.rank] / cut) if self.rank < len(s) and cut else 0.0
        kept = float(self.sigma[-1] / cut) if self.rank else np.inf
        self.near_cut = {"kept": kept, "dropped": dropped}
        self.frobenius = float(np.linalg.norm(T))
        self.least = max(float(self.sigma[-1]) - slack, 0.0) if self.rank else np.inf

    # -- right-hand sides ----------------------------------------------------------------------
    def again(self, problem: Problem, local: LocalEquations) -> Constraints:
        """The same equations with the b_i and c_i of ``problem``, which travel with a message."""
        other = copy.copy(self)
        points = np.split(local.point, np.cumsum(list(problem.d.values()))[:-1])
        pairs = zip(self.kernels, points, strict=True)
        other.problem, other.kernels = problem, [replace(k, point=p) for k, p in pairs]
        rows = []
        for A, kernel, agent in zip(self.A, other.kernels, problem.agents.values(), strict=True):
            beta = (0.0 if agent.b is None else agent.b) - A @ kernel.point
            rows.append(np.append(beta, np.abs(beta)))
        if problem.m:
            other._sides = self.runtime.piggyback(np.stack(rows))
        return other

    def _known(self) -> Array:
        if isinstance(self._sides, Piggyback):
            self._sides = self._sides.value.reshape(2, -1)
        return self._sides

    @property
    def beta(self) -> Array:
        """sum_i b_i - A_i C_i^+ c_i."""
        return np.asarray(self._known()[0])

    @property
    def size_b(self) -> Array:
        """The sum of their sizes."""
        return np.asarray(self._known()[1])

    @property
    def scale(self) -> Array:
        """What violations of the coupled unit rows are measured by: max(1, right-hand side)."""
        return np.maximum(1.0, np.abs(self.unit * self.beta))

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

    def hidden(self, k: int) -> list[tuple[Array, Array]]:
        """An agent's rows of D and e, where the others do not know them."""
        return []

    def by_agent(self, multipliers: Array) -> list[Array]:
        """Multipliers of the scaled shared rows in every agent's own rows."""
        return [self.unit_D[own] * multipliers[own] for own in self.rows_of]

    def own_shared(self, k: int, multipliers: Array) -> tuple[Array, Array]:
        """(multipliers of the scaled shared rows in an agent's own rows, D_i' of them)."""
        own = self.rows_of[list(self.problem.agents)[k]]
        return self.unit_D[own] * multipliers[own], self.D[own].T @ multipliers[own]

    @property
    def condition(self) -> float:
        """Of the scaled rows over their row space."""
        if not self.rank:
            return 1.0
        return float(self.sigma[0] / self.least) if self.least > 0 else np.inf


def _side(right: Array | None, size: int) -> Array:
    return np.zeros(size) if right is None else np.asarray(right)


def _filled(block: object, rows: int, columns: int) -> Array:
    return np.zeros((rows, columns)) if block is None else dense(block)


class SummedConstraints(Constraints):
    """:class:`Constraints` from sums over the agents; ``D`` and ``e`` are Dhat and ehat."""

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
