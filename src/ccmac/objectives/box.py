"""The indicator of low <= v <= high."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, real_vector
from ccmac.objectives.function import Function, Step


class Box(Function):
    """0 where low <= v <= high, +inf elsewhere; the prox clips.

    Bounds are numbers (any length of v) or vectors, and may be infinite. There is no gradient:
    methods that need one refuse, proximal ones accept.
    """

    capabilities = frozenset({"prox"})
    coordinatewise = True
    entrywise_steps = True

    def __init__(self, low: Any = -math.inf, high: Any = math.inf) -> None:
        self.low = _bound("Box, low", low)
        self.high = _bound("Box, high", high)
        if self.low.ndim and self.high.ndim and len(self.low) != len(self.high):
            raise InputError(
                f"Box, high: has {len(self.high)} entries but low has {len(self.low)}; "
                "they must be equal"
            )
        if (self.low > self.high).any() or (self.low == math.inf).any():
            raise InputError("Box, low: exceeds high somewhere; no point satisfies the bounds")
        if (self.high == -math.inf).any():
            raise InputError("Box, high: is -inf somewhere; no point satisfies the bounds")

    @property
    def size(self) -> int | None:
        """Length of the bounds when one is a vector."""
        return next((len(bound) for bound in (self.low, self.high) if bound.ndim), None)

    def constants(self, size: int) -> tuple[float, float]:
        """Not smooth, not strongly convex."""
        return math.inf, 0.0

    def value_at(self, v: Array) -> float:
        """0 inside, +inf outside."""
        return 0.0 if ((self.low <= v) & (v <= self.high)).all() else math.inf

    def prox_at(self, v: Array, step: Step) -> Array:
        """clip(v, low, high)."""
        return np.clip(v, self.low, self.high)

    def state(self) -> Mapping[str, Any]:
        """The bounds."""
        return {"low": self.low, "high": self.high}


def _bound(where: str, value: Any) -> Array:
    bound = real_vector(where, value, infinite=True)
    return bound[0] if np.ndim(value) == 0 else bound
