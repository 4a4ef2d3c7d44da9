"""weight * sum_j max(0, 1 - y_j (Mv)_j) + (ridge/2) ||v||^2 for labels y_j in {-1, +1}."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmac.inputs import Array, labels
from ccmac.objectives.function import Step
from ccmac.objectives.loss import Loss


class Hinge(Loss):
    """The support vector machine's loss; not smooth, mu = ridge."""

    slope_lipschitz = math.inf

    def __init__(
        self, M: Any = None, y: Any = None, weight: float = 1.0, ridge: float = 0.0
    ) -> None:
        self.minus_y = -labels("Hinge, y", y)
        super().__init__(M, -self.minus_y, weight, ridge)

    def terms(self, u: Array) -> Array:
        """max(0, 1 - y u)."""
        return np.maximum(0.0, 1.0 + self.minus_y * u)

    @property
    def parameters(self) -> tuple[Array | float, ...]:
        """The negated labels."""
        return (self.minus_y,)

    @staticmethod
    def slope(u: Array, out: Array, *parameters: Any) -> None:
        """-y where y u < 1, else 0."""
        (minus_y,) = parameters
        np.multiply(u, minus_y, out=out)
        np.greater(out, -1.0, out=out)
        out *= minus_y

    @property
    def steepest(self) -> float:
        """1."""
        return 1.0

    def prox_terms(self, v: Array, step: Step) -> Array:
        """The margin s = y v moves up by at most ``step``, never past 1."""
        margin = -self.minus_y * v
        return np.asarray(-self.minus_y * np.maximum(margin, np.minimum(margin + step, 1.0)))
