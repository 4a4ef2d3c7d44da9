"""The zero cone: equations. Its dual is everything, and nothing is scaled."""

from __future__ import annotations

import numpy as np

from ccmac.cones.base import Cone, Face, Fixed, Scaling
from ccmac.inputs import Array


class NoScaling(Scaling):
    """W = 0: ds = 0."""

    def __init__(self, s: Array) -> None:
        self.point = np.zeros_like(s)

    def apply(self, a: Array) -> Array:
        return np.zeros_like(a)

    def inverse(self, a: Array) -> Array:
        return np.zeros_like(a)

    def inverse_matrix(self) -> Array:
        return np.ones((*self.point.shape, 1))


class Zero(Cone):
    """k entries s = 0: the equations G x + H z = h.

    Parameters
    ----------
    size : int
        The number of entries.

    Examples
    --------
    >>> import ccmac
    >>> ccmac.cones.Zero(1)
    Zero(size=1)
    """

    kind = "zero"
    degree = 0

    def identity(self, count: int, dim: int) -> Array:
        return np.zeros((count, dim))

    def margin(self, s: Array) -> Array:
        return np.asarray(-np.abs(s[:, 0]))

    def length(self, s: Array, step: Array) -> float:
        return np.inf

    def scaling(self, s: Array, v: Array) -> Scaling:
        return NoScaling(s)

    def face(self, s: Array, v: Array, s0: Array, v0: Array) -> Face:
        return Fixed(np.ones(s.shape, dtype=bool))

    def product(self, a: Array, b: Array) -> Array:
        return np.zeros_like(a)

    def division(self, a: Array, b: Array) -> Array:
        return np.zeros_like(b)
