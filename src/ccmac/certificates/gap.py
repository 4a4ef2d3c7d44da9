"""Bounds on F(w) - F* that need no solution, only a radius.

For a point u, a subgradient g of F at u (or an average of both with a <= slack), any p in Range K'
and R >= ||w0 - w*||, with r = g + p:

    F(u) - F* <= slack + <r, u - w0> + R ||r|| + ||p|| dist(u),   dist(u) <= ||G u - g|| / lambda_-.

The distance <r, w0 - w*> is taken in the user's variables, where w0 and w* are in consensus. A
feasible (repaired) point v then has F(v) - F* <= F(v) - F(u) + the bound. Nothing here needs a
multiplier budget.

Where F is strongly convex no radius is needed either. In the norm ||w||^2 = mu_x ||x||^2 + mu_z
sum_i ||z_i||^2, whose dual norm measures r, adding F(v) >= F* + ||v - w*||^2/2 and
F* >= F(u) + <g, w* - u> + ||w* - u||^2/2 - slack gives for e = ||v - u|| and D = ||v - w*||

    D^2 <= (||r|| + e) D + ||r|| e + c,   c = F(v) - F(u) + slack + ||p|| dist(u).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ccmac.certificates.infeasibility import PLAIN
from ccmac.inputs import Array
from ccmac.realizations.base import Realized

ESTIMATE = 2.0


@dataclass(frozen=True)
class Goal:
    """eps = ``accuracy``, else tol max(1, |F|); ``radius`` R in the user's variables, if known."""

    tol: float
    accuracy: float | None = None
    radius: float | None = None

    def epsilon(self, value: float) -> float:
        """The accuracy asked for when the objective is ``value``."""
        return self.accuracy if self.accuracy is not None else self.tol * max(1.0, abs(value))

    @property
    def absolute(self) -> float:
        """The accuracy a schedule is made for, before any value of F is known."""
        return self.tol if self.accuracy is None else self.accuracy


def execution_radius(realized: Realized, radius: float) -> float:
    """A bound on ||w0 - w*|| from one on ||(x0, z0) - (x*, z*)||: n copies of z / s, if any."""
    if not realized.space.q:
        return radius
    return radius * max(1.0, math.sqrt(realized.space.runtime.n) / realized.s)


def user_distance(realized: Realized) -> float:
    """||(x, mean z)|| of an execution vector of length one at most: mean z = s sum_i z_i / n."""
    if not realized.space.q:
        return 1.0
    return max(1.0, realized.s / math.sqrt(realized.space.runtime.n))


@dataclass(frozen=True)
class Gap:
    """F - F* <= base + R slope at ``w``, for every R (user units) that bounds the distance."""

    w: Array
    gradient: Array
    p: Array
    value: float  # F(w)
    base: float
    slope: float
    distance: float  # of w to the feasible set, at most
    travelled: float  # ||w - w0|| in the user's variables
    steepness: float  # L of a smooth F; norm of the subgradient elsewhere; 1 where that is 0
    smooth: bool
    scale: float  # execution radius per user radius
    price: Array | None = None
    unit: float = 1.0  # ||(x, mean z)|| in the user's variables at most, per unit of ``distance``
    source: str = "last"  # last iterate or average
    error: float = math.inf  # ||(x, z) - (x*, z*)|| at most (inf: F is not strongly convex)
    lacks: float = 0.0  # what rounding may have taken from ||gradient + p||, counted in the rest

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius; never below zero."""
        return max(self.base + radius * self.slope, 0.0)

    def feasibility(self, radius: float) -> float:
        """(L R / sigma) ||K w - v|| (smooth) or (M / sigma) ||K w - v||, at most."""
        return self.steepness * self.distance * (self.scale * radius if self.smooth else 1.0)

    @property
    def violation(self) -> float:
        """Of unit rows in the user's variables, at most: a feasible point is this near."""
        return self.unit * self.distance

    def radius(self, epsilon: float) -> float:
        """The largest R for which both parts of the criterion are proved (0: none)."""
        allowed = epsilon - self.base
        if allowed < 0 or (not self.smooth and self.feasibility(1.0) > epsilon):
            return 0.0
        limits = [allowed / self.slope if self.slope > 0 else math.inf]
        if self.smooth and self.distance * self.steepness > 0:
            limits.append(epsilon / (self.steepness * self.distance * self.scale))
        return min(limits)

    def required(self, goal: Goal) -> float:
        """The radius the criterion must hold for: given, else estimated."""
        return goal.radius if goal.radius is not None else estimated_radius(self.travelled)

    def met(self, goal: Goal) -> bool:
        """Whether the criterion is proved for the required radius, and unit rows hold to tol."""
        proved = self.radius(goal.epsilon(self.value)) >= self.required(goal) * (1 - 1e-12)
        return proved and self.violation <= goal.tol

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon = goal.epsilon(self.value)
        required = self.required(goal)
        source = "estimated: twice the distance travelled, at least 1"
        if goal.radius is not None:
            source = "supplied"
        return {
            "epsilon": epsilon,
            "radius": required,
            "radius_source": source,
            "radius_proved": self.radius(epsilon),
            "gap": self.bound(required),
            "feasibility": self.feasibility(required),
            "value": self.value,
            "point": self.source,
        }


