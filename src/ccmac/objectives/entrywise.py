"""What acts entry by entry, known by its slope: second derivatives, and argmin of g(v) + <h, v>."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from ccmac.inputs import Array


def rise(slope: Callable[[Array], Array], v: Array, least: Array | float = 0.0) -> Array:
    """Second derivatives of what acts entry by entry, from its slope: two slopes."""
    h = 1e-5 * (1.0 + np.abs(v))
    return np.maximum((slope(v + h) - slope(v - h)) / (2 * h), least)


def increasing_root(
    slope: Callable[[Array], Array], linear: Array, mu: Array, start: Array
) -> tuple[Array, int]:
    """(v with slope(v) + linear = 0, slopes spent); the slope acts entry by entry, rises by mu > 0.

    The root lies within |slope(v) + linear|/mu of any v, which gives a bracket. Newton's method may
    fall into a 2-cycle even inside one, so an entry whose residual did not halve is bisected.
    Derivatives are central differences: 3 slopes a step.
    """
    v = start
    residual = slope(start) + linear
    count = 1
    reach = residual / mu
    low = v - np.maximum(reach, 0.0)
    high = v - np.minimum(reach, 0.0)
    before = np.full_like(residual, np.inf)
    for _ in range(100):
        bend = rise(slope, v, mu)
        # a residual below this share of its terms is rounding
        done = np.abs(residual) <= 1e-14 * np.maximum(np.abs(linear), bend * np.abs(v))
        count += 2
        if done.all():
            break
        newton = v - residual / bend
        good = (np.abs(residual) <= 0.5 * before) & (newton >= low) & (newton <= high)
        before = np.abs(residual)
        v = np.where(done, v, np.where(good, newton, 0.5 * (low + high)))
        residual = slope(v) + linear
        low = np.where(residual <= 0, v, low)
        high = np.where(residual >= 0, v, high)
        count += 1
    return v, count


def margin_root(a: Array, step: Array | float) -> Array:
    """The root s of s - a - step * expit(-s), increasing in s with slope at least 1.

    The root lies between a + step expit(-high) and high = a + step expit(-a). Newton's method
    alone can fall into a 2-cycle even inside a bracket, so every third step bisects.
    """
    high = a + step * expit(-a)
    low = a + step * expit(-high)
    s = 0.5 * (low + high)
    for k in range(1, 121):
        tail = expit(-s)
        residual = s - a - step * tail
        low = np.where(residual < 0, s, low)
        high = np.where(residual > 0, s, high)
        move = residual / (1.0 + step * tail * expit(s))
        newton = np.clip(s - move, low, high)
        if np.all(np.abs(move) <= 1e-15 * (np.abs(s) + np.abs(a))):
            return newton
        s = 0.5 * (low + high) if k % 3 == 0 else newton
    return s
