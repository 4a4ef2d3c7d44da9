"""weight * sum_j h((Mv)_j - y_j) + (ridge/2) ||v||^2, h quadratic near 0 and linear far out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.inputs import Array, positive, real_vector
from ccmac.objectives.function import Step
from ccmac.objectives.loss import Loss


class Huber(Loss):
    """h(r) = r^2/2 for |r| <= delta, else delta (|r| - delta/2).

    ``y`` None means zero targets. L = weight ||M||^2 + ridge (attained when some v has all
    residuals within delta), mu = ridge.
    """

    slope_lipschitz = 1.0

    def __init__(
        self,
        M: Any = None,
        y: Any = None,
        delta: float = 1.0,
        weight: float = 1.0,
        ridge: float = 0.0,
    ) -> None:
        self.delta = positive("Huber, delta", delta)
        super().__init__(M, None if y is None else real_vector("Huber, y", y), weight, ridge)

    def terms(self, u: Array) -> Array:
        """With c = clip(r, -delta, delta): c (r - c/2)."""
        residual = u if self.y is None else u - self.y
        clipped = np.clip(residual, -self.delta, self.delta)
        return np.asarray(clipped * (residual - 0.5 * clipped))

    @property
    def parameters(self) -> tuple[Array | float, ...]:
        """Targets and delta."""
        return (0.0 if self.y is None else self.y, self.delta)

    @staticmethod
    def slope(u: Array, out: Array, *parameters: Any) -> None:
        """clip(u - y, -delta, delta)."""
        y, delta = parameters
        np.subtract(u, y, out=out)
        np.clip(out, -delta, delta, out=out)

    @property
    def steepest(self) -> float:
        """delta."""
        return self.delta

    def prox_terms(self, v: Array, step: Step) -> Array:
        """v - clip(step r/(1 + step), -step delta, step delta) with r = v - y."""
        residual = v if self.y is None else v - self.y
        bound = step * self.delta
        return np.asarray(v - np.clip(step * residual / (1.0 + step), -bound, bound))

    def state(self) -> Mapping[str, Any]:
        """The loss's arguments and delta."""
        return {**super().state(), "delta": self.delta}
