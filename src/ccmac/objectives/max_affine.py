"""max_j (Mv + c)_j, a piecewise linear function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, real_matrix, real_vector
from ccmac.objectives.function import Function


class MaxAffine(Function):
    """max_j (Mv + c)_j; every row of M is a subgradient somewhere, the longest bounds them all.

    One subgradient is one product with M. There is no closed prox.
    """

    capabilities = frozenset({"subgradient"})

    def __init__(self, M: Any, c: Any = None) -> None:
        self.M = real_matrix("MaxAffine, M", M)
        if self.M.shape[0] == 0:
            raise InputError("MaxAffine, M: has no rows; a maximum needs at least one")
        self.c = np.zeros(self.M.shape[0]) if c is None else real_vector("MaxAffine, c", c)
        if len(self.c) != self.M.shape[0]:
            raise InputError(
                f"MaxAffine, c: has {len(self.c)} entries but M has {self.M.shape[0]} rows; "
                "they must be equal"
            )

    @property
    def size(self) -> int:
        """Columns of M."""
        return int(self.M.shape[1])

    def constants(self, size: int) -> tuple[float, float]:
        """Not smooth, not strongly convex."""
        return math.inf, 0.0

    def value_at(self, v: Array) -> float:
        """The largest entry."""
        return float(np.max(self.M @ v + self.c))

    def gradient_at(self, v: Array) -> Array:
        """The first row that attains the maximum."""
        row = self.M[[int(np.argmax(self.M @ v + self.c))]]
        return np.asarray(row.toarray() if is_sparse(row) else row).ravel()

    def lipschitz_at(self, size: int) -> float:
        """Norm of the longest row."""
        squares = self.M.multiply(self.M) if is_sparse(self.M) else self.M * self.M
        return math.sqrt(float(np.max(squares.sum(axis=1))))

    def state(self) -> Mapping[str, Any]:
        """M and c."""
        return {"M": self.M, "c": self.c}
