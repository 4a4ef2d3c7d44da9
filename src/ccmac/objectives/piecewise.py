"""Coordinatewise piecewise quadratics: their sums, and the prox of such a sum plus a core.

Entry by entry the slope is bend u - pull; both jump at kinks. A box ends the line at both sides.
With a *core*, any coordinatewise function that has a prox, the minimiser of

    core(u) + pieces(u) + ||u - v||^2/(2 step)

lies beyond a kink b exactly where the minimiser of the piece right of b, continued over the whole
line, does: going over the kinks from left to right finds it, with one prox of the core a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array

Kink = tuple[Array | float, Array | float, Array | float]
"""Where it is, and by how much bend and pull jump there."""


@dataclass(frozen=True)
class Pieces:
    """Bend and pull left of all kinks, the kinks in any order, and the ends of the line."""

    bend: Array | float = 0.0
    pull: Array | float = 0.0
    kinks: tuple[Kink, ...] = ()
    low: Array | float = -np.inf
    high: Array | float = np.inf

    def __add__(self, other: Pieces) -> Pieces:
        """Of the sum of both functions."""
        return Pieces(
            self.bend + other.bend,
            self.pull + other.pull,
            self.kinks + other.kinks,
            np.maximum(self.low, other.low),
            np.minimum(self.high, other.high),
        )

    def prox(
        self, v: Array, step: float | Array, core: Callable[[Array, float | Array], Array]
    ) -> Array:
        """argmin of core, pieces and proximal term; ``core`` is the core's own prox."""
        places, bends, pulls = self._sorted(v.shape)

        def continued(k: int) -> Array:
            shrink = 1.0 + step * bends[k]
            return core((v + step * pulls[k]) / shrink, step / shrink)

        u = continued(0)
        for k, place in enumerate(places, start=1):
            ahead = continued(k)
            u = np.where(ahead > place, ahead, np.minimum(u, place))
        return np.asarray(np.clip(u, self.low, self.high))

    def _sorted(self, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
        """Kinks in rising order, entry by entry; bend and pull of all pieces."""
        columns = [
            np.stack([np.broadcast_to(kink[j], shape) for kink in self.kinks])
            if self.kinks
            else np.zeros((0, *shape))
            for j in range(3)
        ]
        order = np.argsort(columns[0], axis=0, kind="stable")
        places, d_bend, d_pull = (np.take_along_axis(c, order, axis=0) for c in columns)
        first = (np.broadcast_to(value, (1, *shape)) for value in (self.bend, self.pull))
        bend, pull = (
            np.cumsum(np.concatenate([start, jumps]), axis=0)
            for start, jumps in zip(first, (d_bend, d_pull), strict=True)
        )
        return places, np.maximum(bend, 0.0), pull


def crossing(start: Array, end: Array, height: Array, level: float) -> float:
    """Where a sum of ramps, from ``level`` upwards, is zero; a ramp may be a jump."""
    places = np.concatenate([start, end])
    order = np.argsort(places, kind="stable")
    sloped = end > start
    steep = np.where(sloped, height / np.where(sloped, end - start, 1.0), 0.0)
    slopes = np.cumsum(np.concatenate([steep, -steep])[order])
    jumps = np.concatenate([np.where(sloped, 0.0, height), np.zeros_like(height)])[order]
    places = places[order]
    rises = np.concatenate([[0.0], slopes[:-1] * np.diff(places)])
    after = level + np.cumsum(rises + jumps)
    k = int(np.argmax(after >= 0)) if (after >= 0).any() else len(after) - 1
    before = after[k] - jumps[k]
    if before <= 0 or k == 0 or slopes[k - 1] <= 0:
        return float(places[k])
    return float(places[k] - before / slopes[k - 1])
