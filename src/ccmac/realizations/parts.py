"""F = H + G: a smooth part H met by gradients, a simple part G met by its proximal map.

A sum that has no prox of its own (a loss of Mx with an L1 penalty, say) is taken apart: kinks,
boxes and squared distances go to G, the other smooth terms to H. Also here: which steps a prox
takes, and a first guess of the step that suits F.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.objectives.base import Function, Objective
from ccmac.objectives.separable import Separable
from ccmac.objectives.sum import Limited, Sum
from ccmac.problem import Agent, Problem
from ccmac.realizations.base import ExecutionObjective, Realized, proximal
from ccmac.workspace import Workspace

Pair = tuple[Function | None, Function | None]
GRID = 10.0 ** np.arange(-8, 7)


def split(objective: Objective) -> tuple[Objective, Objective] | None:
    """(H, G) with H smooth, G with a prox; None when a term offers neither."""
    if isinstance(objective, Separable):
        x = _split(objective.x_part)
        z = _split(objective.z_part)
        if x is None or z is None:
            return None
        return Separable(x[0], z[0]), Separable(x[1], z[1])
    if isinstance(objective, Function):
        pair = _split(objective)
        return None if pair is None else (pair[0] or Separable(), pair[1] or Separable())
    if isinstance(objective, Limited) and "prox" not in objective.capabilities:
        inner = objective.objective
        smooth = "gradient" in inner.capabilities
        parts = (inner, Separable()) if smooth else split(inner)
        found = None if parts is None else objective.taken_apart(*parts)
        return found if found is not None and "prox" in found[1].capabilities else None
    if "gradient" in objective.capabilities:
        return objective, Separable()
    return (Separable(), objective) if "prox" in objective.capabilities else None


def _split(part: Function | None) -> Pair | None:
    if part is None or "prox" in part.capabilities:
        return None, part
    if "gradient" in part.capabilities:
        return part, None
    if not isinstance(part, Sum):
        return None
    smooth = [p for p in part.parts if "gradient" in p.capabilities and p.isotropic() is None]
    simple = Sum(*(p for p in part.parts if p not in smooth))
    return (Sum(*smooth), simple) if smooth and "prox" in simple.capabilities else None


def split_problem(work: Workspace) -> tuple[Problem, Problem] | None:
    """The agents' smooth and simple parts, when all have them; one averaging."""
    problem = work.problem
    pairs = {i: split(agent.objective) for i, agent in problem.agents.items()}
    rows = np.array([[float(pair is not None)] for pair in pairs.values()])
    if not work.runtime.gather(rows).all():
        return None
    smooth, simple = (
        Problem(
            {i: _holder(pair[k], problem.d[i]) for i, pair in pairs.items() if pair is not None},
            n=problem.n,
            q=problem.q,
            m=0,
        )
        for k in (0, 1)
    )
    return smooth, simple


def _holder(objective: Objective, d: int) -> Agent:
    return Agent(objective, C=np.zeros((0, d)), c=np.zeros(0))


@dataclass(frozen=True)
class Parts:
    """H (None: nothing) with its curvature (L_x, L_z) by blocks, and G, on execution variables."""

    smooth: ExecutionObjective | None
    simple: ExecutionObjective
    curvature: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, realized: Realized, problems: tuple[Problem, Problem]) -> Parts:
        """At the realization's scale; one reduction."""
        whole = realized.objective
        space = realized.space
        part = problems[0]
        rows = []
        for i, agent in part.agents.items():
            bends = agent.objective.curvature(part.d[i], part.q)
            pair = (bends.L_x, whole.s**2 * bends.L_z)
            if not bends.separable:
                L = agent.objective.scaled_curvature(part.d[i], part.q, 1.0, whole.s)[1]
                pair = (L, L)
            rows.append(pair)
        own = np.array(rows, dtype=np.float64)
        _, (L_x, L_z) = space.runtime.extremes(own[:, :0], own)
        smooth, simple = (ExecutionObjective(p, space, s=whole.s) for p in problems)
        return cls(smooth, simple, (float(L_x), float(L_z)))

    def bend(self, v: Array) -> Array:
        """diag(L_x, L_z) v."""
        space = self.simple.space
        out = np.zeros_like(v)
        space.x(out)[...] = self.curvature[0] * space.x(v)
        space.z(out)[...] = self.curvature[1] * space.z(v)
        return out

    def slope(self, x: Array) -> Array | float:
        """grad H(x); 1 gradient."""
        return 0.0 if self.smooth is None else self.smooth.gradient(x, np.zeros_like(x))

    def backward(self, x: Array, slope: Array, weight: float) -> Array:
        """argmin_u <slope, u> + G(u) + (1/2) <u - x, (weight + diag(L_x, L_z)) (u - x)>: 1 prox."""
        space = self.simple.space
        step = slope / weight
        stiff_x, stiff_z = (weight + L for L in self.curvature)
        if self.smooth is not None:
            space.x(step)[...] *= weight / stiff_x
            space.z(step)[...] *= weight / stiff_z
        return proximal(self.simple, x - step, stiff_x, stiff_z)


def first_weight(
    objective: ExecutionObjective, w0: Array, move: Callable[[float], Array] | None = None
) -> float:
    """The weight at which one proximal step makes half of the progress that F allows.

    ``move`` gives the point reached at a weight, where a step is more than the prox of F. Tried on
    powers of ten, every agent by itself; the values travel in one reduction. Where F has no minimum
    the weight is that of a step as long as 1 + ||w0||.
    """
    space = objective.space
    values = []
    lengths = []
    for weight in GRID:
        point = move(float(weight)) if move else proximal(objective, w0, float(weight))
        values.append(objective.values(point))
        lengths.append(space.partial_dots(point - w0, point - w0))
    size = space.partial_dots(w0, w0)
    totals = space.runtime.total(np.concatenate([*values, *lengths, size], axis=1))
    heights = totals[: len(GRID)]
    moves = np.sqrt(totals[len(GRID) : -1])
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
