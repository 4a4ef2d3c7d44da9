"""Checks that an objective keeps its word; for its author's tests and for ``Custom`` at run time.

- :func:`gradient_slope`: the gradient belongs to the value (Taylor remainder of second order);
- :func:`lipschitz_probe`: the declared smoothness and strong convexity hold where probed.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ccmac.errors import AssumptionWarning
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Objective
from ccmac.objectives.custom import Custom, Rates


def gradient_slope(
    objective: Objective, d: int, q: int, rng: np.random.Generator, *, scale: float = 1.0
) -> float:
    """Order of |f(u + hv) - f(u) - h <grad f(u), v>| in h: about 2 (or more) for a right gradient.

    A wrong gradient gives 1. The median of the local orders over h = 10^-1 ... 10^-5 is returned;
    inf when the remainder drowns in roundoff (f is affine there). Cost: 1 gradient.
    """
    u = scale * rng.standard_normal(d + q)
    v = rng.standard_normal(d + q)
    start = objective.value(u[:d], u[d:])
    derivative = float(np.concatenate(objective.gradient(u[:d], u[d:])) @ v)
    steps = 10.0 ** -np.arange(1.0, 5.25, 0.5)
    remainders = []
    noise = []
    for h in steps:
        moved = u + h * v
        value = objective.value(moved[:d], moved[d:])
        remainders.append(abs(value - start - h * derivative))
        noise.append(100 * EPS * (abs(value) + abs(start) + abs(h * derivative)))
    seen = np.array(remainders) > np.array(noise)
    if np.count_nonzero(seen) < 2:
        return math.inf
    order = np.diff(np.log10(np.array(remainders)[seen])) / np.diff(np.log10(steps[seen]))
    return float(np.median(order))


def lipschitz_probe(
    objective: Objective, d: int, q: int, rng: np.random.Generator, *, powers: int = 6
) -> Rates:
    """The rates at which the gradient changes: between random points, and by power iterations.

    Power iterations on differences of the gradient turn a - b towards the directions of largest
    and smallest curvature. A rate beyond the declared constants is certain proof against them (the
    converse is not): :meth:`Rates.refute`. Cost: 4 (2 + 2 powers) gradients.
    """
    rates = Rates()
    L = objective.curvature(d, q).L

    def slope(u: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.concatenate(objective.gradient(u[:d], u[d:]))

    for _ in range(4):
        a, b = (10.0 ** rng.uniform(-1, 1) * rng.standard_normal(d + q) for _ in range(2))
        at_a = slope(a)
        rates.see(a, at_a, b, slope(b), L)
        h = 1e-3 * (1.0 + float(np.linalg.norm(a)))
        for largest in (True, False):
            v = rng.standard_normal(d + q)
            for _ in range(powers):
                v /= float(np.linalg.norm(v)) or 1.0
                at_b = slope(a + h * v)
                rates.see(a, at_a, a + h * v, at_b, L)
                ahead = (at_b - at_a) / h if largest else rates.high * v - (at_b - at_a) / h
                v = ahead if 0 < float(np.linalg.norm(ahead)) < math.inf else v
    return rates


def check_problem(problem: Any, seed: int = 0) -> int:
    """Probe every ``Custom`` objective of a problem that is held here; warn where it breaks its
    word.

    Returns how many parallel gradients were spent (0 without ``Custom``), for the ledger.
    """
    spent = 0
    for i, agent in problem.agents.items():
        objective = agent.objective
        if not isinstance(objective, Custom) or not objective.capabilities - {"prox"}:
            continue
        rng = np.random.default_rng([seed, i])
        sizes = problem.d[i], problem.q
        spent = 57  # the probe's 56 and the slope's one
        doubts = [
            lipschitz_probe(objective, *sizes, rng).refute(
                objective.smoothness, objective.strong_convexity
            )
        ]
        if "gradient" in objective.capabilities:
            order = gradient_slope(objective, *sizes, rng)
            if order < 1.5:
                doubts.append(
                    f"value and gradient disagree (Taylor remainder of order {order:.2f} "
                    "instead of 2); check the gradient's formula"
                )
        for text in filter(None, doubts):
            warnings.warn(AssumptionWarning(f"agent {i}, objective: {text}"), stacklevel=2)
    return spent
