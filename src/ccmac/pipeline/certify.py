"""An error bound that needs no solution, and certificates of infeasibility.

For any w and any p in Range K', with r = grad Phi(w) + p and delta = ||G w - g|| / lambda_- >= the
distance of w to the feasible set, D = ||w - w*|| obeys

    mu D^2 <= ||r|| D + (L D + ||r||) delta.

The bound is tightest at the repaired point w = RF^k(w) with p = -(I - r(Q)^k) grad Phi(w), where r is
the part of the gradient that no multiplier can cancel. Charged to whatever phase is current
(``monitor``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.operators.filters import first_kind_filter, outer_degree
from ccmac.pipeline.realized import Realized
from ccmac.pipeline.system import AffineSystem

Array = NDArray[np.float64]
FLOOR = 1e-13


@dataclass(frozen=True)
class Bound:
    """A certified bound on ||(x, z) - (x*, z*)|| in the user's variables.

    ``w`` is the point it holds for, ``gradient`` grad Phi there, ``price`` the coupled multiplier.
    """

    error: float
    stationarity: float
    infeasibility: float
    w: Array
    gradient: Array | None = None
    price: Array | None = None
    slow: float = 1.0  # how much slower than certified the repair contracted (1: as promised)


def distance_bound(r: float, delta: float, mu: float, L: float) -> float:
    """Largest D with mu D^2 <= r D + (L D + r) delta."""
    b = r + L * delta
    return (b + math.sqrt(b * b + 4 * mu * r * delta)) / (2 * mu)


class Certifier:
    """Bounds for points of one realized problem (smooth, strongly convex)."""

    def __init__(self, realized: Realized) -> None:
        self.realized = realized
        self.space = realized.space

    @property
    def _system(self) -> AffineSystem:
        return self.realized.system

    def quick(self, w: Array, p: Array) -> Bound:
        """The bound at w with the method's own dual state: 1 gradient, 1 residual, 2 reductions."""
        objective, space = self.realized.objective, self.space
        gradient = objective.gradient(w)
        r = space.norm(gradient + p)
        delta = 0.0
        if not self._system.empty:
            delta = space.norm(self._system.residual(w)[0], riding=True) / self._system.interval.low
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return Bound(error, r, delta, w, gradient)

    def tight(self, w: Array, goal: float) -> Bound:
        """The bound at the repaired point; ``goal`` is the accuracy wanted (user units).

        Repairs until the distance to feasibility is far below the goal, then removes from the
        gradient what multipliers cancel.
        """
        objective, space, system = self.realized.objective, self.space, self._system
        if system.empty:
            gradient = objective.gradient(w)
            r = space.norm(gradient)
            error = distance_bound(r, 0.0, objective.mu, objective.L) * self.realized.error_scale
            return Bound(error, r, 0.0, w, gradient, system.zero_price())
        wanted = 1e-3 * goal / self.realized.error_scale * objective.mu / objective.L
        repaired, delta, slow = self._repair(system, w, wanted)
        gradient = objective.gradient(repaired)
        kernel, price = self._project(gradient, wanted * objective.L)
        r = space.norm(kernel)
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return Bound(error, r, delta, repaired, gradient, price, slow)

    def repair(self, w: Array) -> tuple[Array, float, float]:
        """RF^k(w) as far as rounding allows, its distance bound, and the contraction seen."""
        return self._repair(self._system, w, 0.0)

    def _filter(self) -> tuple[float, float, int, float]:
        interval = self._system.interval
        degree = outer_degree(interval.low, interval.high)
        if interval.high <= interval.low * (1 + 1e-14):
            return interval.low, interval.high, 1, 0.0
        ratio = (interval.high + interval.low) / (interval.high - interval.low)
        return interval.low, interval.high, degree, 1.0 / math.cosh(degree * math.acosh(ratio))

    def _repair(self, system: AffineSystem, w: Array, wanted: float) -> tuple[Array, float, float]:
        """(RF^k(w), distance bound, worst contraction relative to the certified one)."""
        low, high, degree, contraction = self._filter()
        floor = FLOOR * (1.0 + self.space.norm(w, riding=True))
        before = self.space.norm(system.residual(w)[0], riding=True)
        slow = 1.0
        for _ in range(60):
            if before / low <= max(wanted, floor):
                break
            w, _ = first_kind_filter(system.residual, w, low, high, degree)
            after = self.space.norm(system.residual(w)[0], riding=True)
            if before > 1e3 * floor and contraction > 0:
                slow = max(slow, (after / before) / max(contraction, 1e-3))
            if after > 0.9 * before:
                before = after
                break
            before = after
        return w, before / low, slow

    def _project(self, gradient: Array, wanted: float) -> tuple[Array, Array]:
        """(r(Q)^k gradient, price): gradient + K'lambda with lambda's coupled part."""
        system = self._system.homogeneous()
        low, high, degree, contraction = self._filter()
        kernel, price = gradient, self._system.zero_price()
        size = self.space.norm(gradient)
        times = 1
        if 0 < contraction < 1 and size > wanted:
            times = max(1, math.ceil(math.log(max(wanted, FLOOR * size) / size) / math.log(contraction)))
        for _ in range(min(times, 60)):
            kernel, more = first_kind_filter(system.residual, kernel, low, high, degree)
            price = price + more
        return kernel, price


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
