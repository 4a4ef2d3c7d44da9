"""The finite bounds on the entries of a vector, one side each, with their slacks and prices.

A side j holds entry a_j on one side of its bound: s_j = sign_j (w_{a_j} - bound_j tau) >= 0, sign
+1 for a lower and -1 for an upper bound, with a price v_j >= 0. Newton's equation for s_j v_j = t_j
eliminates both: dv = a - theta sign (dw - bound dtau), theta = v/s, a = (t - s v)/s + theta rho,
where rho is what s lacks of its definition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array

STIFF = 1e8  # weight of an entry that sits on its bound
WIDE = 100.0  # half the distance of two bounds beyond which their middle tells nothing
THETA = 1.0  # and of one that may or may not


class Sides:
    """Which entries of a vector are bounded, and by what."""

    def __init__(self, lower: Array, upper: Array) -> None:
        low = np.flatnonzero(np.isfinite(lower))
        high = np.flatnonzero(np.isfinite(upper))
        self.size = len(lower)
        self.lower = lower
        self.upper = upper
        self.at = np.concatenate([low, high])
        self.sign = np.repeat([1.0, -1.0], [len(low), len(high)])
        self.bound = np.concatenate([lower[low], upper[high]])
        self.signed_bound = self.sign * self.bound
        count = np.bincount(self.at, minlength=self.size)
        self.bounded = count > 0
        self.share = 1.0 / count[self.at]

    @property
    def count(self) -> int:
        """How many sides there are."""
        return len(self.at)

    def spread(self, values: Array) -> Array:
        """Values of the sides added up at their entries."""
        return np.asarray(np.bincount(self.at, values, minlength=self.size), dtype=np.float64)

    def net(self, v: Array) -> Array:
        """The prices of both sides of every entry, upper ones negative."""
        return self.spread(self.sign * v)

    def split(self, p: Array) -> Array:
        """Multipliers of the sides, in equal shares of an entry's, with :meth:`net` = ``p``."""
        return np.asarray(self.sign * self.share * p[self.at])

    def slack(self, w: Array, tau: float) -> Array:
        """sign (w - bound tau)."""
        return np.asarray(self.sign * (w[self.at] - self.bound * tau))

    def middle(self) -> Array:
        """A point inside: between two bounds, a unit or more from a single one, else zero.

        Bounds that are far apart say nothing of where a solution is: as single ones, WIDE away.
        """
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        between = both & (self.upper - self.lower <= 2 * WIDE)
        room = np.where(both, WIDE, 1.0)
        inside = np.clip(0.0, self.lower + room, np.where(between, np.inf, self.upper - room))
        inside[between] = 0.5 * self.lower[between] + 0.5 * self.upper[between]
        return np.asarray(inside)


@dataclass(frozen=True)
class Newton:
    """What one iterate's slacks ``s`` and prices ``v`` put into Newton's equations."""

    sides: Sides
    s: Array
    v: Array
    rho: Array
    theta: Array

    @classmethod
    def at(cls, sides: Sides, w: Array, s: Array, v: Array, tau: float) -> Newton:
        """At the vector w."""
        return cls(sides, s, v, s - sides.slack(w, tau), v / s)

    @property
    def diagonal(self) -> Array:
        """What is added to the Hessian."""
        return self.sides.spread(self.theta)

    @property
    def tilt(self) -> Array:
        """sum of theta bound at every entry: minus the column of tau."""
        return self.sides.spread(self.theta * self.sides.bound)

    @property
    def corner(self) -> float:
        """-sum theta bound^2: the row and column of tau."""
        return -float(np.sum(self.theta * self.sides.bound**2))

    @property
    def parts(self) -> list[Array]:
        """a for the residuals, for t = 0, for t = 1."""
        return [self.theta * self.rho, -self.v, 1.0 / self.s]

    def second(self, ds: Array, dv: Array) -> Array:
        """a for t = -ds dv."""
        return np.asarray(-ds * dv / self.s)

    def right(self, a: Array) -> tuple[Array, float]:
        """What a adds to the right-hand sides of w and of tau."""
        return self.sides.spread(self.sides.sign * a), float(self.sides.signed_bound @ a)

    def steps(self, a: Array, dw: Array, dtau: float, eta: float) -> tuple[Array, Array]:
        """(ds, dv) that go with a step of w and tau; ``eta``: share of the residuals removed."""
        moved = self.sides.slack(dw, dtau)
        return moved - eta * self.rho, a - self.theta * moved


@dataclass(frozen=True)
class Exclusive(Newton):
    """Newton's equation for s and v that exclude each other, tau = 1.

    Slacks follow w and prices may have any sign, so that no step has to be shortened to stay
    inside. ``shift`` is its a.
    """

    shift: Array

    @classmethod
    def guessed(cls, sides: Sides, s: Array, v: Array, weight: float = 1.0) -> Exclusive:
        """min(s, v) = 0: the bounds with s < weight v are active."""
        active = s < weight * v
        theta = np.where(active, STIFF, 0.0)
        return cls(sides, s, v, np.zeros(len(s)), theta, np.where(active, -STIFF * s, -v))

    @classmethod
    def opened(
        cls, sides: Sides, s: Array, v: Array, weight: float, doubt: NDArray[np.bool_]
    ) -> Exclusive:
        """As guessed but for the entries in ``doubt``, which may go anywhere at a price.

        The price q = p + theta w that moves them is to be found: theta is on their diagonal.
        """
        guess = cls.guessed(sides, s, v, weight)
        open_ = doubt[sides.at]
        theta = np.where(open_, THETA * sides.share, guess.theta)
        return replace(guess, theta=theta, shift=np.where(open_, 0.0, guess.shift))

    @property
    def parts(self) -> list[Array]:
        """All of it is residual."""
        return [self.shift]


def apart(s: Array, v: Array, weight: float) -> float:
    """Sum of squares of what slacks and weighted prices lack to exclude each other."""
    return float(np.sum(np.minimum(s, weight * v) ** 2))


def longest(value: Array, step: Array) -> float:
    """The largest multiple of ``step`` that keeps ``value`` nonnegative (inf: all)."""
    falls = step < 0
    return float(np.min(-value[falls] / step[falls])) if falls.any() else np.inf
