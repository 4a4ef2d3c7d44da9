"""The equations: as every agent sees them (coupled, own, shared), and as all may know them.

Coupled (:class:`Coupling`): execution variables are scaled per block, x = t x~, z = s z~, which
every agent does for itself; the coupled row is then H u = t A x~ + s B z~.

Own (:class:`LocalEquations`), C_i x_i = c_i, without communication: from one factorization the
agent has P_{C_i}, the projector onto Range(C_i'), and the least-norm point C_i^+ c_i;
:class:`Kernel` is what is left free.

Shared (:class:`SharedEquations`), D_i z = e_i, as one channel with consensus. Range([D; W (x) I]')
is the disagreement space plus 1 (x) Range(S_D), S_D = (1/n) sum D_i' D_i. The normalized channel is
therefore (I - Pi) on disagreement and q(S_D) S_D on the mean, one averaging per product with S_D.
Every agent first replaces D_i by orthonormal rows, which changes neither the row space nor the
solutions and leaves spec(S_D) in [0, 1].

Known to all (:class:`Constraints`): coupled and shared rows on ker C, gathered once.

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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.blocks import LocalFamily, dense, powers
from ccmac.linalg.extended import Long, norm
from ccmac.linalg.ranks import RowSpace, rank_cut, redundant, row_space
from ccmac.linalg.tolerances import EPS, GRAM_RANK, RANK
from ccmac.problem import Problem
from ccmac.runtime.base import Piggyback, Runtime
from ccmac.workspace.declared import CurvatureTable

BITS = 48  # in one float, exactly


def words(rows: NDArray[np.bool_]) -> Array:
    """Yes and no, 48 to a float."""
    count, width = rows.shape
    padded = np.zeros((count, -(-width // BITS) * BITS))
    padded[:, :width] = rows
    return np.asarray(padded.reshape(count, -1, BITS) @ np.exp2(np.arange(BITS)))


def bits(sent: Array, width: int) -> NDArray[np.bool_]:
    """What :func:`words` says."""
    whole = sent.astype(np.int64)[:, :, None] >> np.arange(BITS)
    return (whole & 1).astype(bool).reshape(len(sent), -1)[:, :width]


class RightHandSides(NamedTuple):
    """b with one row per agent; c and e flat, agent after agent. Absent ones are zero."""

    b: Array
    c: Array
    e: Array


def right_hand_sides(problem: Problem) -> RightHandSides:
    """Of the agents held here (no copies of b if no agent has one)."""
    agents = problem.agents
    b: Array = np.broadcast_to(0.0, (len(agents), problem.m))
    if any(agent.b is not None for agent in agents.values()):
        b = np.stack(problem.sides("b"))
    c, e = (np.concatenate([*problem.sides(name), np.zeros(0)]) for name in "ce")
    return RightHandSides(b, c, e)


def sizes(problem: Problem) -> dict[str, tuple[list[int], list[int]]]:
    """Rows and columns of the blocks A, B, C, D of the agents held here, absent ones too."""
    d, p, r = (list(found.values()) for found in (problem.d, problem.p, problem.r))
    m = [problem.m] * len(d)
    q = [problem.q] * len(d)
    return {"A": (m, d), "B": (m, q), "C": (p, d), "D": (r, q)}


def filled(problem: Problem, name: str) -> list[Array]:
    """Blocks as dense matrices, zeros where one is absent."""
    shapes = zip(problem.blocks(name), *sizes(problem)[name], strict=True)
    return [np.zeros((rows, columns)) if M is None else dense(M) for M, rows, columns in shapes]


def family(
    problem: Problem, name: str, ledger: Ledger, multiples: Array | None = None
) -> LocalFamily:
    """The blocks of one name over the agents that ``problem`` holds."""
    rows, columns = sizes(problem)[name]
    there = name in problem.present
    blocks = problem.blocks(name)
    return LocalFamily(name, blocks, rows, columns, ledger, present=there, multiples=multiples)


def block_families(problem: Problem, ledger: Ledger) -> dict[str, LocalFamily]:
    """The families A, B, C, D over the agents that ``problem`` holds."""
    return {name: family(problem, name, ledger) for name in "ABCD"}


class Coupling:
    """H = [A, s B] of the agents owned here, with its mean over all agents."""

    def __init__(
        self, problem: Problem, runtime: Runtime, s: float = 1.0, multiples: Array | None = None
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.s = s
        self.m = problem.m
        self.q = problem.q
        self.A = family(problem, "A", runtime.ledger)
        self.B = family(problem, "B", runtime.ledger, multiples)
        self.empty = self.A.empty and self.B.empty

    def rescaled(self, s: float) -> Coupling:
        """The same blocks under another scale of z (nothing is copied)."""
        other = copy.copy(self)
        other.s = s
        return other

    # -- means over all agents ----------------------------------------------------------------
    def contributions(
        self, x: Array | None, z: Array | None, *, with_z: bool = False
    ) -> tuple[Array, Array]:
        """What the agents put into an averaging: (H u, z); ``None`` leaves a block out.

        :meth:`Runtime.combine` turns them into common means. Without ``with_z`` the second has no
        columns. Cost: one product with each family used.
        """
        count = len(self.problem.agents)
        if x is None or self.A.empty:
            coupled = np.zeros((count, self.width))
        else:
            coupled = self.A.forward(x).reshape(count, self.m)
        if z is not None and not self.B.empty:
            self.B.add_forward(z, self.s, coupled)
        return coupled, z if with_z and z is not None else np.zeros((count, 0))

    @property
    def width(self) -> int:
        """Floats of the coupled row in a message: m, or nothing when A = B = 0."""
        return 0 if self.empty else self.m

    def product_cost(self) -> Cost:
        """Static cost of the products with both families, forward or adjoint."""
        return self.A.cost + self.B.cost

    # -- local adjoints -------------------------------------------------------------------------
    def adjoint(self, multiplier: Array, out: Array | None = None) -> tuple[Array, Array]:
        """(A_i'y, s B_i'y) for a common multiplier y; flat x part, row-per-agent z part.

        ``out`` may take the z part. Cost: one product with each family; no communication.
        """
        count = len(self.problem.agents)
        gx = self.A.adjoint_common(multiplier[0])
        gz = np.empty((count, self.q)) if out is None else out
        self.B.adjoint_common(self.s * multiplier[0], gz.reshape(-1))
        return gx, gz


def own_spaces(problem: Problem, name: str) -> list[RowSpace]:
    """Row spaces of the agents' own rows of C or D."""
    return [row_space(M) for M in filled(problem, name)]


