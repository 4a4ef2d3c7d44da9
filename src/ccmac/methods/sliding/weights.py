"""The proximal map of F on execution variables, and a first guess of the step that suits it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ccmac.problem import Problem
from ccmac.realizations.objective import ExecutionObjective
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]
GRID = 10.0 ** np.arange(-8, 7)


def proximal(
    objective: ExecutionObjective, w: Array, weight: float, weight_z: float | None = None
) -> Array:
    """argmin_u F(u) + (weight/2) ||u - w||^2, agent by agent. Cost: 1 prox, no communication.

    With x = t x~ and z = s z~ the steps are t^2/weight and s^2/weight (``weight_z`` where it
    differs from that of x). A lift's y is free of F.
    """
    objective.ledger.charge(proxes=1)
    space, t, s = objective.space, objective.t, objective.s
    out = w.copy()
    for k, agent in enumerate(objective.problem.agents.values()):
        x, z = agent.objective.prox(
            t * space.x_of(w, k), s * space.z(w)[k], t * t / weight, s * s / (weight_z or weight)
        )
        space.x_of(out, k)[...] = x / t
        space.z(out)[k] = z / s
    return out


def unequal_steps(problem: Problem, runtime: Runtime) -> bool:
    """Whether every agent's prox takes different steps in x and z; rides with the declarations."""
    rows = []
    for i, agent in problem.agents.items():
        try:
            agent.objective.prox(np.zeros(problem.d[i]), np.zeros(problem.q), 1.0, 2.0)
            rows.append([1.0])
        except TypeError:
            rows.append([0.0])
    return bool(runtime.gather(np.array(rows), riding=True).all())


def first_weight(
    objective: ExecutionObjective, w0: Array, move: Callable[[float], Array] | None = None
) -> float:
    """The weight at which one proximal step makes half of the progress that F allows.

    ``move`` gives the point reached at a weight, where a step is more than the prox of F. Tried on
    powers of ten, every agent by itself; the values travel in one reduction. Where F has no minimum
    the weight is that of a step as long as 1 + ||w0||.
    """
    space = objective.space
    values, lengths = [], []
    for weight in GRID:
        point = move(float(weight)) if move else proximal(objective, w0, float(weight))
        values.append(objective.values(point))
        lengths.append(space.partial_dots(point - w0, point - w0))
    size = space.partial_dots(w0, w0)
    totals = space.runtime.total(np.concatenate([*values, *lengths, size], axis=1))
    heights, moves = totals[: len(GRID)], np.sqrt(totals[len(GRID) : -1])
    top = float(heights[-1])
    gains = top - heights
    if not gains[0] > 0:
        return 1.0
    if gains[0] > 2.0 * gains[1]:  # still falling at the longest step: no minimum
        return _crossing(moves, 1.0 + math.sqrt(float(totals[-1])))
    return _crossing(gains, 0.5 * float(gains[0]))


def _crossing(values: Array, level: float) -> float:
    """Where a decreasing function of the weight passes ``level``, log-linear on the grid."""
    above = np.nonzero(values >= level)[0]
    if not above.size:
        return float(GRID[0])
    k = int(above[-1])
    if k + 1 == len(GRID):
        return float(GRID[-1])
    share = (values[k] - level) / max(values[k] - values[k + 1], 1e-300)
    return float(GRID[k] * (GRID[k + 1] / GRID[k]) ** share)
