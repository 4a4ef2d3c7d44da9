"""One notion of rank: that of the rows, each brought to unit length.

    R^{-1} M = U S V'        R = diag(row lengths), zero rows left out

Singular values below 1e-12 of the largest are zero, by convention: rows that near to dependent are
dependent, and what is claimed is claimed without them. Those above count, however small.

Row lengths change neither the row space nor the solutions of M x = v, and without them a small
equation is not mistaken for a missing one: [[1, 0], [0, 1e-11]] has rank 2. V spans Range(M');
solutions have V'x = S^{-1} U' R^{-1} v, and M' kappa = V w for kappa = R^{-1} U S^{-1} w.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.tolerances import EPS, RANK


def rank_cut(shape: tuple[int, ...]) -> float:
    """Where singular values of unit rows, relative to the largest, are cut: RANK or eps size."""
    return max(RANK, EPS * max(shape, default=0))


def redundant(left: Array) -> list[int]:
    """Rows without which the others span the same space, from the left singular vectors that count
    (rows x rank).
    """
    rows, rank = left.shape
    if rank in (0, rows):
        return list(range(rows - rank))
    _, _, order = scipy.linalg.qr(left.T, mode="economic", pivoting=True)
    return sorted(int(k) for k in order[rank:])


def numerical_rank(singular: Array, shape: tuple[int, ...], scale: float = 0.0) -> int:
    """How many of the descending ``singular`` values lie above the cut times the largest.

    ``scale`` is put in the place of a smaller largest value: for rows that had unit length before a
    projection, what the projection cancelled is then seen as zero.
    """
    return int(np.count_nonzero(singular > rank_cut(shape) * singular.max(initial=scale)))


@dataclass(frozen=True)
class RowSpace:
    """R^{-1} M = ``left`` diag(``singular``) ``basis``', cut at the rank.

    ``basis`` has orthonormal columns spanning Range(M'); ``inverse_lengths`` is the diagonal of
    R^{-1} with 0 for zero rows.
    """

    left: Array
    singular: Array
    basis: Array
    inverse_lengths: Array

    @property
    def rank(self) -> int:
        """Dimension of the row space."""
        return len(self.singular)

    @property
    def condition(self) -> float:
        """Of the unit rows, over the row space (1 without rows)."""
        return float(self.singular[0] / self.singular[-1]) if self.rank else 1.0

    @cached_property
    def combination(self) -> Array:
        """N = R^{-1} U S^{-1}: the columns of V as combinations of the user's rows, V = M'N."""
        return np.asarray(self.inverse_lengths[:, None] * (self.left / self.singular))

    def coordinates(self, right: Array) -> Array:
        """V'x = N' right of the solutions of M x = ``right``; least squares in unit rows."""
        return np.asarray(self.combination.T @ right)

    def multipliers(self, inside: Array) -> Array:
        """kappa = N inside, in the user's rows: M' kappa = V inside."""
        return np.asarray(self.combination @ inside)

    def conflict(self, right: Array) -> float:
        """How far ``right`` is from the range, in the user's rows; 0 when they are consistent."""
        unit = self.inverse_lengths * right
        zero_row = self.inverse_lengths == 0
        gap = np.where(zero_row, right, unit - self.left @ (self.left.T @ unit))
        # A direction kept at the cut carries errors of eps / RANK = 2e-4, but moves rows by eps.
        if np.linalg.norm(gap) <= 1e-9 * max(1.0, float(np.linalg.norm(unit))):
            return 0.0
        return float(np.linalg.norm(gap / np.where(zero_row, 1.0, self.inverse_lengths)))


def row_space(matrix: Array) -> RowSpace:
    """Range(M') with all that maps right-hand sides and multipliers; one dense SVD."""
    inverse = _inverse_lengths(matrix)
    used = inverse > 0
    # Unknowns that no row touches stay exactly out of the row space: B = 0 gives chi = 1 exactly.
    touched = np.any(matrix != 0, axis=0)
    if not used.any():
        empty = np.zeros((len(inverse), 0)), np.zeros(0), np.zeros((matrix.shape[1], 0))
        return RowSpace(*empty, inverse)
    rows = inverse[used, None] * matrix[np.ix_(used, touched)]
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    rank = numerical_rank(s, rows.shape)
    left = np.zeros((len(inverse), rank))
    basis = np.zeros((matrix.shape[1], rank))
    left[used], basis[touched] = U[:, :rank], Vt[:rank].T
    return RowSpace(left, s[:rank], basis, inverse)


def squared_range(matrix: Array) -> tuple[int, float, float]:
    """(rank, least positive, largest) eigenvalue of M M', of the rows as they are; 0, 0, 0 if zero.

    ||v|| = ||N'M v|| <= ||N|| ||M v|| in Range(M'), so that the least singular value is at least
    1/||N||, and equal to it when the rows are independent: right to all digits however uneven they
    are. Of dependent rows the decomposition of M itself is taken where it stands above rounding.
    """
    inverse = _inverse_lengths(matrix)
    inverse, rows = inverse[inverse > 0, None], matrix[inverse > 0]
    if not len(rows):
        return 0, 0.0, 0.0
    unit = inverse * rows
    if unit.shape[0] < unit.shape[1]:
        # The same left vectors and singular values in a square.
        unit = np.asarray(np.linalg.qr(unit.T, mode="r")).T
    U, s, _ = np.linalg.svd(unit, full_matrices=False)
    rank = numerical_rank(s, matrix.shape)
    singular = np.linalg.svd(unit / inverse, compute_uv=False)
    low = 1.0 / np.linalg.norm(inverse * (U[:, :rank] / s[:rank]), 2)
    high = float(singular[0])
    if rank < len(rows) and singular[rank - 1] > rank_cut(matrix.shape) * high:
        low = max(low, singular[rank - 1])
    return rank, float(low) ** 2, high**2


def row_lengths(matrix: Any) -> Array:
    """||row|| of a dense or sparse matrix; scaled first, since squares of entries may underflow."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[0])
    largest: Any = abs(matrix).max(axis=1)
    size = np.ravel(largest.toarray() if is_sparse(largest) else largest)
    inverse = 1.0 / np.where(size > 0, size, 1.0)
    if is_sparse(matrix):
        return np.asarray(size * spla.norm(sp.diags_array(inverse) @ matrix, axis=1))
    return np.asarray(size * np.linalg.norm(inverse[:, None] * matrix, axis=1))


def _inverse_lengths(matrix: Array) -> Array:
    """1 / ||row||, 0 for zero rows."""
    lengths = row_lengths(matrix)
    present = lengths >= np.finfo(np.float64).tiny
    return np.asarray(np.where(present, 1.0 / np.where(present, lengths, 1.0), 0.0))