def orthonormal_rows(name: str, spaces: list[RowSpace], ledger: Ledger, there: bool) -> LocalFamily:
    """Their bases as rows."""
    bases = [np.ascontiguousarray(space.basis.T) for space in spaces]
    ranks = [space.rank for space in spaces]
    columns = [len(space.basis) for space in spaces]
    return LocalFamily(name, bases, ranks, columns, ledger, present=there)


class LocalEquations:
    """P_C and C^+ c for the agents owned here."""

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.empty = "C" not in problem.present
        self.spaces = own_spaces(problem, "C")
        self.family = orthonormal_rows("C", self.spaces, runtime.ledger, not self.empty)
        self._take(problem)

    def _take(self, problem: Problem) -> None:
        right = problem.sides("c")
        self.right = np.concatenate([*right, np.zeros(0)])
        pairs = zip(self.spaces, right, strict=True)
        points = [space.basis @ space.coordinates(c) for space, c in pairs]
        self.point = np.concatenate([*points, np.zeros(0)])

    def again(self, problem: Problem) -> LocalEquations:
        """The same rows with the right-hand sides of ``problem``."""
        other = copy.copy(self)
        other._take(problem)
        return other

    def project(self, x: Array) -> Array:
        """P_C x, onto Range(C'). Cost: 2 C."""
        return self.family.adjoint(self.family.forward(x))

    @property
    def cost(self) -> Cost:
        """Static cost of :meth:`project`."""
        return 2 * self.family.cost

    def multipliers(self, gradient: Array) -> list[Array]:
        """kappa_i with C_i' kappa_i = -P_C gradient_i (least squares), one array per agent."""
        pieces = np.split(gradient, np.cumsum(self.family.columns)[:-1])
        pairs = zip(self.spaces, pieces, strict=True)
        return [space.multipliers(-(space.basis.T @ piece)) for space, piece in pairs]


@dataclass(frozen=True)
class Kernel:
    """One agent's ker C_i: ``basis`` N_i, the ``point`` C_i^+ c_i, and the ``angle`` (rad) by which
    rounding may have turned both.
    """

    space: RowSpace
    basis: Array
    point: Array
    angle: float

    @classmethod
    def of(cls, space: RowSpace, point: Array) -> Kernel:
        """From the row space of C_i."""
        d = len(point)
        if not space.rank:
            return cls(space, np.eye(d), point, 0.0)
        whole, _ = np.linalg.qr(space.basis, mode="complete")
        angle = 4 * EPS * (d + len(space.left)) * space.condition
        return cls(space, whole[:, space.rank :], point, angle)


def kernels_of(local: LocalEquations) -> list[Kernel]:
    """Of the agents owned here; no communication."""
    points = np.split(local.point, np.cumsum(local.family.columns)[:-1])
    return [Kernel.of(space, point) for space, point in zip(local.spaces, points, strict=True)]


