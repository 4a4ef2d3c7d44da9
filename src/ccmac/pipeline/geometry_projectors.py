"""Row-space projectors of large sparse channels, and the angles between two of them by Lanczos.

P_U P_V is symmetric on U with the squared cosines as its spectrum. Lanczos (ARPACK) started in U
finds the largest; the angles are then read off the Ritz subspace X through the singular values of
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

from ccmac.errors import InputError
from ccmac.pipeline.geometry_angles import Angles, paired, row_space

Array = NDArray[np.float64]
Projection = Callable[[Array], Array]

LSMR_TOLERANCE = 1e-13
LANCZOS_TOLERANCE = 1e-8
LARGE_OVERLAP_TOLERANCE = 1e-7
"""Angles (rad) below this are taken as common when projections are iterative."""
SMALL = 40
"""Sizes up to this are solved directly: an iteration would have no room."""
SUBSPACES = (6, 24, 48, 96, 96, 96)
"""Ritz vectors asked for in turn, while new common directions keep turning up."""


@dataclass(frozen=True)
class LargeAngles:
    """The smallest principal angles; direction and residual of the first that is not common."""

    angles: Angles
    direction: Array
    residual: float


def projector(M: Any, dense_limit: int) -> Projection:
    """u -> P u onto Range(M'): a basis when one side is small, else LSMR on equilibrated rows."""
    rows, columns = M.shape
    if rows == 0 or columns == 0:
        return np.zeros_like
    if min(rows, columns) <= dense_limit and rows * columns <= 50 * dense_limit**2:
        dense = M.toarray() if hasattr(M, "toarray") else np.asarray(M)
        Q = row_space(dense).basis
        return lambda u: np.asarray(Q @ (Q.T @ u))
    flat = equilibrated(M)
    transposed = flat.T

    def project(u: Array) -> Array:
        if not np.any(u):
            return np.zeros_like(u)
        solution = spla.lsmr(
            transposed, u, atol=LSMR_TOLERANCE, btol=LSMR_TOLERANCE, conlim=0.0, maxiter=20_000
        )[0]
        return np.asarray(transposed @ solution)

    return project


def equilibrated(M: Any) -> Any:
    """M with rows of unit length (sparse or dense); operators stay as they are."""
    if not hasattr(M, "toarray") and not isinstance(M, np.ndarray):
        return M
    matrix = sp.csr_array(M)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ matrix)


def smallest_angles(
    P_U: Projection, P_V: Projection, size: int, tolerance: float
) -> LargeAngles | None:
    """The smallest angles between U and V; None when they are orthogonal.

    Common directions are taken out as they are found, until a search finds no more: a single
    Lanczos run does not see how often an eigenvalue is repeated.
    """
    common = np.zeros((size, 0))
    random = np.random.default_rng(0).standard_normal(size)
    for count in SUBSPACES:
        onto = deflated(P_U, common)
        found = _search(onto, P_V, onto(random), min(count, size - 1))
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


def _search(
    P_U: Projection, P_V: Projection, start: Array, k: int
) -> tuple[Array, Angles] | None:
    """Principal vectors in U of the smallest angles, ascending; None if there are none below 90."""
    size = len(start)
    norm = float(np.linalg.norm(start))
    if norm <= 1e-10 * np.sqrt(size) or np.linalg.norm(P_U(P_V(start))) <= 1e-12 * norm:
        return None

    def apply(u: Array) -> Array:
        # Iterates of a Lanczos run started in U stay there; unit vectors do not.
        return P_U(P_V(P_U(u) if size <= SMALL else u))

    operator = spla.LinearOperator((size, size), matvec=apply, dtype=np.float64)
    X = columnwise(P_U, ritz_vectors(operator, k, start))
    # What is not in U is what is left over when U has fewer dimensions than were asked for.
    X = np.linalg.qr(X[:, np.linalg.norm(X, axis=0) > 0.5])[0]
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


def ritz_vectors(operator: Any, k: int, start: Array) -> Array:
    """Vectors of the k largest eigenvalues; a run that stalls is repeated less strictly."""
    size = len(start)
    if size <= SMALL:
        return np.asarray(np.linalg.eigh(as_matrix(operator))[1][:, -k:])
    options: Any = {"which": "LA", "v0": start, "ncv": min(size, max(2 * k + 1, 40))}
    for tol, restarts in ((LANCZOS_TOLERANCE, 40), (1e-3, 40)):
        try:
            _, vectors = spla.eigsh(operator, k=k, tol=tol, maxiter=restarts, **options)
        except spla.ArpackNoConvergence as stalled:
            vectors = stalled.eigenvectors
        if vectors.shape[1]:
            return np.asarray(vectors, dtype=np.float64)
    return start[:, None] / np.linalg.norm(start)


def as_matrix(operator: Any) -> Array:
    """A small symmetric operator as a matrix."""
    dense = np.stack([operator.matvec(unit) for unit in np.eye(operator.shape[0])], axis=1)
    return np.asarray((dense + dense.T) / 2)
