"""Sets cut out by one linear row: a halfspace and the simplex.

On top of any function r with a prox, {a'u <= b} (or = b) costs one scalar root: u(t) =
prox_r(v - step t a), and a'u(t) falls in t. Entries are cut off at ``least`` where r acts entry by
entry.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, number, positive, real_vector
from ccmac.objectives.base import Function, Step
from ccmac.objectives.loss import root

ROOM = 1e-12  # share of |a|'|v| + |b| by which the row may be missed


class OneRow(Function):
    """{v >= least: a'v <= b}, or = b where ``equal``; the prox projects."""

    capabilities = frozenset({"prox"})
    least: float = -math.inf
    equal: bool = False
    bound: float

    @abstractmethod
    def row(self, size: int) -> Array:
        """The vector a."""

    def value_at(self, v: Array) -> float:
        """0 inside, where the row is met to rounding; +inf outside."""
        a = self.row(len(v))
        off = float(a @ v) - self.bound
        room = ROOM * (1.0 + float(np.abs(a) @ np.abs(v)) + abs(self.bound))
        inside = (abs(off) if self.equal else off) <= room
        return 0.0 if inside and (v >= self.least - room).all() else math.inf

    def prox_at(self, v: Array, step: Step) -> Array:
        return self.prox_with(None, v, step)

    def prox_with(self, rest: Function | None, v: Array, step: Step) -> Array:
        """The prox of this set plus ``rest``, which acts entry by entry where v has a ``least``."""
        a = self.row(len(v))

        def at(t: float) -> Array:
            moved = v - t * (step * a)
            return np.maximum(moved if rest is None else rest.prox_at(moved, step), self.least)

        def excess(t: float) -> float:
            return float(a @ at(t)) - self.bound

        now = excess(0.0)
        if now == 0.0 or (now < 0.0 and not self.equal):
            return at(0.0)
        unit = 1.0 / max(float(np.sum(step * a * a)), 1e-300)
        t = root(lambda t: -excess(t), abs(now) * unit)
        if not abs(excess(t)) <= 1e-6 * (1.0 + abs(self.bound) + abs(now)):
            raise InputError("Sum: a linear row and the bounds given with it have no common point")
        return at(t)


class Halfspace(OneRow):
    """0 where a'v <= b, +inf elsewhere.

    Parameters
    ----------
    a : array_like
        Normal of the plane.
    b : float
        Right-hand side.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Halfspace([1.0, 1.0], 0.0)
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    0.0
    """

    arguments = ("a", "b")

    def __init__(self, a: Any, b: float = 0.0) -> None:
        self.a = real_vector("Halfspace, a", a)
        self.size = len(self.a)
        self.b = self.bound = number("Halfspace, b", b)
        if not self.a.any():
            raise InputError("Halfspace, a: is zero; give a row with an entry")

    def row(self, size: int) -> Array:
        return self.a


class Simplex(OneRow):
    """0 where v >= 0 and sum v = radius, +inf elsewhere.

    Parameters
    ----------
    radius : float
        The sum of the entries.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Simplex()
    >>> f.value(np.array([1.0, -2.0]), np.zeros(0))
    inf
    """

    arguments = ("radius",)
    least = 0.0
    equal = True

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = self.bound = positive("Simplex, radius", radius)

    def row(self, size: int) -> Array:
        return np.ones(size)
