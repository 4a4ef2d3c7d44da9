"""weight * sum_j log(1 + exp(-y_j (Mv)_j)) + (ridge/2) ||v||^2 for labels y_j in {-1, +1}."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ccmac.inputs import Array, labels
from ccmac.objectives.function import Step
from ccmac.objectives.loss import Loss


class Logistic(Loss):
    """The logistic loss. L = (weight/4) ||M||^2 + ridge is attained at v = 0; mu = ridge."""

    slope_lipschitz = 0.25

    def __init__(
        self, M: Any = None, y: Any = None, weight: float = 1.0, ridge: float = 0.0
    ) -> None:
        self.minus_y = -labels("Logistic, y", y)
        super().__init__(M, -self.minus_y, weight, ridge)

    def terms(self, u: Array) -> Array:
        """log(1 + exp(-y u)) without overflow."""
        return np.logaddexp(0.0, self.minus_y * u)

    @property
    def parameters(self) -> tuple[Array | float, ...]:
        """The negated labels."""
        return (self.minus_y,)

    @staticmethod
    def slope(u: Array, out: Array, *parameters: Any) -> None:
        """-y / (1 + exp(y u)), accurate in both tails."""
        (minus_y,) = parameters
        np.multiply(u, minus_y, out=out)
        expit(out, out=out)
        out *= minus_y

    @property
    def steepest(self) -> float:
        """|phi'| < 1."""
        return 1.0

    def prox_terms(self, v: Array, step: Step) -> Array:
        """y s with s - y v = step / (1 + exp(s)), by safeguarded Newton steps."""
        return np.asarray(-self.minus_y * _root(-self.minus_y * v, step))


def _root(a: Array, step: Step) -> Array:
    """The root s of s - a - step * expit(-s), increasing in s with slope at least 1.

    The root lies between a + step expit(-high) and high = a + step expit(-a). Newton's method
    alone can fall into a 2-cycle even inside a bracket, so every third step bisects.
    """
    high = a + step * expit(-a)
    low = a + step * expit(-high)
    s = 0.5 * (low + high)
    for k in range(1, 121):
        tail = expit(-s)
        residual = s - a - step * tail
        low = np.where(residual < 0, s, low)
        high = np.where(residual > 0, s, high)
        move = residual / (1.0 + step * tail * expit(s))
        newton = np.clip(s - move, low, high)
        if np.all(np.abs(move) <= 1e-15 * (np.abs(s) + np.abs(a))):
            return newton
        s = 0.5 * (low + high) if k % 3 == 0 else newton
    return s
