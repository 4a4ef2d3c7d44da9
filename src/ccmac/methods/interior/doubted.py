"""Entries whose bounds may be active or not: their prices join the common unknowns.

An agent that is sure of its other bounds (those with slack < weight price are active) solves its
equations for any net price p of its doubtful entries. With q = p + theta y in p's place its matrix
has theta more on their diagonal, which holds entries that have no curvature, and

    y = y_0 - (what z and the prices of the coupled rows change) + (M^{-1})_{jj} q.

It tells these rows (:meth:`Doubted.table`), with where its bounds are and the present price:
everybody can then find out which of them are active (:mod:`.boxed`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.methods.interior.block import Block
from ccmac.methods.interior.common import Common
from ccmac.methods.interior.elimination import Elimination
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Exclusive, Sides

Mask = NDArray[np.bool_]
TOLD = 5  # numbers of a doubtful entry beside what moves it
LOWER = 1  # which bounds it has; their sum: both
UPPER = 2
RHO = 5e-6  # eps^(1/3): sums lose eps / RHO^2, and so much of the way a step is held back
NEAR = 1e-3  # slack and weighted price below which a bound is doubtful from the beginning
WRONG = 1e-10  # a negative slack or weighted price beyond rounding


class Doubted:
    """One agent's linearized conditions at a point; ``doubt`` marks its doubtful entries."""

    def __init__(
        self, block: Block, point: OwnPoint, common: Common, lam: Array, weight: float, doubt: Mask
    ) -> None:
        self.block = block
        self.point = point
        self.doubt = doubt
        self.weight = weight
        newton = Exclusive.opened(block.sides, point.s, point.v, weight, doubt)
        self.parts = Elimination(block, point, common.z, lam, 1.0, newton, RHO)
        self.at = np.flatnonzero(doubt)

    def table(self, slots: int) -> Array:
        """A row a doubtful entry: on the common unknowns, on all q, and five numbers."""
        count = len(self.at)
        width = len(self.block.support)
        out = np.zeros((slots, width + slots + TOLD))
        sides = self.block.sides
        y = self.point.y
        if not count:
            return out
        unit = np.zeros((len(self.parts.solved), count))
        unit[self.at, np.arange(count)] = 1.0
        rows = out[:count, : width + count]
        told = out[:count, width + slots :]
        rows[:, :width] = self.parts.solved[self.at, :-1]
        rows[:, width:] = -self.parts.solve(unit)[self.at]
        told[:, 0] = self.parts.solve(self.parts.right(0))[self.at]
        for k, bound in enumerate((sides.lower, sides.upper)):
            there = np.isfinite(bound[self.at])
            told[there, 1 + k] = (bound - y)[self.at[there]]
            told[there, 4] += (LOWER, UPPER)[k]
        told[:, 3] = sides.net(self.point.v)[self.at]
        return out

    def moved(self, dq: Array, told: Array, xi: Array) -> OwnPoint:
        """The point after the step that goes with dq, (dz, dlambda, dtau) and dxi."""
        spread = np.zeros(self.block.size)
        sides = self.block.sides
        spread[self.at] = dq
        step = self.parts.step(np.ones(1), sides.split(spread), told, xi)
        new = self.point.moved(step, 1.0)
        y, s, v = decided(sides, new.y, new.v, self.doubt, self.weight)
        return OwnPoint(y, new.nu, s, v)


def decided(
    sides: Sides, w: Array, v: Array, doubt: Mask, weight: float
) -> tuple[Array, Array, Array]:
    """(w, slacks, prices): a doubtful entry is on the bound that has its price, or has none."""
    mine = doubt[sides.at]
    v = np.where(mine, np.maximum(sides.sign * sides.net(v)[sides.at], 0.0), v)
    on = mine & (sides.slack(w, 1.0) < weight * v)
    w = w.copy()
    w[sides.at[on]] = sides.bound[on]
    return w, sides.slack(w, 1.0), np.where(mine & ~on, 0.0, v)


def doubtful(sides: Sides, s: Array, v: Array, weight: float, before: Mask, most: int) -> Mask:
    """At most so many entries: those ``before``, then wrong guesses, then the nearest ones."""
    u = weight * v
    score = np.where(np.minimum(s, u) < -WRONG, -1.0, np.maximum(np.abs(s), np.abs(u)))
    least = np.full(sides.size, np.inf)
    np.minimum.at(least, sides.at, score)
    least[before] = -2.0
    first = np.argsort(least, kind="stable")[:most]
    found = np.zeros(sides.size, dtype=bool)
    found[first[least[first] <= NEAR]] = True
    return found


class Slots:
    """Where in a message the agents' tables stand: ``slots`` rows for each, known to all."""

    def __init__(self, slots: Array, supports: Array) -> None:
        self.slots = slots.astype(int)
        self.supports = supports > 0
        widths = self.supports.sum(axis=1) + self.slots + TOLD
        self._shapes = list(zip(self.slots, widths, strict=True))
        self._ends = np.cumsum([0, *(self.slots * widths)])

    def row(self, agent: int, part: Doubted) -> Array:
        """Its table at its place."""
        out = np.zeros(self._ends[-1])
        table = part.table(int(self.slots[agent]))
        out[self._ends[agent] : self._ends[agent + 1]] = table.ravel()
        return out

    def heard(self, total: Array) -> list[Open]:
        """All agents' tables from their sum."""
        pieces = np.split(total, self._ends[1:-1])
        return [
            Open(piece.reshape(shape), support)
            for piece, shape, support in zip(pieces, self._shapes, self.supports, strict=True)
        ]


class Open:
    """What everybody knows of one agent's doubtful entries."""

    def __init__(self, table: Array, support: Mask) -> None:
        width = int(support.sum())
        self.table = table[table[:, -1] > 0.5]
        self.told = self.table[:, -TOLD:]
        self.count = len(self.table)
        self.on_common = np.zeros((self.count, len(support)))
        self.on_common[:, support] = self.table[:, :width]
        self.inner = self.table[:, width : width + self.count]

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """How far down and up the entries may go."""
        kind = np.round(self.told[:, 4]).astype(int)
        low = np.where(kind & LOWER, self.told[:, 1], -np.inf)
        return low, np.where(kind & UPPER, self.told[:, 2], np.inf)
