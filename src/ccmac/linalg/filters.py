"""Polynomial corrections towards the affine set {w : K w = v}, from its normal residual alone.

``residual(w)`` is K'(K w - v) together with the price of the coupled equation that produced it (a
second array that every linear recurrence carries along). Each residual is one forward and one
adjoint call of the normalized stack.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import growth, smallest_degree
from ccmac.linalg.tolerances import DEGREE_SLACK

Pair = tuple[Array, Array]
Residual = Callable[[Array], Pair]


def outer_degree(low: float, high: float) -> int:
    """N = ceil(sqrt(high/low)) of Algorithm cross-apapc; rounding does not turn 1 into 2."""
    return max(1, math.ceil(math.sqrt(high / low) - DEGREE_SLACK))


def minimal_degree(low: float, high: float) -> int:
    """Least N whose correction has spectrum in [11/15, 19/15]."""
    return smallest_degree(low, high, 4 / 15)


def correction_interval(low: float, high: float, degree: int) -> tuple[float, float]:
    """Spectrum of P = I - T_N(..)/T_N(..) on [low, high]: 1 -+ 1/T_N((high+low)/(high-low))."""
    error = 1.0 / growth(degree, low, high)
    return 1.0 - error, 1.0 + error


def chebyshev_correction(
    residual: Residual, w: Array, low: float, high: float, degree: int, first: Pair | None = None
) -> Pair:
    """w - Cheb_N(w) (Algorithm cheb-correction) and its price; N residuals.

    ``first`` is the residual at ``w`` where it is known already (its array is overwritten).

    Equals P (w - w_ref) for every feasible w_ref, P = I - T_N(c - Q)/T_N(c) scaled to [low, high];
    it lies in Range K' and the price is its coupled multiplier.
    """
    centre = (high + low) / 2
    moved, price = residual(w) if first is None else first
    moved /= centre
    price = price / centre
    if degree == 1:
        return moved, price
    rho, gamma = (high - low) ** 2 / 16, -centre / 2
    step, step_price = -moved, -price
    point = w + step
    for _ in range(degree - 1):
        beta = rho / gamma
        gamma = -(centre + beta)
        gradient, more = residual(point)
        step *= beta
        step += gradient
        step /= gamma
        point += step
        step_price = (more + beta * step_price) / gamma
        price = price - step_price
    return np.subtract(w, point, out=point), price


def first_kind_filter(residual: Residual, x: Array, low: float, high: float, degree: int) -> Pair:
    """RF(x) = w_ref + r(Q)(x - w_ref), |r| < 1/2 on [low, high] (Algorithm cvx-rf), and its price.

    The point that the Chebyshev correction leads to: r(t) = T_N(c - t)/T_N(c), N residuals.
    """
    moved, price = chebyshev_correction(residual, x, low, high, degree)
    return x - moved, -price


def second_kind_filter(residual: Residual, x: Array, high: float, degree: int) -> Pair:
    """UF(x) = w_ref + s(Q)(x - w_ref), |s| <= 1, sqrt(t)|s(t)| <= sqrt(low) (Algorithm cvx-uf)."""
    gradient, price = residual(x)
    before, before_price = x, np.zeros_like(price)
    now, now_price = x - gradient / high, -price / high
    for j in range(1, degree):
        gradient, price = residual(now)
        ahead, behind = 2.0 * (j + 1) / (j + 2), j / (j + 2)
        following = ahead * (now - gradient / high) - behind * before
        following_price = ahead * (now_price - price / high) - behind * before_price
        before, now, before_price, now_price = now, following, now_price, following_price
    return now, now_price
