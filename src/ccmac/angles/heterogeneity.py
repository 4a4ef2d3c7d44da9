"""The cross angle from an m-dimensional problem, for any CC-MAC instance.

Row space of K_1, seen through h in R^m:  g(h) = (P_{Ker C_i} A_i' h, B_i' h)_i; the rest of it is
Range(C'), orthogonal to everything in K_2. The row space of K_2 is all disagreement together with
1 (x) Range(S_D). With R = Range(S_D), N its complement and Bm the mean of the B_i,

    H_sin = sum_i A_i P_{Ker C_i} A_i' + n Bm P_N Bm'       = ||g(h)||^2 outside Range(K_2')
    H_cos = sum_i (B_i - Bm)(B_i - Bm)' + n Bm P_R Bm'      = ||g(h)||^2 inside it

so the squared cosines are the eigenvalues of (H_cos, H_sin + H_cos), and eigenvalue one marks the
common directions. With C = D = 0 this is Proposition heterogeneity (H_cos = H_het, H_sin + H_cos =
H_0). Gram matrices would square the angles, so factors are used throughout: agent by agent, each
block is folded into a triangle of at most m rows, and the angles are the sines and cosines of a
CS decomposition. Cost: (d + nq) m^2 operations, m^2 memory; no n q-sized matrix.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from ccmac.angles.principal import NO_ANGLES, Angles, paired
from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import dense, multiply
from ccmac.linalg.ranks import numerical_rank, row_space
from ccmac.problem import Problem

CHUNK = 4096


@dataclass(frozen=True)
class Factors:
    """Triangles with H_sin = S'S, sum of squared deviations = T'T, n Bm P_R Bm' = Z'Z.

    ``lengths`` are the lengths of the rows of the coupled equation before any projection, and
    ``singular`` the singular values of the three together: n lambda(S_HC) = singular^2. ``back``
    maps a reduced h to R^m when there were more equations than unknowns.
    """

    S: Array
    T: Array
    Z: Array
    lengths: Array
    singular: Array
    rank_C: int
    rank_D: int
    back: Callable[[Array], Array]


@dataclass(frozen=True)
class CoupledAngles:
    """Angles of the coupled part with a direction h (column) for each, its rank and condition.

    ``least`` is the least singular value of the coupled rows, to all digits however uneven they
    are, when they are independent (see :func:`ccmac.linalg.ranks.squared_range`).
    """

    angles: Angles
    rank: int
    condition: float
    directions: Array
    least: float


def block_sum(blocks: Iterable[Any]) -> Any:
    """The sum of the blocks that are not None, sparse when all are; None without any."""
    present = [b for b in blocks if b is not None]
    if not all(is_sparse(b) for b in present):
        present = [dense(b) for b in present]
    return reduce(operator.add, present) if present else None


def mean_block(problem: Problem) -> Any:
    """Bm = (1/n) sum_i B_i; None when B = 0."""
    total = block_sum(problem.blocks("B"))
    return None if total is None else total / problem.n


def shared_basis(problem: Problem) -> Array:
    """Orthonormal basis of Range(S_D) = sum_i Range(D_i')."""
    present = [b for b in problem.blocks("D") if b is not None and b.shape[0]]
    if not present:
        return np.zeros((problem.q, 0))
    return row_space(np.vstack([dense(b) for b in present])).basis


def factors(problem: Problem) -> Factors:
    """Fold every agent's blocks into the triangles."""
    n = problem.n
    m = problem.m
    q = problem.q
    mean = mean_block(problem)
    R = shared_basis(problem)
    columns = sum(problem.d.values()) + (n + 1) * q
    compress = m > columns
    S = Triangle(m, compress)
    T = Triangle(m, compress)
    Z = Triangle(m, compress)
    squares = np.zeros(m)
    rank_C = 0
    for agent in problem.agents.values():
        C = None if agent.C is None or not agent.C.shape[0] else row_space(dense(agent.C)).basis
        rank_C += 0 if C is None else C.shape[1]
        if agent.A is not None:
            squares += squared_lengths(agent.A)
            if C is None:
                S.add(agent.A)
            else:
                A = dense(agent.A)
                S.add(A - (A @ C) @ C.T)
        if agent.B is not None:
            squares += squared_lengths(agent.B)
        if mean is not None and n > 1:
            T.add(difference(agent.B, mean))
    if mean is not None:
        dense_mean = np.sqrt(n) * dense(mean)
        inside = dense_mean @ R
        Z.add(inside)
        S.add(dense_mean - inside @ R.T if R.shape[1] else dense_mean)
    lengths = np.sqrt(squares)
    F_S = S.rows()
    F_T = T.rows()
    F_Z = Z.rows()
    whole = np.vstack([F_S, F_T, F_Z])
    singular = sla.svdvals(whole) if whole.size else np.zeros(0)
    rank_D = int(R.shape[1])
    if not compress:
        return Factors(F_S, F_T, F_Z, lengths, singular, rank_C, rank_D, lambda h: h)
    scale = np.where(lengths > 0, lengths, 1.0)
    Q, upper = np.linalg.qr((whole / scale).T)
    F_S, F_T, F_Z = np.split(upper.T, [len(F_S), len(F_S) + len(F_T)])
    unit = np.ones(upper.shape[0])
    return Factors(F_S, F_T, F_Z, unit, singular, rank_C, rank_D, lambda h: (Q @ h) / scale)


def coupled_angles(pieces: Factors, *, deviations: bool = True) -> CoupledAngles:
    """CS decomposition of the factors; without the deviations it is the rebalanced problem's."""
    m = len(pieces.lengths)
    cosine_rows = np.vstack([pieces.T, pieces.Z]) if deviations else pieces.Z
    scale = np.where(pieces.lengths > 0, pieces.lengths, 1.0)
    whole = np.vstack([pieces.S, cosine_rows]) / scale
    empty = CoupledAngles(NO_ANGLES, 0, 1.0, np.zeros((m, 0)), 0.0)
    if whole.size == 0:
        return empty
    left, singular, right = np.linalg.svd(whole, full_matrices=False)
    # Rows had unit length before the projections, so what a projection cancelled is seen as zero.
    rank = numerical_rank(singular, whole.shape, scale=1.0)
    if rank == 0:
        return empty
    sines, by_sine = _descending(left[: len(pieces.S), :rank])
    cosines, by_cosine = _descending(left[len(pieces.S) :, :rank])
    angles = paired(sines, cosines)
    # Ascending angles: the smallest sines come last in by_sine, the largest cosines first.
    small = angles.sines < angles.cosines
    vectors = np.where(small[:, None], by_sine[::-1], by_cosine)
    combination = (right[:rank].T / singular[:rank]) / scale[:, None]
    condition = float(singular[0] / singular[rank - 1])
    least = 1 / np.linalg.norm(combination, 2)
    return CoupledAngles(angles, rank, condition, combination @ vectors.T, float(least))


def agent_shares(problem: Problem, h: Array) -> tuple[tuple[float, ...], float]:
    """Shares of ||P_V g(h)||^2: each agent's ||(B_i - Bm)' h||^2, and D's n ||P_R Bm' h||^2."""
    mean = mean_block(problem)
    if mean is None:
        return (0.0,) * problem.n, 0.0
    middle = multiply(mean, h, adjoint=True)
    energy = []
    for block in problem.blocks("B"):
        own = 0.0 if block is None else multiply(block, h, adjoint=True)
        energy.append(float(np.sum((own - middle) ** 2)))
    shared = problem.n * float(np.sum((shared_basis(problem).T @ middle) ** 2))
    total = sum(energy) + shared
    return tuple(e / (total or 1.0) for e in energy), shared / (total or 1.0)


def heterogeneity_grams(problem: Problem) -> tuple[Array, Array]:
    """(H_0, H_het) of eq. heterogeneity-grams, dense m x m: a reference for small problems."""
    H_0 = np.zeros((problem.m, problem.m))
    H_het = np.zeros_like(H_0)
    mean = mean_block(problem)
    for agent in problem.agents.values():
        for block in (agent.A, agent.B):
            if block is not None:
                H_0 += dense(block) @ dense(block).T
        if mean is not None:
            own = dense(difference(agent.B, mean))
            H_het += own @ own.T
    return H_0, H_het


class Triangle:
    """Accumulates F with F'F = sum of block block', folding to at most m rows on the way.

    With ``keep`` the rows are only stacked: there are fewer of them than columns.
    """

    def __init__(self, m: int, keep: bool) -> None:
        self.m = m
        self.keep = keep
        self._pieces: list[Array] = [np.zeros((0, m))]
        self._count = 0

    def add(self, block: Any) -> None:
        """Fold in block (m x k), a bounded number of its columns at a time."""
        block = sp.csc_array(block) if is_sparse(block) else dense(block)
        for start in range(0, block.shape[1], CHUNK):
            piece = dense(block[:, start : start + CHUNK]).T
            self._pieces.append(piece)
            self._count += len(piece)
            if self._count > self.m + CHUNK:
                self._fold()

    def rows(self) -> Array:
        """F."""
        self._fold()
        return self._pieces[0]

    def _fold(self) -> None:
        whole = np.vstack(self._pieces)
        if len(whole) > self.m and not self.keep:
            whole = np.asarray(np.linalg.qr(whole, mode="r"))
        self._pieces, self._count = [whole], len(whole)


def difference(left: Any, right: Any) -> Any:
    """left - right, sparse when both are; None is zero."""
    if left is None:
        return -right
    both = is_sparse(left) and is_sparse(right)
    return left - right if both else dense(left) - dense(right)


def squared_lengths(block: Any) -> Array:
    """Squared lengths of the rows of a block."""
    if is_sparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel()
    return np.asarray((dense(block) ** 2).sum(axis=1))


def _descending(block: Array) -> tuple[Array, Array]:
    """All singular values, zeros included, and right singular vectors as rows."""
    missing = max(block.shape[1] - block.shape[0], 0)
    padded = np.vstack([block, np.zeros((missing, block.shape[1]))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    return values, right
