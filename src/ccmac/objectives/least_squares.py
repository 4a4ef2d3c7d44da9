"""(weight/2) ||Mv - y||^2, with or without a ridge."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, nonnegative, real_vector
from ccmac.linalg.symmetric import (
    Extremes,
    FactorCache,
    diagonal_matrix,
    gram_extremes,
    gram_factorized,
)
from ccmac.objectives.base import Step
from ccmac.objectives.loss import Linear


class Ridge(Linear):
    """(weight/2) ||Mv - y||^2 + (regularization/2) ||v||^2.

    ``M`` None with ``y`` given stands for the identity; both None leave the ridge alone, for any
    length of v. L and mu are weight times the extreme squared singular values of M plus the
    regularization: exact when M is small or has one entry per row, else Lanczos estimates widened
    by a relative 1e-6. One gradient is one product with M and one with M'.

    Parameters
    ----------
    M : matrix or None
        Rows of data.
    y : array_like or None
        Targets, one a row.
    regularization : float
        Factor of half the squared norm.
    weight : float
        Factor of the sum of squares.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Ridge(np.eye(2), [0.0, 0.0], regularization=2.0)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    7.5
    """

    capabilities = frozenset({"gradient", "prox", "quadratic"})
    arguments: tuple[str, ...] = ("M", "y", "regularization", "weight")

    def __init__(
        self, M: Any = None, y: Any = None, regularization: float = 0.0, weight: float = 1.0
    ) -> None:
        name = type(self).__name__
        if M is not None and y is None:
            raise InputError(f"{name}, y: is missing; give one target for each row of M")
        self.regularization = nonnegative(f"{name}, regularization", regularization)
        target = None if y is None else real_vector(f"{name}, y", y)
        super().__init__(M, target, weight, self.regularization)
        self._factors = FactorCache()

    @property
    def bend(self) -> tuple[float, float]:
        """Bounds (low, high) of the second derivative of the squares: the weight, twice."""
        return self.weight, self.weight

    @cached_property
    def _extremes(self) -> Extremes:
        return gram_extremes(self.M)

    def constants(self, size: int) -> tuple[float, float]:
        """weight sigma_max(M)^2 and weight sigma_min(M)^2, plus the regularization."""
        isotropic = self.isotropic()
        if isotropic is not None:
            return isotropic[0], isotropic[0]
        L, mu = self._extremes.bounds()
        return self.weight * L + self.regularization, self.weight * mu + self.regularization

    def _residual(self, v: Array) -> Array:
        image = v if self.M is None else self.M @ v
        return np.asarray(image if self.y is None else image - self.y)

    def value_at(self, v: Array) -> float:
        """Half squared residual and ridge."""
        value = 0.5 * self.regularization * float(v @ v) if self.regularization else 0.0
        if self.y is None:
            return value
        residual = self._residual(v)
        return value + 0.5 * self.weight * float(residual @ residual)

    def gradient_at(self, v: Array) -> Array:
        """weight M'(Mv - y) + regularization v."""
        isotropic = self.isotropic()
        if isotropic is None or v.dtype == np.longdouble:
            return super().gradient_at(v)
        total, shift = isotropic
        return total * v if shift is None else total * v - shift

    def slopes(self, image: Any) -> Any:
        """weight (Mv - y)."""
        return self.weight * (image - self.y) if self.y is not None else np.zeros_like(image)

    def prox_at(self, v: Array, step: Step) -> Array:
        """Solves with weight M'M + diag(regularization + 1/step); the factor is kept."""
        isotropic = self.isotropic()
        if isotropic is not None:
            total, shift = isotropic
            return (v if shift is None else v + step * shift) / (1.0 + step * total)
        diagonal = np.broadcast_to(self.regularization + 1.0 / np.asarray(step), v.shape)
        solve = self._factors.get(diagonal, lambda: gram_factorized(self.M, self.weight, diagonal))
        return solve(v / step + self._shift)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(weight M'M + regularization I, weight M'y, weight ||y||^2 / 2)."""
        constant = 0.0 if self.y is None else 0.5 * self.weight * float(self.y @ self.y)
        isotropic = self.isotropic()
        if isotropic is not None:
            total, shift = isotropic
            linear = np.zeros(size) if shift is None else shift
            return diagonal_matrix(np.full(size, total)), linear, constant
        gram = self.weight * (self.M.T @ self.M)
        if is_sparse(gram):
            gram = sp.csr_array(gram + diagonal_matrix(np.full(size, self.regularization)))
        else:
            gram[np.diag_indices_from(gram)] += self.regularization
        return gram, self._shift, constant

    def isotropic(self) -> tuple[float, Array | None] | None:
        """Known without M, or when M counts for nothing."""
        if self.M is not None and self.weight:
            return None
        if self.y is None or not self.weight:
            return self.regularization, None
        return self.weight + self.regularization, self._shift

    @cached_property
    def _shift(self) -> Array:
        """weight M'y."""
        target = self.weight * np.asarray(self.y)
        return target if self.M is None else np.asarray(self.M.T @ target)


class LeastSquares(Ridge):
    """(weight/2) ||Mv - y||^2; ``M`` None stands for the identity.

    Parameters
    ----------
    M : matrix or None
        Rows of data; None stands for the identity.
    y : array_like
        Targets, one a row.
    weight : float
        Factor of the sum.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.LeastSquares(np.eye(2), [0.0, 0.0])
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    2.5
    """

    arguments = ("M", "y", "weight")

    def __init__(self, M: Any, y: Any, weight: float = 1.0) -> None:
        if y is None:
            raise InputError("LeastSquares, y: is missing; give one target for each row of M")
        super().__init__(M, y, 0.0, weight)
