"""weight ||v - centre||_1 and the elastic net."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.inputs import Array, nonnegative, real_vector
from ccmac.objectives.function import Function, Step


class L1(Function):
    """weight ||v - centre||_1: a lasso penalty, or the absolute loss with targets ``centre``."""

    capabilities = frozenset({"subgradient", "prox"})
    coordinatewise = True
    entrywise_steps = True

    def __init__(self, weight: float = 1.0, centre: Any = None) -> None:
        self.weight = nonnegative("L1, weight", weight)
        self.centre = None if centre is None else real_vector("L1, centre", centre)

    @property
    def size(self) -> int | None:
        """Length of the centre."""
        return None if self.centre is None else len(self.centre)

    def constants(self, size: int) -> tuple[float, float]:
        """Not smooth, not strongly convex."""
        return math.inf, 0.0

    def _shifted(self, v: Array) -> Array:
        return v if self.centre is None else v - self.centre

    def value_at(self, v: Array) -> float:
        """weight times the sum of |v - centre|."""
        return self.weight * float(np.abs(self._shifted(v)).sum())

    def gradient_at(self, v: Array) -> Array:
        """weight sign(v - centre): 0 at a kink."""
        return self.weight * np.sign(self._shifted(v))

    def prox_at(self, v: Array, step: Step) -> Array:
        """Soft threshold around the centre."""
        shifted = soft_threshold(self._shifted(v), step * self.weight)
        return shifted if self.centre is None else shifted + self.centre

    def lipschitz_at(self, size: int) -> float:
        """weight sqrt(size)."""
        return self.weight * math.sqrt(size)

    def state(self) -> Mapping[str, Any]:
        """weight and centre."""
        return {"weight": self.weight, "centre": self.centre}


class ElasticNet(Function):
    """l1 ||v||_1 + (l2/2) ||v||^2."""

    capabilities = frozenset({"subgradient", "prox"})
    coordinatewise = True
    entrywise_steps = True

    def __init__(self, l1: float, l2: float) -> None:
        self.l1 = nonnegative("ElasticNet, l1", l1)
        self.l2 = nonnegative("ElasticNet, l2", l2)

    def constants(self, size: int) -> tuple[float, float]:
        """Not smooth unless l1 = 0; mu = l2."""
        return (math.inf if self.l1 else self.l2), self.l2

    def value_at(self, v: Array) -> float:
        """Both norms."""
        return self.l1 * float(np.abs(v).sum()) + 0.5 * self.l2 * float(v @ v)

    def gradient_at(self, v: Array) -> Array:
        """l1 sign(v) + l2 v."""
        return self.l1 * np.sign(v) + self.l2 * v

    def prox_at(self, v: Array, step: Step) -> Array:
        """Soft threshold, then shrink by 1 + step l2."""
        return soft_threshold(v, step * self.l1) / (1.0 + step * self.l2)

    def lipschitz_at(self, size: int) -> float:
        """l1 sqrt(size); none with l2 > 0."""
        return math.inf if self.l2 else self.l1 * math.sqrt(size)

    def state(self) -> Mapping[str, Any]:
        """l1 and l2."""
        return {"l1": self.l1, "l2": self.l2}


def soft_threshold(v: Array, threshold: Step) -> Array:
    """sign(v) max(|v| - threshold, 0)."""
    return np.asarray(v - np.clip(v, -threshold, threshold))
