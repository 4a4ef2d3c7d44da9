"""f(u) = u'Hu/2 - g'u on u = (x, z), H symmetric (to rounding) and positive semidefinite.

Of an H that rounding left unsymmetric f sees the symmetric part alone, (H + H')/2 = S + R: S in
doubles, which everything is computed with, and R its rounding, exact in doubles too, which
certificates add.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, as_array, is_sparse, real_matrix, real_vector
from ccmac.linalg.blocks import entries
from ccmac.linalg.extended import EPS_LONG, Long, norm, product
from ccmac.linalg.symmetric import (
    DENSE_LIMIT,
    Extremes,
    FactorCache,
    diagonal_matrix,
    eigenvalue_extremes,
    factorized,
)
from ccmac.linalg.tolerances import EPS, EXTREME_MARGIN
from ccmac.objectives.base import Curvature
from ccmac.objectives.function import Function, Step
from ccmac.objectives.piecewise import Pieces


class Quadratic(Function):
    """0.5 u'Hu - g'u; ``H`` may be a matrix, a sparse matrix or a vector (its diagonal).

    ``H`` becomes its symmetric part S; ``given`` is H as it was given, where that is another.

    L and mu are the extreme eigenvalues of H: exact up to 1,500 entries or when H is diagonal,
    else Lanczos estimates widened by a relative 1e-6 (and mu = 0, convexity being taken on trust,
    where they do not settle). The prox solves with diag(1/step) + H and keeps the last
    factorization.
    """

    capabilities = frozenset({"gradient", "prox", "quadratic"})
    entrywise_steps = True

    def __init__(self, H: Any, g: Any) -> None:
        self.g = real_vector("Quadratic, g", g)
        self.given = _checked(H, len(self.g))
        self.H, self._rest = _symmetric(self.given)
        self.coordinatewise = _is_diagonal(self.H)
        self._factors = FactorCache()
        low, high, exact = self._extremes
        if low < -(1e-9 if exact else EXTREME_MARGIN) * max(1.0, high):
            raise InputError(
                f"Quadratic, H: is indefinite (smallest eigenvalue {low:.3g}); "
                "the objective must be convex"
            )

    def state(self) -> Mapping[str, Any]:
        """H as it was given."""
        return {"H": self.given, "g": self.g}

    @property
    def size(self) -> int:
        """Length of u."""
        return len(self.g)

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
        return np.asarray(self.H @ v - self.g)

    def precise_at(self, v: Array | Long) -> tuple[Long, float]:
        """(S + R) v - g."""
        gradient = product(self.H, v) - self.g
        if self._rest is not None:
            gradient += product(self._rest, v)
        sizes = abs(self.H) @ np.abs(v).astype(np.float64) + np.abs(self.g)
        many = len(v) + (2 if self._rest is None else 4)
        return gradient, many * EPS_LONG * float(np.linalg.norm(sizes)) * (1 + 8 * EPS)

    def prox_at(self, v: Array, step: Step) -> Array:
        """(I + step H)^{-1} (v + step g)."""
        inverse = np.broadcast_to(1.0 / np.asarray(step), v.shape)
        solve = self._factors.get(inverse, lambda: factorized(self.H, inverse))
        return solve(v * inverse + self.g)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        return self.H, self.g, 0.0

    def form_rounding_at(self, size: int) -> float:
        """R."""
        return 0.0 if self._rest is None else norm(entries(self._rest))

    def pieces(self) -> Pieces | None:
        """One piece, where H is diagonal."""
        return Pieces(self.H.diagonal(), self.g) if self.coordinatewise else None


def _is_diagonal(H: Any) -> bool:
    off = H - (diagonal_matrix(H.diagonal()) if is_sparse(H) else np.diag(H.diagonal()))
    return not (off.nnz and off.data.any() if is_sparse(off) else off.any())


def _checked(H: Any, size: int) -> Any:
    """H as a matrix that is symmetric but for rounding."""
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
    return matrix


def _symmetric(H: Any) -> tuple[Any, Any]:
    """(S, R) with S + R = (H + H')/2; R None where H is symmetric as it is."""
    if not np.any(entries(H - H.T)):
        return H, None
    # The error of a rounded sum is a double: (H - (s - (s - H))) + (H' - (s - H)).
    turned = H.T.tocsr() if is_sparse(H) else H.T
    total = H + turned
    share = total - H
    rest = (H - (total - share)) + (turned - share)
    return 0.5 * total, 0.5 * rest