class SharedEquations:
    """D_i (possibly with orthonormal rows) and e_i of the agents owned here."""

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self.runtime = runtime
        self.problem = problem
        self.q = problem.q
        self.empty = "D" not in problem.present
        self.spaces = own_spaces(problem, "D")
        self.family = orthonormal_rows("D", self.spaces, runtime.ledger, not self.empty)
        self.right = self._coordinates(problem)
        self._target: Array | Piggyback = np.zeros((1, self.q))
        self.scale = 1.0
        # Orthonormal eigenvectors spanning Range(S_D), known to all
        self.span = np.zeros((0, self.q))
        self._values = np.zeros(0)

    def _coordinates(self, problem: Problem) -> Array:
        """Right-hand sides of the orthonormal rows, flat."""
        pairs = zip(self.spaces, problem.sides("e"), strict=True)
        return np.concatenate([np.zeros(0), *(s.coordinates(e) for s, e in pairs)])

    # -- S_D -------------------------------------------------------------------------------------
    def gram_contribution(self, mean: Array) -> Array:
        """D_i' D_i mean: its average is S_D mean. Cost: 2 D."""
        count = len(self.problem.agents)
        rows = np.broadcast_to(mean, (count, self.q))
        return self.family.adjoint(self.family.forward(rows)).reshape(count, self.q)

    @property
    def target(self) -> Array:
        """mean_i D_i'e_i."""
        if isinstance(self._target, Piggyback):
            self._target = self._target.mean
        return self._target

    def _rows(self) -> Array:
        return self.family.adjoint(self.right).reshape(len(self.problem.agents), self.q)

    def prepare_target(self) -> None:
        """Average D'e once (setup)."""
        self._target = self.runtime.average(self._rows())

    def again(self, problem: Problem) -> SharedEquations:
        """The same rows with other right-hand sides; not yet sent to the others."""
        other = copy.copy(self)
        other.problem = problem
        other.right = self._coordinates(problem)
        return other

    def announce(self) -> None:
        """Send D'e along with the next message."""
        self._target = self.runtime.piggyback(self._rows())

    def copied(self) -> SharedEquations:
        """The same equations, whose span may be fixed apart (nothing is copied)."""
        return copy.copy(self)

    def at_scale(self, s: float) -> SharedEquations:
        """The same equations in z = s z~."""
        other = copy.copy(self)
        other.scale = s
        return other

    def homogeneous(self) -> SharedEquations:
        """The same equations with zero right-hand sides."""
        other = copy.copy(self)
        other._target = np.zeros((1, self.q))
        return other

    def fix_span(self, values: Array, vectors: Array) -> None:
        """The positive eigenpairs of S_D: the channel becomes an exact projection of the mean.

        No products and no rounds remain, only work on what every agent holds.
        """
        self.span = vectors
        self._values = values

    def violation(self, mean: Array) -> Array:
        """What the equations lack at a mean of the copies, in Range(S_D); work of every agent."""
        inside = (self.span @ mean[0]) @ self.span
        point = ((self.span @ self.target[0]) / self._values) @ self.span
        return np.asarray(inside - point / self.scale)[None]

    def multipliers(self, direction: Array) -> list[Array]:
        """delta_i = D_i direction in the user's rows: sum_i D_i' delta_i = n S_D direction."""
        images = self.family.forward(np.broadcast_to(direction, (len(self.problem.agents), self.q)))
        pieces = np.split(images, np.cumsum(self.family.rows)[:-1])
        return [space.multipliers(v) for space, v in zip(self.spaces, pieces, strict=True)]


# -- known to all ----------------------------------------------------------------------------------
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
        self.A, self.B, self.C, self.own_D = (filled(problem, name) for name in "ABCD")

    def _message(self, k: int, wide: int, deep: int) -> Array:
        """One agent's factor, B, part of beta, squares of rows, D, e; the angle of its kernel."""
        kernel = self.kernels[k]
        inside = self.A[k] @ kernel.basis
        factor = np.asarray(np.linalg.qr(inside.T, mode="r")).T if inside.size else inside[:, :0]
        lack = deep - len(self.own_D[k])
        parts = (
            np.pad(factor, ((0, 0), (0, wide - factor.shape[1]))),
            self.B[k],
            self._side(k),
            np.sum(self.A[k] ** 2, axis=1),
            np.pad(self.own_D[k], ((0, lack), (0, 0))),
            np.pad(self.problem.sides("e")[k], (0, lack)),
            [kernel.angle],
        )
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
        square[:m, :m] += self.unit[:, None] * symmetric(gram, m) * self.unit
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
        values, vectors = np.linalg.eigh(symmetric(S, q))
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


def symmetric(triangle: Array, size: int) -> Array:
    """The symmetric matrix with this upper triangle."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.asarray(matrix + np.triu(matrix, 1).T)
