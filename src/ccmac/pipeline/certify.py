"""An error bound that needs no solution, and certificates of infeasibility.

For any w and any p in Range K', with r = grad Phi(w) + p and delta = ||G w - g|| / lambda_- >= the
distance of w to the feasible set, D = ||w - w*|| obeys

    mu D^2 <= ||r|| D + (L D + ||r||) delta.

The bound is tightest at the repaired point w = RF^k(w) with p = -(I - r(Q)^k) grad Phi(w), where
r is the part of the gradient that no multiplier can cancel. Charged to whatever phase is current
(``monitor``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.operators.chebyshev import growth, smallest_degree
from ccmac.operators.filters import first_kind_filter
from ccmac.pipeline.realized import Realized
from ccmac.pipeline.system import AffineSystem

Array = NDArray[np.float64]
FLOOR = 1e-13


@dataclass(frozen=True)
class Bound:
    """A certified bound on ||(x, z) - (x*, z*)|| in the user's variables.

    ``w`` is the point it holds for, ``gradient`` grad Phi there, ``price`` the coupled multiplier
    of the dual state it was taken with.
    """

    error: float
    stationarity: float
    infeasibility: float
    w: Array
    gradient: Array | None = None
    price: Array | None = None


@dataclass(frozen=True)
class Dual:
    """A dual state: p = K'lambda in execution coordinates and lambda's coupled part."""

    p: Array
    price: Array


def distance_bound(r: float, delta: float, mu: float, L: float) -> float:
    """Largest D with mu D^2 <= r D + (L D + r) delta."""
    b = r + L * delta
    return (b + math.sqrt(b * b + 4 * mu * r * delta)) / (2 * mu)


class Certifier:
    """Bounds for points of one realized problem (smooth, strongly convex).

    ``notes`` collects what was found wrong with the certified interval, and mended.
    """

    def __init__(self, realized: Realized) -> None:
        self.realized = realized
        self.space = realized.space
        self.notes: list[str] = []

    @property
    def _system(self) -> AffineSystem:
        return self.realized.system

    def quick(self, w: Array, dual: Dual) -> Bound:
        """The bound at w with the method's own dual state: 1 gradient, 1 residual, 2 reductions."""
        objective, space = self.realized.objective, self.space
        gradient = objective.gradient(w)
        r = space.norm(gradient + dual.p)
        delta = 0.0
        if not self._system.empty:
            delta = space.norm(self._system.residual(w)[0], riding=True) / self._system.interval.low
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return Bound(error, r, delta, w, gradient, dual.price)

    def infeasibility(self, w: Array) -> float:
        """The distance to the feasible set, at most, in user units: 1 residual, 1 reduction."""
        if self._system.empty:
            return 0.0
        size = self.space.norm(self._system.residual(w)[0], riding=True)
        return size / self._system.interval.low * self.realized.error_scale

    def tight(self, w: Array, goal: float, dual: Dual | None = None) -> Bound:
        """The bound at the repaired point; ``goal`` is the accuracy wanted (user units).

        Repairs until the distance to feasibility is small against the goal, then removes from
        grad Phi + p what multipliers cancel.
        """
        objective, space, system = self.realized.objective, self.space, self._system
        wanted = 0.05 * goal / self.realized.error_scale * objective.mu / objective.L
        delta = 0.0
        if not system.empty:
            w, delta = self._repair(w, wanted)
        gradient = objective.gradient(w)
        if system.empty:
            left, price = gradient, system.zero_price()
        else:
            start = gradient if dual is None else gradient + dual.p
            left, price = self._project(start, wanted * objective.L)
            if dual is not None:
                price = price + dual.price
        r = space.norm(left)
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return Bound(error, r, delta, w, gradient, price)

    def repair(self, w: Array) -> Array:
        """w moved to the feasible set (or to where the equations conflict least)."""
        return self._repair(w, 0.0)[0]

    def _degree(self, factor: float) -> int:
        """Chebyshev degree that contracts the disturbance by ``factor`` (0.25 at best)."""
        interval = self._system.interval
        return smallest_degree(interval.low, interval.high, min(max(factor, 1e-12), 0.25))

    def _repair(self, w: Array, wanted: float) -> tuple[Array, float]:
        """(repaired w, distance bound): Chebyshev filters, each checked against its promise."""
        system, space = self._system, self.space
        floor = FLOOR * (1.0 + space.norm(w, riding=True))
        before = space.norm(system.residual(w)[0], riding=True)
        for _ in range(40):
            interval = system.interval
            goal = max(wanted, floor) * interval.low
            if before <= goal:
                break
            degree = self._degree(0.5 * goal / before)
            promised = 1.0 / growth(degree, interval.low, interval.high)
            with np.errstate(over="ignore", invalid="ignore"):
                moved, _ = first_kind_filter(
                    system.residual, w, interval.low, interval.high, degree
                )
                after = space.norm(system.residual(moved)[0], riding=True)
            if not after <= before:
                self._distrust_top(after / before)
                continue
            w = moved
            if after > 3.0 * promised * before + interval.high * floor:
                self._distrust(after / before, promised)
            if after > 0.9 * before and interval.low == system.interval.low:
                before = after
                break
            before = after
        return w, before / system.interval.low

    def _distrust_top(self, seen: float) -> None:
        """The repair made it worse: the upper end of the interval is too low."""
        self._system.interval = self._system.interval.widened(high=1.1)
        self.notes.append(
            f"a repair grew the residual {seen:.1e} times: the interval's upper end was raised to "
            f"{self._system.interval.high:.3g}"
        )

    def _distrust(self, seen: float, promised: float) -> None:
        """The repair contracted less than certified: the lower end of the interval is too high."""
        self._system.interval = self._system.interval.widened(low=0.5)
        self.notes.append(
            f"a repair contracted by {seen:.1e} where the interval promised {promised:.1e}: its "
            f"lower end was halved to {self._system.interval.low:.3g}"
        )

    def _project(self, vector: Array, wanted: float) -> tuple[Array, Array]:
        """(vector + K'lambda with little of Range K' left, lambda's coupled part)."""
        system, interval = self._system.homogeneous(), self._system.interval
        size = self.space.norm(vector)
        if size <= wanted:
            return vector, self._system.zero_price()
        degree = self._degree(0.5 * wanted / size)
        return first_kind_filter(system.residual, vector, interval.low, interval.high, degree)


@dataclass(frozen=True)
class Infeasibility:
    """lambda with K'lambda = 0 and lambda'v != 0, by blocks, and what it says in words."""

    message: str
    coupled: Array
    local: dict[int, Array] = field(default_factory=dict)
    shared: dict[int, Array] = field(default_factory=dict)
    defect: float = 0.0
    value: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return {
            "message": self.message,
            "coupled": self.coupled.tolist(),
            "local": {str(i): v.tolist() for i, v in self.local.items()},
            "shared": {str(i): v.tolist() for i, v in self.shared.items()},
            "defect": self.defect,
            "value": self.value,
        }
