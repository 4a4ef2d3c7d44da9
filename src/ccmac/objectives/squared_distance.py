"""(weight/2) ||v - centre||^2: ridge terms, squared losses, anchors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array, nonnegative, real_vector
from ccmac.linalg.extremes import diagonal_matrix
from ccmac.objectives.function import Function, Step


class SquaredDistance(Function):
    """(weight/2) ||v - centre||^2; ``centre`` None means the origin, any length."""

    capabilities = frozenset({"gradient", "prox", "quadratic"})
    coordinatewise = True
    entrywise_steps = True

    def __init__(self, weight: float = 1.0, centre: Any = None) -> None:
        self.weight = nonnegative("SquaredDistance, weight", weight)
        self.centre = None if centre is None else real_vector("SquaredDistance, centre", centre)
        self._shift = None if self.centre is None else self.weight * self.centre

    @property
    def size(self) -> int | None:
        """Length of the centre."""
        return None if self.centre is None else len(self.centre)

    def constants(self, size: int) -> tuple[float, float]:
        """L = mu = weight."""
        return self.weight, self.weight

    def value_at(self, v: Array) -> float:
        """(weight/2) ||v - centre||^2."""
        shifted = v if self.centre is None else v - self.centre
        return 0.5 * self.weight * float(shifted @ shifted)

    def gradient_at(self, v: Array) -> Array:
        """weight (v - centre)."""
        return self.weight * v if self._shift is None else self.weight * v - self._shift

    def prox_at(self, v: Array, step: Step) -> Array:
        """(v + step weight centre) / (1 + step weight)."""
        right = v if self._shift is None else v + step * self._shift
        return right / (1.0 + step * self.weight)

    def quadratic_at(self, size: int) -> tuple[Array | sp.csr_array, Array, float]:
        """(weight I, weight centre, weight ||centre||^2 / 2)."""
        H = diagonal_matrix(np.full(size, self.weight))
        centre = np.zeros(size) if self.centre is None else self.centre
        return H, self.weight * centre, 0.5 * self.weight * float(centre @ centre)

    def isotropic(self) -> tuple[float, Array | None]:
        """(weight, weight centre)."""
        return self.weight, self._shift

    def state(self) -> Mapping[str, Any]:
        """weight and centre."""
        return {"weight": self.weight, "centre": self.centre}
