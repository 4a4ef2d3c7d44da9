"""Chebyshev polynomials of symmetric operators, evaluated by three-term recurrences only.

Monomial coefficients are never formed: everything here is stable at degree 500.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array

DEGREE_SLACK = 1e-9  # before a degree is rounded up: rounding in sqrt or acosh costs none

Pair = tuple[Array, Array]
Residual = Callable[[Array], Pair]


def outer_degree(low: float, high: float) -> int:
    """N = ceil(sqrt(high/low)) of Algorithm alg:cross-apapc; rounding does not turn 1 into 2."""
    degree = max(1, math.ceil(math.sqrt(high / low) - DEGREE_SLACK))
    if degree > 20_000:
        raise InputError(
            f"constraints: so near to dependent that every step would take {degree:,} products "
            "with them; drop rows that follow from others, or use cross-cg"
        )
    return degree


def minimal_degree(low: float, high: float) -> int:
    """Least N whose correction has spectrum in [11/15, 19/15]."""
    return smallest_degree(low, high, 4 / 15)


def correction_interval(low: float, high: float, degree: int) -> tuple[float, float]:
    """Spectrum of P = I - T_N(..)/T_N(..) on [low, high]: 1 -+ 1/T_N((high+low)/(high-low))."""
    error = 1.0 / growth(degree, low, high)
    return 1.0 - error, 1.0 + error


def chebyshev_correction(
    residual: Residual, w: Array, low: float, high: float, degree: int
) -> Pair:
    """w - Cheb_N(w) (Algorithm alg:cheb-correction) and its multiplier; N residuals.

    Equals P (w - w_ref) for every feasible w_ref, P = I - T_N(c - Q)/T_N(c) scaled to [low, high];
    it lies in Range K' and the multiplier is that of the coupled rows.
    """
    centre = (high + low) / 2
    moved, multiplier = residual(w)
    moved /= centre
    multiplier = multiplier / centre
    if degree == 1:
        return moved, multiplier
    rho = (high - low) ** 2 / 16
    gamma = -centre / 2
    step = -moved
    step_multiplier = -multiplier
    point = w + step
    for _ in range(degree - 1):
        beta = rho / gamma
        gamma = -(centre + beta)
        gradient, more = residual(point)
        step *= beta
        step += gradient
        step /= gamma
        point += step
        step_multiplier = (more + beta * step_multiplier) / gamma
        multiplier = multiplier - step_multiplier
    return np.subtract(w, point, out=point), multiplier


def growth(degree: int, a: float, b: float) -> float:
    """T_degree((b + a)/(b - a)) > 1: how much a degree damps [a, b] against the origin."""
    if b <= a:
        return math.inf
    argument = degree * math.acosh((b + a) / (b - a))
    return math.cosh(argument) if argument < 700 else math.inf


def smallest_degree(a: float, b: float, error: float) -> int:
    """Least m >= 1 with 1/T_m((b+a)/(b-a)) <= error (rounding does not cost a degree)."""
    if b <= a or error >= 1:
        return 1
    per_step = math.acosh((b + a) / (b - a))
    if per_step < 1e-6:  # a / b is lost in rounding: acosh(1 + 2t) = 2 sqrt(t) to first order
        per_step = max(2.0 * math.sqrt(a / b), 1e-9)
    return max(1, math.ceil(math.acosh(1.0 / error) / per_step - DEGREE_SLACK))
