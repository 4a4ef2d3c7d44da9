"""The nonnegative orthant: bounds and inequalities."""

from __future__ import annotations

import numpy as np

from ccmac.cones.base import WRONG, Cone, Face, Fixed, Scaling
from ccmac.inputs import Array


class OrthantScaling(Scaling):
    """W = diag(sqrt(s / v))."""

    def __init__(self, s: Array, v: Array) -> None:
        self.weight = np.sqrt(s / v)
        self.point = np.sqrt(s * v)

    def apply(self, a: Array) -> Array:
        return np.asarray(self.weight * a)

    def inverse(self, a: Array) -> Array:
        return np.asarray(a / self.weight)

    def inverse_matrix(self) -> Array:
        return np.asarray(1.0 / self.weight[:, :, None])


class Nonnegative(Cone):
    """k entries s >= 0: with h - G x - H z = s, the inequalities G x + H z <= h.

    Parameters
    ----------
    size : int
        The number of entries.

    Examples
    --------
    >>> import ccmac
    >>> ccmac.cones.Nonnegative(2)
    Nonnegative(size=2)
    """

    kind = "nonnegative"

    def identity(self, count: int, dim: int) -> Array:
        return np.ones((count, dim))

    def margin(self, s: Array) -> Array:
        return s[:, 0]

    def length(self, s: Array, step: Array) -> float:
        falls = step < 0
        return float(np.min(-s[falls] / step[falls])) if falls.any() else np.inf

    def scaling(self, s: Array, v: Array) -> Scaling:
        return OrthantScaling(s, v)

    def face(self, s: Array, v: Array, s0: Array, v0: Array) -> Face:
        return Fixed(v / v0 > s / s0 + WRONG)

    def product(self, a: Array, b: Array) -> Array:
        return np.asarray(a * b)

    def division(self, a: Array, b: Array) -> Array:
        return np.asarray(b / a)