@dataclass(frozen=True)
class DualityGap:
    """F - F* <= base + R slope; ``violation`` of unit rows beside their right-hand sides.

    ``below``: F* - F at most, by what the equations are violated (where that is known). R may be
    measured in units of the unknowns, ``least`` of which is the least: all points within least R
    of the start, in the user's, are within R. ``lacks``: the distance from the local equations and
    the violation of the other unit rows, whatever their right-hand sides; ``hidden``: what rounding
    may do to it.
    """

    value: float
    base: float
    slope: float
    violation: float
    travelled: float
    below: float = 0.0
    least: float = 1.0
    lacks: float = 0.0
    hidden: float = 0.0

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius, in these units."""
        return self.base + radius * self.slope

    def required(self, goal: Goal) -> float:
        """The radius it must hold for: given, else estimated."""
        return goal.radius if goal.radius is not None else estimated_radius(self.travelled)

    def met(self, goal: Goal) -> bool:
        """Whether gap and violation are small enough.

        A bound far below zero tells of a violation that lowers F by more than the accuracy. Beside
        large right-hand sides a small violation may be a contradiction that must be proved.
        """
        most = max(abs(self.bound(self.required(goal))), self.below)
        small = self.violation <= goal.tol and self.lacks <= max(PLAIN, self.hidden)
        return most <= goal.epsilon(self.value) and small

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon = goal.epsilon(self.value)
        required = self.required(goal)
        source = "supplied"
        if goal.radius is None:
            source = "estimated: twice the distance travelled, at least 1"
        if self.least != 1.0:
            source += ", in units of the unknowns; told is the ball of yours within"
        proved = max(epsilon - self.base, 0.0) / self.slope if self.slope > 0 else math.inf
        return {
            "epsilon": epsilon,
            "radius": self.least * required,
            "radius_source": source,
            "radius_proved": self.least * proved,
            "gap": self.bound(required),
            "feasibility": self.violation,
            "value": self.value,
            "below": self.below if math.isfinite(self.below) else None,
            "proved_by": "bound" if self.met(goal) else "nothing",
        }


def estimated_radius(travelled: float) -> float:
    """max(1, 2 ||w - w0||): a point that has hardly moved must not prove itself optimal."""
    return max(1.0, ESTIMATE * travelled)


def strong_distance(r: float, moved: float, rest: float) -> float:
    """Largest D with D^2 <= (r + moved) D + r moved + rest."""
    b = r + moved
    return 0.5 * (b + math.sqrt(max(b * b + 4.0 * (r * moved + rest), 0.0)))
