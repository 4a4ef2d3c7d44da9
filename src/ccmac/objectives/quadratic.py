"""f(u) = u'Hu/2 - g'u on u = (x, z), H symmetric (to rounding) and positive semidefinite."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, as_array, is_sparse, real_matrix, real_vector
from ccmac.linalg.blocks import entries
from ccmac.linalg.extended import times
from ccmac.linalg.symmetric import (
    DENSE_LIMIT,
    EXTREME_MARGIN,
    Extremes,
    FactorCache,
    diagonal_matrix,
    eigenvalue_extremes,
    factorized,
)
from ccmac.objectives.base import Curvature, Function, Step


class Quadratic(Function):
    """0.5 u'Hu - g'u; ``H`` may be a matrix, a sparse matrix or a vector (its diagonal).

    Of an H that rounding left unsymmetric the symmetric part (H + H')/2 is taken.

    L and mu are the extreme eigenvalues of H: exact up to 1,500 entries or when H is diagonal,
    else Lanczos estimates widened by a relative 1e-6 (and mu = 0, convexity being taken on trust,
    where they do not settle). The prox solves with diag(1/step) + H and keeps the last
    factorization.

    Parameters
    ----------
    H : matrix or array_like
        Symmetric and positive semidefinite, dense or sparse; a vector is a diagonal.
    g : array_like, optional
        Linear term; zero by default.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 0.0])
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    1.5
    """

    capabilities = frozenset({"gradient", "prox", "quadratic"})
    extended = True
    concordance = 0.0
    arguments = ("H", "g")

    def __init__(self, H: Any, g: Any = None) -> None:
        if g is None:
            g = np.zeros((H if is_sparse(H) else as_array("Quadratic, H", H)).shape[:1])
        self.g = real_vector("Quadratic, g", g)
        self.size = len(self.g)
        self.H = _symmetric(H, self.size)
        self.coordinatewise = _is_diagonal(self.H)
        self._factors = FactorCache()
        low, high, exact = self._extremes
        if low < -(1e-9 if exact else EXTREME_MARGIN) * max(1.0, high):
            raise InputError(
                f"Quadratic, H: is indefinite (smallest eigenvalue {low:.3g}); "
                "the objective must be convex"
            )

    @cached_property
    def _extremes(self) -> Extremes:
        return eigenvalue_extremes(self.H)

    def constants(self, size: int) -> tuple[float, float]:
        return self._extremes.bounds()

    def curvature(self, d: int, q: int) -> Curvature:
        """Extreme eigenvalues of H and of its diagonal blocks."""
        L, mu = self.constants(d + q)
        L_x, mu_x = eigenvalue_extremes(self.H[:d, :d]).bounds()
        L_z, mu_z = eigenvalue_extremes(self.H[d:, d:]).bounds()
        cross = self.H[:d, d:]
        separable = (cross.nnz if is_sparse(cross) else np.count_nonzero(cross)) == 0
        return Curvature(L_x, mu_x, L_z, mu_z, L, mu, separable)

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """Extreme eigenvalues of S H S, S = diag(t I, s I)."""
        shape = self.curvature(d, q)
        if shape.separable or d + q > DENSE_LIMIT:
            return shape.scaled(t, s)
        scale = np.repeat([t, s], [d, q])
        dense = self.H.toarray() if is_sparse(self.H) else self.H
        L, mu = eigenvalue_extremes(scale[:, None] * dense * scale).bounds()
        return mu, L

    def value_at(self, v: Array) -> float:
        return float(0.5 * v @ (self.H @ v) - self.g @ v)

    def gradient_at(self, v: Array) -> Array:
        return np.asarray(times(self.H, v) - self.g)

    def prox_at(self, v: Array, step: Step) -> Array:
        """(I + step H)^{-1} (v + step g)."""
        inverse = np.broadcast_to(1.0 / np.asarray(step), v.shape)
        solve = self._factors.get(inverse, lambda: factorized(self.H, inverse))
        return solve(v * inverse + self.g)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        return self.H, self.g, 0.0


def _is_diagonal(H: Any) -> bool:
    off = H - (diagonal_matrix(H.diagonal()) if is_sparse(H) else np.diag(H.diagonal()))
    return not (off.nnz and off.data.any() if is_sparse(off) else off.any())


def _symmetric(H: Any, size: int) -> Any:
    """The symmetric part of H, which must be symmetric but for rounding."""
    if not is_sparse(H) and as_array("Quadratic, H", H).ndim == 1:
        matrix = diagonal_matrix(real_vector("Quadratic, H", H))
    else:
        matrix = real_matrix("Quadratic, H", H)
    if matrix.shape != (size, size):
        raise InputError(
            f"Quadratic, H: has shape {matrix.shape} but g has {size} entries; H must be square"
        )
    gap = abs(matrix - matrix.T).max() if size else 0.0
    if gap > 1e-10 * max(1.0, abs(matrix).max() if size else 0.0):
        raise InputError(
            f"Quadratic, H: is not symmetric (largest asymmetry {gap:.3g}); pass (H + H')/2"
        )
    if not np.any(entries(matrix - matrix.T)):
        return matrix
    return 0.5 * (matrix + (matrix.T.tocsr() if is_sparse(matrix) else matrix.T))
