"""Recession directions: along d the objective falls without end from every feasible point.

    K d ~ 0,    d within the cone of the bounds,    H d ~ 0,    fall = g'd - phi_far(d) > 0,

and -(G_i d_x + H_i d_z) in the cones of agents that have some, but for a distance that counts as
rows do. A minimiser w with multipliers y would have fall <= ||w|| ||H d|| + ||y|| ||K d||. F is
called unbounded where none has ||w|| <= REACH max(1, ||v||) and ||y|| <= REACH ||g||, where
curvature and rows along d count as zero (RANK relative to the largest), and the fall is PROMISED
relative to all slopes. Where d comes from does not matter: it is the ray of
interior points. It is judged in the agents' own blocks, in extended precision. Cost: one
averaging of m + 7 floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import entries
from ccmac.linalg.extended import norm, product, square
from ccmac.linalg.ranks import row_lengths
from ccmac.linalg.tolerances import PROMISED, RANK, REACH
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.workspace import Workspace
from ccmac.workspace.equations import Constraints


@dataclass(frozen=True)
class Recession:
    """d of length one by blocks, its ``fall``, and ``defect`` = ||K d|| + ||H d||."""

    x: list[Array]
    z: Array
    fall: float
    defect: float

    @property
    def message(self) -> str:
        """What it says in words."""
        return (
            f"unbounded: the objective falls by {self.fall:.3g} per unit along a direction that "
            "keeps all equations and bounds; add curvature, limits or equations"
        )


def outward(d: Array, lower: Array, upper: Array) -> Array:
    """The nearest direction along which the bounds stay met."""
    low = np.isfinite(lower)
    high = np.isfinite(upper)
    return np.clip(d, np.where(low, 0.0, -np.inf), np.where(high, 0.0, np.inf))


@dataclass
class Recessions:
    """The test of directions for quadratics with bounds and piecewise linear terms (``forms``)."""

    work: Workspace
    reduced: Constraints
    forms: list[Polyhedral]
    bounds: tuple[Array, Array]

    def test(self, x: Array, z: Array) -> Recession | None:
        """That F falls without end along (flat x, z), or None."""
        work = self.work
        reduced = self.reduced
        work.ledger.charge(**{name: 1 for name in "ABCD" if name in work.problem.present})
        z = work.runtime.common(outward(z, *self.bounds))
        pieces = []
        vectors = []
        rows = []
        for k, form in enumerate(self.forms):
            own = work.space.x_of(x, k)
            own = outward(own, form.lower[: len(own)], form.upper[: len(own)])
            u = np.append(own, z)
            images = [(term, term.R @ u) for term in form.terms]
            far = sum(term.value(along) for term, along in images)
            steep = norm(form.g) + sum(t.steepness * norm(abs(t.R) @ np.abs(u)) for t, _ in images)
            on_own = reduced.kernels[k].space.inverse_lengths * product(reduced.C[k], own)
            pieces.append(own)
            vectors.append(product(reduced.A[k], own) + product(reduced.B[k], z))
            bend = square(product(form.bent, u))
            size_H = square(entries(form.bent))
            begun = square(reduced.kernels[k].point)
            numbers = [bend, square(on_own), square(own), steep, begun, size_H]
            rows.append([float(form.g @ u) - far, *numbers])
            if work.curvature.conic:
                rows[-1].append(self._outside(k, own, z) ** 2)
        received = work.runtime.piggyback(np.array(rows))
        coupled = np.zeros(0)
        if work.problem.m:
            coupled = work.runtime.average(np.stack(vectors).astype(np.float64))[0] * work.problem.n
        fall, bend, local, size, steep, begun, size_H, *outside = map(float, received.value)
        length = math.sqrt(size + float(z @ z))
        if not 0.0 < length < math.inf:
            return None
        left = [math.sqrt(local), norm(reduced.unit * coupled), norm(reduced.D @ z)]
        rows_left = math.hypot(*left) / length
        off = math.sqrt(sum(outside)) / length
        bend = math.sqrt(bend) / length
        fall = fall / length
        right = max(1.0, norm(reduced.right), math.sqrt(begun))
        if rows_left > RANK or bend > RANK * math.sqrt(size_H) or fall <= PROMISED * steep:
            return None
        if fall < REACH * (right * bend + steep * (rows_left + off)):
            return None
        return Recession([v / length for v in pieces], z / length, fall, rows_left + off + bend)

    def _outside(self, k: int, x: Array, z: Array) -> float:
        """How far the slacks that an agent's direction takes lie outside its cones."""
        agent = list(self.work.problem.agents.values())[k]
        own = agent.conic(len(x), len(z))
        if own is None:
            return 0.0
        slack = -(product(own.G, x) + product(own.H, z))
        lengths = own.cone.sizes(np.hypot(row_lengths(own.G), row_lengths(own.H)))
        return own.cone.distance((slack / lengths).astype(np.float64))
