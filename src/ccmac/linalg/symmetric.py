"""Symmetric matrices: ends of their spectrum, and solves with definite ones.

Extreme eigenvalues of H and of M'M are exact where the matrix is small or visibly diagonal. Larger
matrices go to Lanczos iterations, started from one fixed vector so that the answer repeats. Lanczos
approaches the ends of a spectrum from inside, hence ``Extremes.bounds`` widens an estimate by
``EXTREME_MARGIN``; where Lanczos does not settle, crude but safe bounds take its place.

A positive definite matrix plus a diagonal is factorized once per diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.tolerances import EPS

DENSE_LIMIT = 1500
EXTREME_MARGIN = 1e-6  # of ends from ARPACK, which come from inside: half the digits are kept


class Extremes(NamedTuple):
    """Smallest and largest eigenvalue; (inf, 0) for a matrix without columns."""

    low: float
    high: float
    exact: bool = True

    def bounds(self) -> tuple[float, float]:
        """(L, mu): a smallest eigenvalue that is rounding of the largest counts as zero."""
        slack = 0.0 if self.exact else EXTREME_MARGIN * self.high
        low = self.low - slack
        return self.high + slack, low if low > 1e-13 * self.high else 0.0


EMPTY = Extremes(math.inf, 0.0)


def eigenvalue_extremes(H: Any) -> Extremes:
    """Smallest and largest eigenvalue of a symmetric matrix, dense or sparse."""
    size = H.shape[0]
    if size == 0:
        return EMPTY
    if is_sparse(H):
        diagonal = H.diagonal()
        if H.nnz == np.count_nonzero(diagonal):
            return Extremes(float(diagonal.min()), float(diagonal.max()))
    if size > DENSE_LIMIT:
        return _lanczos(spla.aslinearoperator(H), float(abs(H).sum(axis=1).max()))
    if is_sparse(H):
        H = H.toarray()
    values = np.linalg.eigvalsh(H)
    return Extremes(float(values[0]), float(values[-1]))


def gram_extremes(M: Any, *, both: bool = True) -> Extremes:
    """Of M'M: squares of the singular values of M, zero included when M has a kernel.

    Widened by what rounding may have changed in M'M.

    ``both`` false spares a large matrix the search for the smallest, and gives 0 for it.
    """
    rows, columns = M.shape
    if columns == 0:
        return EMPTY
    if rows == 0:
        return Extremes(0.0, 0.0)
    if is_sparse(M) and np.diff(M.indptr).max() <= 1:
        # One entry per row: the columns are orthogonal (identities, selections, diagonal weights).
        squares = np.asarray(M.multiply(M).sum(axis=0)).ravel()
        off = EPS * (M.nnz - np.count_nonzero(squares))  # relative: no square is negative
        return Extremes(float(squares.min()) * (1 - off), float(squares.max()) * (1 + off))
    if min(rows, columns) <= DENSE_LIMIT:
        gram = M @ M.T if rows < columns else M.T @ M
        low, high, exact = eigenvalue_extremes(gram)
        # An entry is off by eps for each of its products, times the lengths of the two vectors.
        off = EPS * max(rows, columns) * float(gram.trace())
        return Extremes(0.0 if rows < columns else low - off, high + off, exact)
    operator = spla.LinearOperator(
        (columns, columns), matvec=lambda v: M.T @ (M @ v), dtype=np.dtype(np.float64)
    )
    magnitude = abs(M)
    norm_1 = magnitude.sum(axis=0).max()
    norm_inf = magnitude.sum(axis=1).max()
    found = _lanczos(operator, float(norm_1 * norm_inf), both=both and rows >= columns)
    return found._replace(low=max(found.low, 0.0))


def _lanczos(operator: Any, ceiling: float, *, both: bool = True) -> Extremes:
    """Ends of the spectrum; ``ceiling`` bounds its modulus and stands in on failure."""
    size = operator.shape[0]
    start = np.random.default_rng(0).standard_normal(size)
    high = _largest(operator, start)
    if high is None:
        return Extremes(0.0, ceiling, exact=False)
    if not both:
        return Extremes(0.0, high, exact=False)
    mirrored = spla.LinearOperator(
        (size, size), matvec=lambda v: high * v - operator.matvec(v), dtype=np.dtype(np.float64)
    )
    gap = _largest(mirrored, start)
    return Extremes(0.0 if gap is None else high - gap, high, exact=False)


def _largest(operator: Any, start: Array) -> float | None:
    try:
        found = spla.eigsh(
            operator, k=1, which="LA", v0=start, maxiter=300, return_eigenvectors=False
        )
    except spla.ArpackNoConvergence:
        return None
    return float(found[0])


def diagonal_matrix(values: Array) -> sp.csr_array:
    """diag(values), never densified."""
    return sp.csr_array(sp.diags_array(values))


Solve = Callable[[Array], Array]


# -- solves ----------------------------------------------------------------------------------------
class FactorCache:
    """Keeps the latest factorization: methods with a fixed step ask for the same one each time."""

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._solve: Solve | None = None

    def get(self, diagonal: Array, build: Callable[[], Solve]) -> Solve:
        """The solve belonging to ``diagonal``; built anew when the diagonal changed."""
        key = diagonal.tobytes()
        if self._solve is None or self._key != key:
            self._key, self._solve = key, build()
        return self._solve


def factorized(H: Any, diagonal: Array) -> Solve:
    """v -> (H + diag(diagonal))^{-1} v for H positive semidefinite, diagonal > 0."""
    if is_sparse(H):
        if H.nnz == np.count_nonzero(H.diagonal()):
            total = H.diagonal() + diagonal
            return lambda v: v / total
        lu = spla.splu(sp.csc_array(H + diagonal_matrix(diagonal)))
        return lambda v: np.asarray(lu.solve(v))
    shifted = np.array(H)
    shifted[np.diag_indices_from(shifted)] += diagonal
    factor = la.cho_factor(shifted, overwrite_a=True)
    return lambda v: np.asarray(la.cho_solve(factor, v, check_finite=False))


def weighted_gram(E: Array, weights: Array) -> Array:
    """E diag(weights) E' of weights >= 0, by pieces that stay in the cache."""
    total = np.zeros((len(E), len(E)))
    root = np.sqrt(weights)
    width = 4096  # columns at a time
    for k in range(0, E.shape[1], width):
        piece = E[:, k : k + width] * root[k : k + width]
        total += piece @ piece.T
    return total


def gram_factorized(M: Any, weight: float, diagonal: Array) -> Solve:
    """v -> (weight M'M + diag(diagonal))^{-1} v; wide M goes through its rows (Woodbury)."""
    rows, columns = M.shape
    if rows >= columns:
        return factorized(weight * (M.T @ M), diagonal)
    inverse = 1.0 / diagonal
    scaled = M @ diagonal_matrix(inverse) if is_sparse(M) else M * inverse
    inner = factorized(scaled @ M.T, np.full(rows, 1.0 / weight))

    def solve(v: Array) -> Array:
        u = v * inverse
        return np.asarray(u - inverse * (M.T @ inner(M @ u)))

    return solve
