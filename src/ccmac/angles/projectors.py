"""Row-space projectors of large sparse channels, and the angles between two of them by Lanczos.

P_U P_V is symmetric on U with the squared cosines as its spectrum. Block Lanczos started in U finds
the largest; the angles are then read off the Ritz subspace X through the singular values of
X - P_V X (sines) and P_V X (cosines), so a small angle keeps its digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.angles.heterogeneity import entries
from ccmac.angles.principal import Angles, paired, row_space
from ccmac.errors import InputError
from ccmac.linalg.block_lanczos import below, top_ritz

Array = NDArray[np.float64]
Projection = Callable[[Array], Array]

LSMR_TOLERANCE = 1e-12
LARGE_OVERLAP_TOLERANCE = 1e-7
"""Angles (rad) below this are taken as common when projections are iterative."""
BLOCKS = (2, 8, 32, 64, 64, 64)
"""Block sizes taken in turn, while new common directions keep turning up."""


@dataclass(frozen=True)
class LargeAngles:
    """The smallest principal angles; direction and residual of the first that is not common."""

    angles: Angles
    direction: Array
    residual: float


def projector(M: Any, dense_limit: int) -> Projection:
    """u -> P u onto Range(M'): a dense basis, a sparse factorization, or LSMR, by size and fill."""
    rows, columns = M.shape
    if rows == 0 or columns == 0:
        return np.zeros_like
    if min(rows, columns) <= dense_limit and rows * columns <= 50 * dense_limit**2:
        Q = row_space(entries(M)).basis
        return lambda u: np.asarray(Q @ (Q.T @ u))
    if not isinstance(M, np.ndarray) and not hasattr(M, "tocsr"):
        transposed = spla.aslinearoperator(M).T
        return lambda u: least_squares(transposed, u)
    flat = equilibrated(M)
    M_T = sp.csr_array(flat.T)
    # SciPy would copy a sparse matrix in every adjoint product.
    operator = spla.LinearOperator(
        M_T.shape, matvec=lambda y: M_T @ y, rmatvec=lambda u: flat @ u, dtype=np.float64
    )
    return _factored(flat, M_T) or (lambda u: least_squares(operator, u))


def least_squares(transposed: Any, u: Array) -> Array:
    """The point of Range(M') nearest to u, given M' as an operator, by LSMR."""
    if not np.any(u):
        return np.zeros_like(u)
    y = spla.lsmr(
        transposed, u, atol=LSMR_TOLERANCE, btol=LSMR_TOLERANCE, conlim=0.0, maxiter=20_000
    )[0]
    return np.asarray(transposed.matvec(y))


def _factored(M: Any, M_T: Any) -> Projection | None:
    """M' (M M' + shift)^{-1} M with refinement, if M M' is so sparse that its factor is too.

    The shift lets dependent rows pass; two sweeps undo its effect on the rest, and a trial tells
    whether they did.
    """
    gram = sp.csc_array(M @ M_T)
    if gram.nnz > 6 * gram.shape[0]:
        return None
    factor = spla.splu(sp.csc_array(gram + 1e-13 * sp.eye_array(gram.shape[0])))

    def project(u: Array) -> Array:
        rest = u.copy()
        for _ in range(2):
            rest -= M_T @ factor.solve(M @ rest)
        return u - rest

    trial = np.random.default_rng(0).standard_normal(M.shape[1])
    once = project(trial)
    left = float(np.linalg.norm(M @ (trial - once)))
    return project if left <= 1e-11 * float(np.linalg.norm(trial)) else None


def equilibrated(M: Any) -> Any:
    """M, dense or sparse, as a sparse matrix with rows of unit length."""
    matrix = sp.csr_array(M)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ matrix)


def smallest_angles(
    P_U: Projection, P_V: Projection, size: int, tolerance: float
) -> LargeAngles | None:
    """The smallest angles between U and V; None when they are orthogonal.

    Common directions are taken out as they are found, until a search finds no more: a block of k
    vectors does not see an eigenvalue repeated more than k times.
    """
    common = np.zeros((size, 0))
    random = np.random.default_rng(0)
    for width in BLOCKS:
        onto = deflated(P_U, common)
        start = columnwise(onto, random.standard_normal((size, min(width, size))))
        found = _search(onto, P_V, start)
        if found is None:
            none = Angles(np.zeros(0), np.zeros(0))
            zeros = _with_zeros(none, common.shape[1])
            return LargeAngles(zeros, np.zeros(size), 0.0) if common.shape[1] else None
        X, angles = found
        fresh = angles.common(tolerance)
        if fresh == 0:
            u, c = X[:, 0], float(angles.cosines[0])
            residual = float(np.linalg.norm(onto(P_V(u)) - c * c * u))
            return LargeAngles(_with_zeros(angles, common.shape[1]), u, residual)
        common = np.linalg.qr(np.hstack([common, X[:, :fresh]]))[0]
    raise InputError(
        f"geometry: {common.shape[1]} common directions were found and more are left; remove "
        "equations that both channels state, or raise dense_limit"
    )


def _search(P_U: Projection, P_V: Projection, start: Array) -> tuple[Array, Angles] | None:
    """Principal vectors in U of the smallest angles, ascending; None if all are right angles."""
    # A random vector keeps a share of about sqrt(dim U / size) in U; far less means nothing left.
    start = start[:, np.linalg.norm(start, axis=0) > 1e-8]
    if start.shape[1] == 0 or np.linalg.norm(P_U(P_V(start[:, 0]))) <= 1e-12 * np.linalg.norm(
        start[:, 0]
    ):
        return None
    ritz = top_ritz(lambda u: P_U(P_V(u)), start, P_U, enough=below(1.0))
    X = np.linalg.qr(columnwise(P_U, ritz.vectors))[0]
    inside = columnwise(P_V, X)
    _, sines, right = np.linalg.svd(X - inside, full_matrices=False)
    return X @ right[::-1].T, paired(sines, sla.svdvals(inside))


def _with_zeros(angles: Angles, count: int) -> Angles:
    sines = np.concatenate([np.zeros(count), angles.sines])
    return Angles(sines, np.concatenate([np.ones(count), angles.cosines]))


def deflated(projection: Projection, common: Array) -> Projection:
    """The projection followed by the removal of ``common`` (orthonormal columns)."""
    if common.shape[1] == 0:
        return projection

    def project(u: Array) -> Array:
        image = projection(u)
        return np.asarray(image - common @ (common.T @ image))

    return project


def columnwise(projection: Projection, X: Array) -> Array:
    """The projection of every column."""
    return np.stack([projection(x) for x in X.T], axis=1)
