"""Functions of a linear image Mv with a ridge: their data and their curvature, block by block."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, nonnegative, real_matrix
from ccmac.linalg.extended import Long, product
from ccmac.linalg.symmetric import diagonal_matrix, gram_extremes
from ccmac.objectives.base import Curvature
from ccmac.objectives.function import Function


class Linear(Function):
    """weight * l(Mv) + (ridge/2) ||v||^2 (``M`` None: l(v)); ``y`` has one entry per row of M."""

    def __init__(self, M: Any, y: Array | None, weight: float, ridge: float) -> None:
        name = type(self).__name__
        self.weight = nonnegative(f"{name}, weight", weight)
        self.ridge = nonnegative(f"{name}, ridge", ridge)
        self.M: Any = None if M is None else real_matrix(f"{name}, M", M)
        self.y = y
        if self.M is not None and y is not None:
            check_rows(f"{name}, y", y, self.M)
        self.coordinatewise = self.M is None

    @property
    def size(self) -> int | None:
        """Columns of M, or length of y."""
        if self.M is not None:
            return int(self.M.shape[1])
        return None if self.y is None else len(self.y)

    @property
    @abstractmethod
    def bend(self) -> tuple[float, float]:
        """Bounds (low, high) of weight * l''."""

    @abstractmethod
    def slopes(self, image: Any) -> Any:
        """weight * l' at an image, in its format."""

    def precise_at(self, v: Array | Long) -> Array | Long:
        """weight M'l'(Mv) + ridge v, from M and y themselves."""
        v = v.astype(np.longdouble)
        if self.M is None:
            return np.asarray(self.slopes(v) + self.ridge * v)
        return product(self.M.T, self.slopes(product(self.M, v))) + self.ridge * v

    def curvature(self, d: int, q: int) -> Curvature:
        """From the columns of M that act on x and on z."""
        if self.M is None or math.isinf(self.bend[1]):
            return super().curvature(d, q)
        (L_x, mu_x), (L_z, mu_z) = (self._block(M) for M in (self.M[:, :d], self.M[:, d:]))
        separable = 0 in (d, self.M.shape[1] - d)
        return Curvature(L_x, mu_x, L_z, mu_z, *self.constants(d + q), separable=separable)

    def _block(self, M: Any) -> tuple[float, float]:
        """(L, mu) in the columns M; a block without columns does not count."""
        low, high = self.bend
        L, mu = gram_extremes(M, both=low > 0).bounds()
        if M.shape[1] == 0:
            return L, mu
        return high * L + self.ridge, low * mu + self.ridge

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """From the extreme singular values of [t M_x, s M_z]."""
        low, high = self.bend
        if self.M is None or math.isinf(high):
            return super().scaled_curvature(d, q, t, s)
        scale = np.repeat([t, s], [d, self.M.shape[1] - d])
        scaled = self.M @ diagonal_matrix(scale) if is_sparse(self.M) else self.M * scale
        L, mu = gram_extremes(scaled, both=low > 0).bounds()
        small = min(t, s) ** 2
        large = max(t, s) ** 2
        return (low * mu if low else 0.0) + small * self.ridge, high * L + large * self.ridge


def check_rows(where: str, vector: Array, M: Any) -> None:
    """Raise InputError unless ``vector`` has one entry per row of M."""
    if len(vector) != M.shape[0]:
        raise InputError(
            f"{where}: has {len(vector)} entries but M has {M.shape[0]} rows; they must be equal"
        )


def row_norms_squared(M: Any) -> Array:
    """||M_j||^2 of every row."""
    squares = M.multiply(M) if is_sparse(M) else M * M
    return np.asarray(squares.sum(axis=1))
