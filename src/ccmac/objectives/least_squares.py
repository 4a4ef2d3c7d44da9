"""(weight/2) ||Mv - y||^2, with or without a ridge."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, nonnegative, real_vector
from ccmac.linalg.blocks import plus
from ccmac.linalg.symmetric import Extremes, FactorCache, gram_extremes, gram_factorized
from ccmac.objectives.base import Step
from ccmac.objectives.loss import Linear


class Ridge(Linear):
    """(weight/2) ||Mv - y||^2 + (regularization/2) ||v||^2.

    L and mu are weight times the extreme squared singular values of M plus the
    regularization: exact when M is small or has one entry per row, else Lanczos estimates widened
    by a relative 1e-6. One gradient is one product with M and one with M'.

    Parameters
    ----------
    M : matrix
        Rows of data.
    y : array_like
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
        self, M: Any, y: Any = None, regularization: float = 0.0, weight: float = 1.0
    ) -> None:
        name = type(self).__name__
        if M is None:
            raise InputError(f"{name}, M: is missing; of v itself take SquaredDistance")
        if y is None:
            raise InputError(f"{name}, y: is missing; give one target for each row of M")
        self.regularization = nonnegative(f"{name}, regularization", regularization)
        super().__init__(M, real_vector(f"{name}, y", y), weight, self.regularization)
        self.bend = (self.weight, self.weight)
        self._factors = FactorCache()

    @cached_property
    def _extremes(self) -> Extremes:
        return gram_extremes(self.M)

    def constants(self, size: int) -> tuple[float, float]:
        """weight sigma_max(M)^2 and weight sigma_min(M)^2, plus the regularization."""
        L, mu = self._extremes.bounds()
        return self.weight * L + self.regularization, self.weight * mu + self.regularization

    def value_at(self, v: Array) -> float:
        """Half squared residual and ridge."""
        residual = self.M @ v - self.y
        ridge = 0.5 * self.regularization * float(v @ v) if self.regularization else 0.0
        return ridge + 0.5 * self.weight * float(residual @ residual)

    def slopes(self, image: Any) -> Any:
        """weight (Mv - y)."""
        return self.weight * (image - self.y)

    def prox_at(self, v: Array, step: Step) -> Array:
        """Solves with weight M'M + diag(regularization + 1/step); the factor is kept."""
        diagonal = np.broadcast_to(self.regularization + 1.0 / np.asarray(step), v.shape)
        solve = self._factors.get(diagonal, lambda: gram_factorized(self.M, self.weight, diagonal))
        return solve(v / step + self._shift)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(weight M'M + regularization I, weight M'y, weight ||y||^2 / 2)."""
        target = np.asarray(self.y)
        ridge: Any = self.regularization * sp.eye_array(size, format="csr")
        gram = self.weight * (self.M.T @ self.M)
        H = plus(gram, ridge if is_sparse(gram) else ridge.toarray())
        return H, self._shift, 0.5 * self.weight * float(target @ target)

    @cached_property
    def _shift(self) -> Array:
        """weight M'y."""
        return np.asarray(self.M.T @ (self.weight * np.asarray(self.y)))


class LeastSquares(Ridge):
    """(weight/2) ||Mv - y||^2.

    Parameters
    ----------
    M : matrix
        Rows of data.
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
        super().__init__(M, y, 0.0, weight)
