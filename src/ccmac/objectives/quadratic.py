"""f(u) = u'Hu/2 - g'u on u = (x, z), H symmetric positive semidefinite (dense, sparse, diagonal)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.objectives.base import Curvature
from ccmac.objectives.function import Function

Array = NDArray[np.float64]
DENSE_LIMIT = 1500


class Quadratic(Function):
    """0.5 u'Hu - g'u; ``H`` may be a matrix, a sparse matrix or a vector (its diagonal)."""

    capabilities = frozenset({"gradient", "prox", "quadratic"})

    def __init__(self, H: Any, g: Any) -> None:
        self.g = _finite("g", np.atleast_1d(np.asarray(g, dtype=np.float64)))
        self.H = _symmetric(H, len(self.g))
        if self._extremes[0] < -1e-9 * max(1.0, self._extremes[1]):
            raise InputError(
                f"H is indefinite (smallest eigenvalue {self._extremes[0]:.3g}); "
                "the objective must be convex"
            )

    @property
    def size(self) -> int:
        """Length of u."""
        return len(self.g)

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        return _extreme_eigenvalues(self.H)

    def constants(self, size: int) -> tuple[float, float]:
        """Extreme eigenvalues of H."""
        low, high = self._extremes
        return high, max(low, 0.0)

    def curvature(self, d: int, q: int) -> Curvature:
        """Extreme eigenvalues of H and of its diagonal blocks."""
        L, mu = self.constants(d + q)
        low_x, high_x = _extreme_eigenvalues(self.H[:d, :d])
        low_z, high_z = _extreme_eigenvalues(self.H[d:, d:])
        cross = self.H[:d, d:]
        separable = (cross.nnz if sp.issparse(cross) else np.count_nonzero(cross)) == 0
        return Curvature(high_x, max(low_x, 0.0), high_z, max(low_z, 0.0), L, mu, separable)

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """Extreme eigenvalues of S H S, S = diag(t I, s I)."""
        shape = self.curvature(d, q)
        if shape.separable or d + q > DENSE_LIMIT:
            return shape.scaled(t, s)
        scale = np.concatenate([np.full(d, t), np.full(q, s)])
        dense = self.H.toarray() if sp.issparse(self.H) else self.H
        low, high = _extreme_eigenvalues(scale[:, None] * dense * scale)
        return max(low, 0.0), high

    def value_at(self, v: Array) -> float:
        """v'Hv/2 - g'v."""
        return float(0.5 * v @ (self.H @ v) - self.g @ v)

    def gradient_at(self, v: Array) -> Array:
        """Hv - g."""
        return np.asarray(self.H @ v - self.g)

    def prox_at(self, v: Array, step: float) -> Array:
        """(I + step H)^{-1} (v + step g)."""
        right = v + step * self.g
        if sp.issparse(self.H):
            system = sp.csc_array(sp.eye_array(self.size) + step * self.H)
            return np.asarray(sp.linalg.spsolve(system, right))
        return np.asarray(np.linalg.solve(np.eye(self.size) + step * self.H, right))

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(H, g, 0)."""
        return self.H, self.g, 0.0

    def state(self) -> Mapping[str, Any]:
        """H and g."""
        return {"H": self.H, "g": self.g}


def _finite(name: str, values: Array) -> Array:
    if not np.isfinite(values).all():
        raise InputError(f"{name} has entries that are NaN or infinite")
    return values


def _symmetric(H: Any, size: int) -> Any:
    if sp.issparse(H):
        matrix: Any = sp.csr_array(H, dtype=np.float64)
        _finite("H", matrix.data)
    else:
        matrix = _finite("H", np.asarray(H, dtype=np.float64))
        if matrix.ndim == 1:
            matrix = sp.csr_array(sp.diags_array(matrix))
    if matrix.shape != (size, size):
        raise InputError(f"H has shape {matrix.shape} but g has {size} entries; H must be square")
    gap = abs(matrix - matrix.T).max() if size else 0.0
    if gap > 1e-10 * max(1.0, abs(matrix).max() if size else 0.0):
        raise InputError(f"H is not symmetric (largest asymmetry {gap:.3g}); pass (H + H')/2")
    return matrix


def _extreme_eigenvalues(matrix: Any) -> tuple[float, float]:
    """(smallest, largest) eigenvalue; (inf, 0) for an empty block."""
    size = matrix.shape[0]
    if size == 0:
        return float("inf"), 0.0
    if sp.issparse(matrix):
        diagonal = matrix.diagonal()
        if matrix.nnz == np.count_nonzero(diagonal):
            return float(diagonal.min()), float(diagonal.max())
        if size > DENSE_LIMIT:
            high = float(sp.linalg.eigsh(matrix, k=1, which="LA", return_eigenvectors=False)[0])
            low = sp.linalg.eigsh(
                sp.eye_array(size) * high - matrix, k=1, which="LA", return_eigenvectors=False
            )[0]
            return high - float(low), high
        matrix = matrix.toarray()
    values = np.linalg.eigvalsh(matrix)
    return float(values[0]), float(values[-1])
