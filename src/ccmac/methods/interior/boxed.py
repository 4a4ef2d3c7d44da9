"""Entries within bounds and their prices, where everybody knows how one follows from the other.

    y = g + T (p + theta y),   p >= 0 at a lower bound, p <= 0 at an upper one, p = 0 between,

T positive semidefinite and theta T at most the identity: the optimality conditions of a small
quadratic problem, with (I - theta T) y - T p = g. Everybody solves it alike by interior points
(Mehrotra), down to products of slack and price of 1e-24: a slack and a price that vanish together
are then zero to 1e-12. No message.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.methods.interior.sides import Newton, Sides, longest

STEPS = 60
FRACTION = 0.995
SOLVED = 1e-24  # mean product of slack and price
LOST = 1e20  # a price at which there is no solution
EXACT = 1e-14  # residual of the equations that rounding leaves
LEAST = 1e-2  # slack at the start, beside the size of the problem


def boxed(T: Array, g: Array, sides: Sides, theta: float) -> tuple[Array, Array]:
    """(y, p); the best that was found where there is no solution."""
    size = max(1.0, float(np.abs(g).max(initial=0.0)))
    A = np.eye(len(g)) - theta * T
    y = sides.middle()
    v = np.ones(sides.count)
    s = np.clip(sides.slack(y, 1.0), LEAST * size, size)
    best = np.inf
    found = (y, np.zeros(len(g)))
    for _ in range(STEPS):
        p = sides.net(v)
        newton = Newton.at(sides, y, s, v, 1.0)
        r = g - A @ y + T @ p
        mu = float(s @ v) / max(sides.count, 1)
        off = float(np.abs(r).max(initial=0.0) + np.abs(newton.rho).max(initial=0.0))
        far = max(off, EXACT * size) + np.sqrt(mu)
        if far < best:
            best = far
            found = (y, p)
        if not mu > SOLVED * size or v.max() > LOST:
            break
        dy, ds, dv = _step(A, T, r, newton, mu)
        alpha = min(1.0, FRACTION * min(longest(s, ds), longest(v, dv)))
        y = y + alpha * dy
        s = s + alpha * ds
        v = v + alpha * dv
    return found


def _step(A: Array, T: Array, r: Array, newton: Newton, mu: float) -> tuple[Array, Array, Array]:
    """(dy, ds, dv): predictor, then corrector."""
    lu = scipy.linalg.lu_factor(A + T * newton.diagonal, check_finite=False)

    def solved(a: Array) -> tuple[Array, Array, Array]:
        dy = scipy.linalg.lu_solve(lu, r + T @ newton.right(a)[0], check_finite=False)
        return dy, *newton.steps(a, dy, 0.0, 1.0)

    s, v, (rest, zero, one) = newton.s, newton.v, newton.parts
    _, ds, dv = solved(rest + zero)
    reach = min(1.0, longest(s, ds), longest(v, dv))
    after = float((s + reach * ds) @ (v + reach * dv)) / len(s)
    return solved(rest + zero + (after / mu) ** 3 * mu * one + newton.second(ds, dv))
