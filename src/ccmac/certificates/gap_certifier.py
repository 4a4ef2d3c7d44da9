"""Gaps of points of a realization: values, repairs and multipliers.

What rounding may have taken from the slope r = g + p, from the inner products with it and from the
distance to the equations is counted. Where a price comes with p, how far p lies outside Range K' is
measured with it (:class:`Outside`); else, in bounds that steer and prove nothing, it is taken for
rounding of p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ccmac.certificates.certifier import Certifier, Later, zero
from ccmac.certificates.error_bound import Dual
from ccmac.certificates.gap import (
    Gap,
    Goal,
    estimated_radius,
    execution_radius,
    strong_distance,
    user_distance,
)
from ccmac.certificates.outside import Outside
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Realized
from ccmac.runtime.base import Rider
from ccmac.runtime.space import piece_sums

REPAIRED = 1e-2  # share of the accuracy that a repair, or a projection, may leave
ROWS = 0.5  # share of tol by which a repair may leave rows violated


class GapCertifier(Certifier):
    """Gaps for points of one realized problem, started at ``w0`` (a consensus point).

    ``convexity`` is (mu_x, mu_z) of every agent's objective in the user's variables.
    """

    def __init__(
        self,
        realized: Realized,
        w0: Array,
        convexity: tuple[float, float] = (0.0, 0.0),
        outside: Outside | None = None,
    ) -> None:
        super().__init__(realized, outside)
        self.w0 = w0
        self.convexity = convexity

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

    def _in_strong_units(self, w: Array, *, dual: bool = False) -> Array:
        """w with ||w||^2 = mu_x ||x||^2 + mu_z sum_i ||z_i||^2 (or its dual) as plain square."""
        mu_x, mu_z = self.convexity
        scales = math.sqrt(mu_x), math.sqrt(mu_z) * self.realized.s
        out = w.copy()
        self.space.x(out)[...] *= 1.0 / scales[0] if dual else scales[0]
        self.space.z(out)[...] *= 1.0 / scales[1] if dual else scales[1]
        return out

    def value(self, w: Array) -> float:
        """sum_i f_i at each agent's own copy; one averaging."""
        return float(self.space.runtime.total(self.realized.objective.values(w))[0])

    def travelled(self, w: Array) -> float:
        """||(x, mean z) - (x0, z0)|| in the user's variables, at most; one averaging."""
        return self.space.norm(self.way(w))

    def way(self, w: Array) -> Array:
        """(x, mean z) - (x0, z0) in the user's variables, as the agents' shares of it."""
        step = w - self.w0
        self.space.z(step)[...] *= self.realized.s / math.sqrt(self.space.runtime.n)
        return step

    def _ask(
        self, *products: tuple[Array, Array], at: Array | None = None, more: Sequence[Array] = ()
    ) -> Rider:
        """Inner products, the value of F ``at`` a point, ``more`` columns: next message."""
        space = self.space
        columns = [space.partial_dots(u, v) for u, v in products]
        if at is not None:
            columns.append(self.realized.objective.values(at))
        return space.runtime.ride(np.concatenate([*columns, *more], axis=1))

    def _blurred(self, w: Array, gradient: Array, p: Array, stiff: float) -> Array:
        """What each agent's part of gradient + p may lack, added up of g, p, stiff w."""
        space = self.space
        L = self.realized.objective.L
        stiff += L if math.isfinite(L) else 0.0
        sizes = [np.sqrt(space.partial_dots(v, v)) for v in (w, gradient, p)]
        return np.asarray(self._many * EPS * (stiff * sizes[0] + sizes[1] + sizes[2]))

    def gap(
        self,
        w: Array,
        gradient: Array,
        p: Array,
        *,
        value: float | None = None,
        distance: Later | None = None,
        slack: Later = zero,
        price: Array | None = None,
        off: Array | None = None,
        stiff: float = 0.0,
    ) -> Gap:
        """The bound at w itself with the dual vector p in Range K'.

        ``price`` is that of p; ``off`` are agents' numbers of what the gradient may lack (else it
        is rounding, of ``stiff`` w too). Cost: one averaging, one residual where the distance to
        the feasible set is not known, with a price what :class:`Outside` takes. Scalars ride;
        sup <r, w - w'> over consensus points with ||(x, z) - (x', z')|| <= 1 is
        (sum_i ||r_xi||^2 + ||sum_i r_zi / s||^2)^{1/2}.
        """
        objective = self.realized.objective
        space = self.space
        system = self._system
        r = gradient + p
        way = self.way(w)
        pairs = ((r, w - self.w0), (gradient, gradient), (p, p), (way, way), (w, w))
        known = np.zeros_like(p) if price is not None and self.outside is not None else p
        lost = self._blurred(w, gradient, known, stiff) if off is None else off
        rounding = [lost**2]
        if price is not None:
            rounding = [*self._rounding(w, r, gradient, Dual(None, price)), lost**2]
        told = self._ask(*pairs, at=w if value is None else None, more=rounding)
        if distance is None:
            distance = zero
            if not system.empty:
                residual = system.residual(w)[0]
                beside = space.ride((residual, residual))
                distance = partial(self._distance, beside)
        own = space.runtime.ride(piece_sums(space.x(r) ** 2, space.d)[:, None])
        mean = space.runtime.average(space.z(r))[0] * (space.runtime.n / self.realized.s)
        slope = math.sqrt(float(own.value[0]) + float(space.runtime.common(mean @ mean)))
        unseen = self._unseen  # the square is more than what any of the sums may lack
        sums = told.value[: len(pairs)] + unseen**2
        inner, steep, size, moved, length = (float(v) for v in sums)
        rest = told.value[len(pairs) :]
        if value is None:
            value = float(rest[0]) + unseen**2
            rest = rest[1:]
        lacks, away = self._lost(math.sqrt(length), rest)
        scale = execution_radius(self.realized, 1.0)
        room = self._many * EPS
        slope = (slope + unseen) * (1 + room) + scale * lacks
        travelled = math.sqrt(moved)
        # <r, w - w0> is known to that share of its factors; slacks are differences of g'w.
        inner += scale * travelled * (lacks + room * (math.sqrt(steep) + math.sqrt(size)))
        inner += room * math.sqrt(steep * length)
        smooth = math.isfinite(objective.L)
        far = distance() * (1 + room) + away + self._unseen_distance
        steepness = objective.L if smooth else math.sqrt(steep)
        steepness = steepness if steepness > 0 else 1.0  # F is flat: violations count all the same
        return Gap(
            w,
            gradient,
            p,
            value,
            slack() + inner + (math.sqrt(size) + lacks) * far,
            slope,
            far,
            travelled,
            steepness,
            smooth,
            scale,
            price,
            user_distance(self.realized),
            lacks=lacks,
        )

    def project(self, gradient: Array, wanted: Later) -> tuple[Array, Array]:
        """(p, price) with gradient + p in the kernel of K up to ``wanted``."""
        if self._system.empty:
            return np.zeros_like(gradient), self._system.zero_price()
        kernel, price = self._project(gradient, wanted)
        return kernel - gradient, price

    def repaired(self, w: Array, wanted: float | Later) -> tuple[Array, Later]:
        """(RF^k(w), its distance to the feasible set, at most)."""
        if self._system.empty:
            return w, zero
        return self._repair(w, wanted)

    def tight_smooth(self, w: Array, goal: Goal) -> Gap:
        """At the repaired point with p = -Pi_N grad F: affine calls and one gradient."""
        objective = self.realized.objective
        way = self.way(w)
        gradient = objective.gradient(w)
        told = self._ask((gradient, gradient), (way, way), at=w)

        def accuracy() -> tuple[float, float]:
            steep, moved, value = (float(v) for v in told.value)
            radius = self._radius(math.sqrt(moved), goal)
            reach = objective.L * execution_radius(self.realized, radius)
            size = max(math.sqrt(steep), reach, 1e-300)
            epsilon = REPAIRED * goal.epsilon(value)
            return min(epsilon / size, self._near(goal)), epsilon / max(radius, 1e-300)

        repaired, distance = self.repaired(w, lambda: accuracy()[0])
        gradient, off = objective.precise_gradient(repaired)
        p, price = self.project(gradient, lambda: accuracy()[1])
        return self.gap(repaired, gradient, p, distance=distance, price=price, off=off)

    def tight_subgradient(
        self,
        w: Array,
        gradient: Array,
        goal: Goal,
        slack: Later = zero,
        share: float = 1.0,
        stiff: float = 0.0,
    ) -> Gap:
        """At the repaired point (w itself where F is infinite there), from a subgradient at w.

        F(v) - F* <= F(v) - F(w) + bound(w); the repaired v is used if its value is finite. For a
        strongly convex F it is repaired as far as rounding allows, so that it counts as feasible
        in the error bound; ``share`` of the convexity holds along the subgradient given, which
        is rounded like ``stiff`` w.
        """
        way = self.way(w)
        told = self._ask((gradient, gradient), (way, way), at=w)

        def near() -> float:
            radius = self._radius(math.sqrt(float(told.value[1])), goal)
            return REPAIRED * goal.epsilon(float(told.value[2])) / max(radius, 1e-300)

        p, price = self.project(gradient, near)
        steep, moved, value = (float(v) for v in told.value)
        found = self.gap(w, gradient, p, value=value, slack=slack, price=price, stiff=stiff)
        epsilon = goal.epsilon(value)
        steep = max(math.sqrt(steep), 1e-300)
        if math.isfinite(self.realized.objective.L):
            reach = execution_radius(self.realized, self._radius(math.sqrt(moved), goal))
            steep = max(steep, self.realized.objective.L * reach)
        wanted = 0.0 if self.strong else min(REPAIRED * epsilon / steep, self._near(goal))
        repaired, distance = self.repaired(w, wanted)
        return self._moved_to(repaired, distance, found, slack, share)

    def _moved_to(
        self, repaired: Array, distance: Later, found: Gap, slack: Later, share: float
    ) -> Gap:
        """The bound at w carried to a feasible point; with an error bound where F is strong."""
        w = found.w
        gradient = found.gradient
        p = found.p
        pairs = [(p, p), (gradient, gradient), (w, w), (repaired, repaired)]
        if self.strong:
            r = self._in_strong_units(gradient + p, dual=True)
            step = repaired - w
            step = self._in_strong_units(step)
            pairs += [(r, r), (step, step)]
        unseen = self._unseen
        told = self._ask(*pairs, at=repaired).value
        size, steep, here, length, *strong, there = (float(v) + unseen**2 for v in told)
        if not math.isfinite(there):
            return found
        lost = self._value_rounding(steep, max(here, length), found.value, there)
        error = math.inf
        away = distance() + self._unseen_distance
        if self.strong:
            root, (mu_x, mu_z) = math.sqrt(share), self.convexity
            rest = there - found.value + slack() + unseen**2
            rest += (math.sqrt(size) + found.lacks) * found.distance
            # The feasible point next to the repaired one: F is larger there by its slope, which is
            # that at w and what L adds on the way (of kinks: that at w alone).
            L = self.realized.objective.L
            least = min(mu_x, mu_z * self.realized.s**2)
            there_by = L * (math.sqrt(strong[1] / least) + away) if math.isfinite(L) else 0.0
            rest += lost + (math.sqrt(steep) + there_by) * away
            r_size = (math.sqrt(strong[0]) + found.lacks / math.sqrt(least)) / root
            moved = root * math.sqrt(strong[1])
            moved += root * away * math.sqrt(max(mu_x, mu_z * self.realized.s**2))
            error = strong_distance(r_size, moved, rest) * self.error_unit / root
            error += away * user_distance(self.realized)
            error += (self.space.runtime.n + 2) * EPS * math.sqrt(length)
        return replace(
            found,
            w=repaired,
            value=there,
            base=found.base + there - found.value + lost,
            distance=away,
            error=error * (1 + 16 * EPS),
        )

    def _value_rounding(self, steep: float, square: float, *values: float) -> float:
        """Of values of F at points of squared length ``square`` at most, from the squared slope:
        what is added up is taken for as large as they are, ||g|| ||w|| and L ||w||^2.
        """
        L = self.realized.objective.L
        n = self.space.runtime.n
        terms = math.sqrt(steep * square) + (L * square if math.isfinite(L) else 0.0)
        return (n + 8) * EPS * (2 * terms + sum(map(abs, values)))

    def _near(self, goal: Goal) -> float:
        """How near to the feasible set a repaired point has to be for its rows."""
        return ROWS * goal.tol / user_distance(self.realized)

    def _radius(self, travelled: float, goal: Goal) -> float:
        return goal.radius if goal.radius is not None else estimated_radius(travelled)
