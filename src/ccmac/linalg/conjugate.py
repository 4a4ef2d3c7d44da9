"""Conjugate residuals on G = K^'K^: the least ||v - G y|| over a growing Krylov space.

Nothing about the spectrum is assumed; after k steps ||v - G y|| is at most what any polynomial
filter of degree k reaches on any interval. In the pipelined form (Ghysels and Vanroose, Parallel
Computing 40, 2014) the three scalars of a step are inner products of vectors that exist before the
next product with G, so they travel in its messages:

    w = G v;  repeat  n = G w  with  gamma = <v, w>,  delta = <w, w>,  ||v||^2  piggybacked
              beta = gamma/gamma_old,  alpha = gamma/(delta - beta gamma/alpha_old)
              z = n + beta z,  q = w + beta q,  p = v + beta p,  y += alpha p
              v -= alpha q,  w -= alpha z

Cost: steps + 2 products with G, steps + 1 piggybacked reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.inputs import Array


@dataclass(frozen=True)
class Remainder:
    """v - G y = ``remaining`` = v + K'lambda; ``multiplier`` is lambda's coupled part.

    ``left`` is the norm of what remains, as the recursion knows it. ``lowest`` and ``highest``
    are Rayleigh quotients that were met: for v in Range G they lie
    between the least and the largest positive eigenvalue of G.
    """

    remaining: Array
    y: Array
    multiplier: Array
    steps: int
    left: float
    lowest: float
    highest: float


def conjugate_residuals(
    system: Any, v: Array, done: Callable[[float, float], bool], limit: int, *, trusted: float = 0.0
) -> Remainder:
    """Reduce ``v`` until ``done(||v||, ||G v||)``, at most ``limit`` steps.

    ``system`` has a ``space``, ``residual(w)``, which is (G w, its multiplier), and
    ``zero_multiplier()``. Quotients count while ||v|| >= ``trusted``.
    """
    v, y, multiplier = v.copy(), np.zeros_like(v), system.zero_multiplier()
    w, multiplier_w = system.residual(v)
    p = np.zeros_like(v)
    q = np.zeros_like(v)
    z = np.zeros_like(v)
    multiplier_q = np.zeros_like(multiplier_w)
    multiplier_z = np.zeros_like(multiplier_w)
    before = math.inf
    alpha = 1.0
    least = math.inf
    lowest = math.inf
    highest = 0.0
    steps = 0
    while True:
        scalars = system.space.piggyback((v, v), (v, w), (w, w))
        n, multiplier_n = system.residual(w)
        vv, gamma, delta = (float(s) for s in scalars.value)
        # Rounding alone makes the norm grow or the form negative: nothing more is to be had.
        if not (0 < vv <= least * (1 + 1e-9) and gamma > 0 and delta > 0):
            break
        least = vv
        if vv >= trusted**2:
            lowest = min(lowest, gamma / vv)
            highest = max(highest, delta / gamma)
        if steps == limit or done(math.sqrt(vv), math.sqrt(delta)):
            break
        beta = gamma / before
        curvature = delta - beta * gamma / alpha
        if curvature <= 0:
            break
        alpha = gamma / curvature
        before = gamma
        for old, new in ((z, n), (q, w), (p, v)):
            np.multiply(old, beta, out=old)
            np.add(old, new, out=old)
        multiplier_z = multiplier_n + beta * multiplier_z
        multiplier_q = multiplier_w + beta * multiplier_q
        y += alpha * p
        v -= alpha * q
        w -= alpha * z
        multiplier = multiplier - alpha * multiplier_q
        multiplier_w = multiplier_w - alpha * multiplier_z
        steps += 1
    return Remainder(v, y, multiplier, steps, math.sqrt(max(vv, 0.0)), lowest, highest)
