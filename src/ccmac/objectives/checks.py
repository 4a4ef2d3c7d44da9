"""The gradient belongs to the value: for an author's tests, and for ``Custom`` before a run."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ccmac.errors import AssumptionWarning
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Objective
from ccmac.objectives.custom import Custom


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


def check_problem(problem: Any, seed: int = 0) -> int:
    """Compare value and gradient of every ``Custom`` held here; warn where they disagree.

    The constants that it declares are tested on the gradients that a run has seen
    (:meth:`Custom.refuted`). Returns how many parallel gradients were spent, for the ledger.
    """
    spent = 0
    for i, agent in problem.agents.items():
        objective = agent.objective
        if isinstance(objective, Custom) and objective.capabilities - {"prox"}:
            spent = 1
            rng = np.random.default_rng([seed, i])
            order = gradient_slope(objective, problem.d[i], problem.q, rng)
            if order < 1.5 and "gradient" in objective.capabilities:
                text = (
                    f"agent {i}, objective: value and gradient disagree (Taylor remainder of order "
                    f"{order:.2f} instead of 2); check the gradient's formula"
                )
                warnings.warn(AssumptionWarning(text), stacklevel=2)
    return spent
