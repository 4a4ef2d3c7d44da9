"""weight * sum_j phi_j((Mv)_j) + (ridge/2) ||v||^2, the shape of the elementwise losses.

A loss supplies phi and its slope as functions of arrays, with its data as parameters that
broadcast: one agent uses them on a vector, many agents at once on a row-per-agent array.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative, real_matrix
from ccmac.linalg.extremes import gram_extremes
from ccmac.objectives.base import Curvature
from ccmac.objectives.function import Function, Step
from ccmac.objectives.linear import gram_curvature, scaled_gram_bounds


class Loss(Function):
    """An elementwise loss of Mv (``M`` None: of v itself) with an optional ridge.

    Smooth losses have L = weight * slope_lipschitz * sigma_max(M)^2 + ridge and mu = ridge. The
    prox exists for M None. One gradient is one product with M and one with M'.
    """

    entrywise_steps = True
    slope_lipschitz: ClassVar[float]
    """sup phi'' (inf: phi has kinks)."""

    def __init__(self, M: Any, y: Array | None, weight: float, ridge: float) -> None:
        name = type(self).__name__
        self.weight = nonnegative(f"{name}, weight", weight)
        self.ridge = nonnegative(f"{name}, ridge", ridge)
        self.M = None if M is None else real_matrix(f"{name}, M", M)
        self.y = y
        if self.M is not None and y is not None and self.M.shape[0] != len(y):
            raise InputError(
                f"{name}, y: has {len(y)} entries but M has {self.M.shape[0]} rows; "
                "they must be equal"
            )
        smooth = math.isfinite(self.slope_lipschitz)
        oracle = {"gradient" if smooth else "subgradient"}
        self.capabilities = frozenset(oracle | ({"prox"} if self.M is None else set()))
        self.coordinatewise = self.M is None

    # -- what a loss supplies -----------------------------------------------------------------
    @abstractmethod
    def terms(self, u: Array) -> Array:
        """phi_j(u_j)."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Array | float, ...]:
        """The data that ``slope`` needs; each is a number or a vector along u."""

    @staticmethod
    @abstractmethod
    def slope(u: Array, out: Array, *parameters: Any) -> None:
        """Write phi_j'(u_j) (one slope at a kink) into ``out``; ``out`` is not ``u``."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """sup |phi'|."""

    @abstractmethod
    def prox_terms(self, v: Array, step: Step) -> Array:
        """argmin_u phi_j(u) + (u - v_j)^2/(2 step), entry by entry."""

    # -- the function ---------------------------------------------------------------------------
    @property
    def size(self) -> int | None:
        """Columns of M, or length of y."""
        if self.M is not None:
            return int(self.M.shape[1])
        return None if self.y is None else len(self.y)

    @cached_property
    def _norm_squared(self) -> float:
        return 1.0 if self.M is None else gram_extremes(self.M, both=False).bounds()[0]

    @property
    def _bend(self) -> float:
        """weight sup phi'', without the 0 * inf of a loss that is switched off."""
        return self.weight * self.slope_lipschitz if self.weight else 0.0

    def constants(self, size: int) -> tuple[float, float]:
        """(weight sup phi'' ||M||^2 + ridge, ridge)."""
        if math.isinf(self._bend):
            return math.inf, self.ridge
        return self._bend * self._norm_squared + self.ridge, self.ridge

    def curvature(self, d: int, q: int) -> Curvature:
        """From the columns of M that act on x and on z."""
        if self.M is None or math.isinf(self._bend):
            return super().curvature(d, q)
        return gram_curvature(
            self.M, d, self.constants(d + q), high=self._bend, low=0.0, ridge=self.ridge
        )

    def scaled_curvature(self, d: int, q: int, t: float, s: float) -> tuple[float, float]:
        """From the norm of [t M_x, s M_z]."""
        if self.M is None or math.isinf(self._bend):
            return super().scaled_curvature(d, q, t, s)
        norm_squared, _ = scaled_gram_bounds(self.M, d, t, s, both=False)
        low, high = min(t, s) ** 2, max(t, s) ** 2
        return low * self.ridge, self._bend * norm_squared + high * self.ridge

    def value_at(self, v: Array) -> float:
        """weight * sum of the terms, plus the ridge."""
        value = self.weight * float(np.sum(self.terms(v if self.M is None else self.M @ v)))
        return value + (0.5 * self.ridge * float(v @ v) if self.ridge else 0.0)

    def gradient_at(self, v: Array) -> Array:
        """weight M' phi'(Mv) + ridge v."""
        image = v if self.M is None else self.M @ v
        slopes = np.empty_like(image)
        self.slope(image, slopes, *self.parameters)
        slopes *= self.weight
        gradient = slopes if self.M is None else np.asarray(self.M.T @ slopes)
        if self.ridge:
            gradient += self.ridge * v
        return gradient

    def prox_at(self, v: Array, step: Step) -> Array:
        """The ridge shrinks point and step: prox of weight*step/(1+ridge*step) phi."""
        if self.M is not None:
            return super().prox_at(v, step)
        shrink = 1.0 + self.ridge * step
        return self.prox_terms(v / shrink, self.weight * step / shrink)

    def lipschitz_at(self, size: int) -> float:
        """weight sup|phi'| min(sum_j ||M_j||, sqrt(rows) ||M||); inf with a ridge."""
        if self.ridge:
            return math.inf
        if self.M is None:
            return self.weight * self.steepest * math.sqrt(size)
        squares = self.M.multiply(self.M) if hasattr(self.M, "multiply") else self.M * self.M
        rows = np.sqrt(np.asarray(squares.sum(axis=1)))
        spectral = math.sqrt(self.M.shape[0] * self._norm_squared)
        return self.weight * self.steepest * min(float(rows.sum()), spectral)

    def state(self) -> Mapping[str, Any]:
        """M, y, weight and ridge."""
        return {"M": self.M, "y": self.y, "weight": self.weight, "ridge": self.ridge}
