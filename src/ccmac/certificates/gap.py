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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.certificates.error_bound import Certifier
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
    """A bound on ||w0 - w*|| from one on ||(x0, z0) - (x*, z*)||: n copies of z / s."""
    return radius * max(1.0, math.sqrt(realized.space.runtime.n) / realized.s)


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
    source: str = "last"  # last iterate or average
    error: float = math.inf  # ||(x, z) - (x*, z*)|| at most (inf: F is not strongly convex)

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius."""
        return self.base + radius * self.slope

    def feasibility(self, radius: float) -> float:
        """(L R / sigma) ||K w - v|| (smooth) or (M / sigma) ||K w - v||, at most."""
        return self.steepness * self.distance * (self.scale * radius if self.smooth else 1.0)

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
        """Whether the criterion is proved for the required radius."""
        return self.radius(goal.epsilon(self.value)) >= self.required(goal) * (1 - 1e-12)

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon, required = goal.epsilon(self.value), self.required(goal)
        source = "estimated: twice the distance travelled, at least 1"
        if goal.radius is not None:
            source = "supplied"
        return {
            "epsilon": epsilon, "radius": required, "radius_source": source,
            "radius_proved": self.radius(epsilon), "gap": self.bound(required),
            "feasibility": self.feasibility(required), "value": self.value, "point": self.source,
        }  # fmt: skip


def estimated_radius(travelled: float) -> float:
    """max(1, 2 ||w - w0||): a point that has hardly moved must not prove itself optimal."""
    return max(1.0, ESTIMATE * travelled)


def strong_distance(r: float, moved: float, rest: float) -> float:
    """Largest D with D^2 <= (r + moved) D + r moved + rest."""
    b = r + moved
    return 0.5 * (b + math.sqrt(max(b * b + 4.0 * (r * moved + rest), 0.0)))


class GapCertifier(Certifier):
    """Gaps for points of one realized problem, started at ``w0`` (a consensus point).

    ``convexity`` is (mu_x, mu_z) of every agent's objective in the user's variables.
    """

    def __init__(
        self, realized: Realized, w0: Array, convexity: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        super().__init__(realized)
        self.w0, self.convexity = w0, convexity

    @property
    def strong(self) -> bool:
        """Whether the solution is unique by declared curvature (not in a lift: y has none)."""
        mu = min(self.convexity)
        return 0 < mu < math.inf and self.space.z_end == self.space.size

    @property
    def error_unit(self) -> float:
        """||(x, z)|| in the user's variables at most, z the mean, where the strong norm is 1."""
        mu_x, mu_z = self.convexity
        return 1.0 / math.sqrt(min(mu_x, self.space.runtime.n * mu_z))

    def strong_norm(self, w: Array, *, dual: bool = False) -> float:
        """(mu_x ||x||^2 + mu_z sum_i ||z_i||^2)^{1/2} or its dual; one reduction that rides."""
        mu_x, mu_z = self.convexity
        scales = math.sqrt(mu_x), math.sqrt(mu_z) * self.realized.s
        out = w.copy()
        self.space.x(out)[...] *= 1.0 / scales[0] if dual else scales[0]
        self.space.z(out)[...] *= 1.0 / scales[1] if dual else scales[1]
        return self.space.norm(out, riding=True)

    def value(self, w: Array) -> float:
        """sum_i f_i at each agent's own copy; one reduction that rides."""
        return float(self.space.runtime.total(self.realized.objective.values(w), riding=True)[0])

    def distance(self, w: Array) -> float:
        """A bound on the distance to the feasible set: 1 residual, 1 reduction."""
        if self._system.empty:
            return 0.0
        return self.space.norm(self._system.residual(w)[0], riding=True) / self._system.interval.low

    def user_norm(self, r: Array) -> float:
        """sup <r, w - w'> over consensus points with ||(x, z) - (x', z')|| <= 1; one averaging."""
        space, realized = self.space, self.realized
        mean = space.runtime.average(space.z(r))
        folded = r.copy()
        # sum_i r_i / s spread over n rows, so that the squares add up to ||sum_i r_i / s||^2.
        space.z(folded)[...] = math.sqrt(space.runtime.n) / realized.s * mean
        return space.norm(folded, riding=True)

    def travelled(self, w: Array) -> float:
        """||(x, mean z) - (x0, z0)|| in the user's variables, at most."""
        step = w - self.w0
        self.space.z(step)[...] *= self.realized.s / math.sqrt(self.space.runtime.n)
        return self.space.norm(step, riding=True)

    def gap(
        self, w: Array, gradient: Array, p: Array, *, value: float | None = None,
        distance: float | None = None, slack: float = 0.0,
    ) -> Gap:  # fmt: skip
        """The bound at w itself with the dual vector p in Range K'."""
        objective, space = self.realized.objective, self.space
        r = gradient + p
        distance = self.distance(w) if distance is None else distance
        inner = space.dot(r, w - self.w0, riding=True)
        smooth = math.isfinite(objective.L)
        steep = objective.L if smooth else space.norm(gradient, riding=True)
        steep = steep if steep > 0 else 1.0  # F is flat: what is violated counts all the same
        base = slack + inner + space.norm(p, riding=True) * distance
        return Gap(
            w, gradient, p, self.value(w) if value is None else value, base, self.user_norm(r),
            distance, self.travelled(w), steep, smooth, execution_radius(self.realized, 1.0),
        )  # fmt: skip

    def project(self, gradient: Array, wanted: float) -> tuple[Array, Array]:
        """(p, price) with gradient + p in the kernel of K up to ``wanted``."""
        if self._system.empty:
            return np.zeros_like(gradient), self._system.zero_price()
        kernel, price = self._project(gradient, wanted)
        return kernel - gradient, price

    def repaired(self, w: Array, wanted: float) -> tuple[Array, float]:
        """(RF^k(w), its distance to the feasible set, at most)."""
        if self._system.empty:
            return w, 0.0
        return self._repair(w, wanted)

    def tight_smooth(self, w: Array, goal: Goal) -> Gap:
        """At the repaired point with p = -Pi_N grad F: affine calls and one gradient."""
        objective = self.realized.objective
        epsilon = goal.epsilon(self.value(w))
        size = self.space.norm(objective.gradient(w), riding=True)
        radius = self._radius(w, goal)
        size = max(size, objective.L * execution_radius(self.realized, radius), 1e-300)
        repaired, distance = self.repaired(w, 1e-2 * epsilon / size)
        gradient = objective.gradient(repaired)
        p, price = self.project(gradient, 1e-2 * epsilon / max(radius, 1e-300))
        return replace(self.gap(repaired, gradient, p, distance=distance), price=price)

    def tight_subgradient(
        self, w: Array, gradient: Array, goal: Goal, slack: float = 0.0, share: float = 1.0
    ) -> Gap:
        """At the repaired point (w itself where F is infinite there), from a subgradient at w.

        F(v) - F* <= F(v) - F(w) + bound(w); the repaired v is used if its value is finite. For a
        strongly convex F it is repaired as far as rounding allows, so that it counts as feasible
        in the error bound; ``share`` of the convexity holds along the subgradient given.
        """
        value = self.value(w)
        epsilon, radius = goal.epsilon(value), self._radius(w, goal)
        p, price = self.project(gradient, 1e-2 * epsilon / max(radius, 1e-300))
        found = replace(self.gap(w, gradient, p, value=value, slack=slack), price=price)
        steep = max(self.space.norm(gradient, riding=True), 1e-300)
        if math.isfinite(self.realized.objective.L):
            reach = execution_radius(self.realized, radius)
            steep = max(steep, self.realized.objective.L * reach)
        repaired, distance = self.repaired(w, 0.0 if self.strong else 1e-2 * epsilon / steep)
        there = self.value(repaired)
        if not math.isfinite(there):
            return found
        error = math.inf
        if self.strong:
            root = math.sqrt(share)
            r = self.strong_norm(gradient + p, dual=True) / root
            moved = root * self.strong_norm(repaired - w)
            rest = there - value + slack + self.space.norm(p, riding=True) * found.distance
            error = strong_distance(r, moved, rest) * self.error_unit / root
        return replace(
            found, w=repaired, value=there, base=found.base + there - value, distance=distance,
            error=error,
        )  # fmt: skip

    def _radius(self, w: Array, goal: Goal) -> float:
        return goal.radius if goal.radius is not None else estimated_radius(self.travelled(w))
