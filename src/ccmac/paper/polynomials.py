"""Chebyshev polynomials of the paper: x^{-1/2}, a filter of graphs, filters of schedules."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import scipy

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import Pair, Residual, chebyshev_correction, growth

Apply = Callable[[Array], Array]


# -- x^{-1/2}: the separate normalizer of Proposition prop:poly-normalization ------------------
def paper_degree(ratio: float, accuracy: float) -> int:
    """N with N + 1 = ceil(sqrt(ratio)/2 log(6/accuracy)) (Proposition prop:poly-normalization)."""
    return 0 if ratio <= 1 else max(math.ceil(math.sqrt(ratio) / 2 * math.log(6 / accuracy)) - 1, 0)


def inverse_root(a: float, b: float, degree: int) -> Array:
    """Chebyshev coefficients on [a, b] of the interpolant of x^{-1/2} at degree + 1 roots.

    Relative error |sqrt(x) p(x) - 1| <= 1/T_{degree+1}((b+a)/(b-a)).
    """
    if b <= a:
        return np.array([((a + b) / 2) ** -0.5])
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = ((b + a) / 2 + (b - a) / 2 * nodes) ** -0.5
    coefficients = np.asarray(scipy.fft.dct(values)) / (degree + 1)
    coefficients[0] /= 2
    return coefficients


def inverse_root_interval(a: float, b: float, coefficients: Array) -> tuple[float, float]:
    """Extremes of x p(x)^2 over [a, b]: the true spectrum of the normalized Gram matrix.

    Of large degrees (1 -+ e)^2, where e bounds the error of the interpolant.
    """
    # Of a polynomial's values, about 1, in a recurrence of some dozen steps.
    rounding = 1e-14
    # Beyond it a range is that of the proved error: a grid would take seconds.
    if len(coefficients) > 2000:
        error = 1.0 / growth(len(coefficients), a, b)
        return (1.0 - error) ** 2 - rounding, (1.0 + error) ** 2 + rounding
    grid = np.cos(np.linspace(0, np.pi, 64 * (len(coefficients) + 1)))
    x = (b + a) / 2 + (b - a) / 2 * grid
    values = x * np.polynomial.chebyshev.chebval(grid, coefficients) ** 2
    # Extremes between the points are missed by at most (pi / 128)^2 / 2 = 3e-4 of the range.
    slack = 1e-3 * (values.max() - values.min()) + rounding
    return float(values.min() - slack), float(values.max() + slack)


def tight_degree(ratio: float, accuracy: float) -> int:
    """Least degree whose computed interval lies within [1 - accuracy, 1 + accuracy].

    The lower end decides: the upper one is never farther from one. It grows with the degree.
    """

    def close(degree: int) -> bool:
        low, _ = inverse_root_interval(1.0, ratio, inverse_root(1.0, ratio, degree))
        return low >= 1 - accuracy

    return bisect_left(range(paper_degree(ratio, accuracy)), True, key=close)


def clenshaw(coefficients: Array, a: float, b: float, apply: Apply, v: Array) -> Array:
    """p(Q) v for p = sum c_k T_k on [a, b]; costs len(coefficients) - 1 products with Q."""
    degree = len(coefficients) - 1
    if degree == 0 or b <= a:
        return np.asarray(float(np.sum(coefficients)) * v if b <= a else coefficients[0] * v)
    scale = 2.0 / (b - a)
    shift = (b + a) / (b - a)
    ahead = np.zeros_like(v)
    current = coefficients[degree] * v
    for k in range(degree - 1, 0, -1):
        image = scale * apply(current) - shift * current
        ahead, current = current, coefficients[k] * v + 2.0 * image - ahead
    return np.asarray(coefficients[0] * v + scale * apply(current) - shift * current - ahead)


# -- graph filter ------------------------------------------------------------------------------
def graph_filter_degree(ratio: float) -> int:
    """nu = ceil(sqrt(ratio)/2 log 4): 1 when the interval is a point.

    Equation eq:graph-cheb-filter.
    """
    return math.ceil(math.sqrt(ratio) / 2 * math.log(4))


def graph_filter(apply: Apply, v: Array, low: float, high: float, degree: int) -> Array:
    """P_W(W) v = v - T_nu((c - W)/s) v / T_nu(c/s); P_W(x) = x/low when low = high. nu rounds."""
    if high <= low * (1 + 1e-12):  # one eigenvalue, but for rounding: a complete graph
        return np.asarray(apply(v) / low)
    centre = (high + low) / 2
    half = (high - low) / 2
    ratio = centre / half
    # Recurrence on T_k(.)/T_k(ratio) with rho_k = T_{k-1}/T_k: never overflows.
    previous = v
    current = (centre * v - apply(v)) / half / ratio
    rho = 1.0 / ratio
    for _ in range(degree - 1):
        rho_next = 1.0 / (2.0 * ratio - rho)
        image = (centre * current - apply(current)) / half
        current, previous = 2.0 * rho_next * image - rho_next * rho * previous, current
        rho = rho_next
    return np.asarray(v - current)


# -- filters of the schedules without strong convexity ---------------------------------------------
def first_kind_filter(residual: Residual, x: Array, low: float, high: float, degree: int) -> Pair:
    """RF(x) = w_ref + r(Q)(x - w_ref), |r| < 1/2 on [low, high]; its multiplier.

    Algorithm alg:cvx-rf.

    The point that the Chebyshev correction leads to: r(t) = T_N(c - t)/T_N(c), N residuals.
    """
    moved, multiplier = chebyshev_correction(residual, x, low, high, degree)
    return x - moved, -multiplier


def second_kind_filter(residual: Residual, x: Array, high: float, degree: int) -> Pair:
    """UF(x) = w_ref + s(Q)(x - w_ref), |s| <= 1, sqrt(t)|s(t)| <= sqrt(low).

    Algorithm alg:cvx-uf.
    """
    gradient, multiplier = residual(x)
    before = x
    earlier = np.zeros_like(multiplier)
    now = x - gradient / high
    current = -multiplier / high
    for j in range(1, degree):
        gradient, multiplier = residual(now)
        ahead = 2.0 * (j + 1) / (j + 2)
        behind = j / (j + 2)
        following = ahead * (now - gradient / high) - behind * before
        later = ahead * (current - multiplier / high) - behind * earlier
        before = now
        now = following
        earlier = current
        current = later
    return now, current
