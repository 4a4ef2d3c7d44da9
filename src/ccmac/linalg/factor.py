"""Solves with a positive definite matrix plus a diagonal, factorized once per diagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.extremes import diagonal_matrix

Solve = Callable[[Array], Array]

BAND_WORK = 2e11  # of a band factorization, up to which a sparse one is tried: factors below 2 GB


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


# -- symmetric sparse matrices ---------------------------------------------------------------------
def symmetric_factor(matrix: Any) -> Any:
    """LU without pivoting, in an order for symmetric matrices; definite or quasidefinite ones."""
    return spla.splu(
        sp.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )  # fmt: skip


def band_work(matrix: sp.csr_array) -> float:
    """Multiplications of a factorization inside its band, rows in the order of Cuthill and McKee.

    An order made for factors needs fewer where they stay sparse, as on grids; where they fill, as
    on random graphs, about as many.
    """
    order = sp.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    entries = matrix.tocoo()
    first = np.arange(len(order))
    np.minimum.at(first, place[entries.row], place[entries.col])
    return float(np.sum((np.arange(len(order)) - first).astype(np.float64) ** 2))
