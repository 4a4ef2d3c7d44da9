"""Bounds on F(w) - F* that need no solution, only a radius.

For a point u, a subgradient g of F at u (or an average of both with a <= slack), any p in Range K'
and R >= ||w0 - w*||, with r = g + p:

    F(u) - F* <= slack + <r, u - w0> + R ||r|| + ||p|| dist(u),   dist(u) <= ||G u - g|| / lambda_-.

The distance <r, w0 - w*> is taken in the user's variables, where w0 and w* are in consensus. A
feasible (repaired) point v then has F(v) - F* <= F(v) - F(u) + the bound. Nothing here needs a
multiplier budget.

Where F is strongly convex (mu, in the user's variables) no radius is needed: with e = ||v - u|| and
D = ||v - w*|| the bound is taken with w* itself in the place of R, and F(v) - F* >= mu D^2 / 2, so

    mu D^2 / 2 <= c + ||r|| D,     c = F(v) - F(u) + slack + ||r|| e + ||p|| dist(u).

With bounds and inequalities :mod:`ccmac.certificates.duality` has the gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from ccmac.certificates.realized import Certifier, Later, zero
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged, over
from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Realized
from ccmac.runtime.base import Piggyback
from ccmac.runtime.space import piece_sums


@dataclass(frozen=True)
class Goal:
    """eps = ``accuracy``, else tol max(1, |F|); ``radius`` R in the user's variables, if known."""

    tol: float
    accuracy: float | None = None
    radius: float | None = None

    def epsilon(self, value: float) -> float:
        """The accuracy asked for when the objective is ``value``; 0 where that is none."""
        if self.accuracy is not None:
            return self.accuracy
        return self.tol * max(1.0, abs(value)) if math.isfinite(value) else 0.0

    @property
    def absolute(self) -> float:
        """The accuracy a schedule is made for, before any value of F is known."""
        return self.tol if self.accuracy is None else self.accuracy

    def required(self, travelled: float) -> float:
        """The radius a gap must hold for: given, else max(1, 2 ||w - w0||).

        A point that has hardly moved must not prove itself optimal.
        """
        return self.radius if self.radius is not None else max(1.0, 2.0 * travelled)

    @property
    def radius_source(self) -> str:
        """In words."""
        if self.radius is not None:
            return "supplied"
        return "estimated: twice the distance travelled, at least 1"


def execution_radius(realized: Realized, radius: float) -> float:
    """A bound on ||w0 - w*|| from one on ||(x0, z0) - (x*, z*)||: n copies of z / s, if any."""
    if not realized.space.q:
        return radius
    return radius * max(1.0, math.sqrt(realized.space.runtime.n) / realized.s)


@dataclass(frozen=True, kw_only=True)
class Gap:
    """F - F* <= base + R slope, for every R (user units) that bounds the distance.

    ``violation`` is of unit rows, ``travelled`` ||w - w0||.
    """

    value: float
    base: float
    slope: float
    violation: float
    travelled: float

    def bound(self, radius: float) -> float:
        """F(w) - F* at most, when ||(x0, z0) - (x*, z*)|| <= radius."""
        return self.base + radius * self.slope

    def required(self, goal: Goal) -> float:
        """The radius the criterion must hold for: given, else estimated."""
        return goal.required(self.travelled)

    def radius(self, epsilon: float) -> float:
        """The largest R for which the criterion is proved (0: none)."""
        allowed = max(epsilon - self.base, 0.0)
        return allowed / self.slope if self.slope > 0 else math.inf

    def ratio(self, goal: Goal) -> float:
        """Gap and violation over what is asked: the larger.

        A bound far below zero tells of violations that lower F by more than the accuracy.
        """
        most = abs(self.bound(self.required(goal)))
        return max(over(most, goal.epsilon(self.value)), over(self.violation, goal.tol))

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        epsilon = goal.epsilon(self.value)
        radius = self.required(goal)
        return {
            "epsilon": epsilon,
            "radius": radius,
            "radius_source": goal.radius_source,
            "radius_proved": self.radius(epsilon),
            "gap": self.bound(radius),
            "feasibility": self.violation,
            "value": self.value,
            "proved_by": "bound" if self.ratio(goal) <= 1.0 else "nothing",
        }


@dataclass(frozen=True, kw_only=True)
class PointGap(Gap):
    """A gap at a point ``w`` of a realization, with a subgradient there and p in Range K'."""

    w: Array
    gradient: Array
    p: Array
    distance: float  # of w to the feasible set, at most
    steepness: float  # L of a smooth F; norm of the subgradient elsewhere; 1 where that is 0
    smooth: bool
    scale: float  # execution radius per user radius
    multiplier: Array | None = None
    source: str = "last"  # last iterate or average
    error: float = math.nan  # ||(x, z) - (x*, z*)|| at most (nan: F is not strongly convex)
    excess: float = 0.0  # F(w) - F* <= excess + slope D, D the distance of w from w*

    def bound(self, radius: float) -> float:
        """Never below zero."""
        return max(super().bound(radius), 0.0)

    def feasibility(self, radius: float) -> float:
        """(L R / sigma) ||K w - v|| (smooth) or (M / sigma) ||K w - v||, at most.

        Equation eq:cvx-accuracy and Equation eq:ns-accuracy.
        """
        return self.steepness * self.distance * (self.scale * radius if self.smooth else 1.0)

    def radius(self, epsilon: float) -> float:
        """The largest R for which both parts of the criterion are proved (0: none)."""
        if not self.base <= epsilon or (not self.smooth and self.feasibility(1.0) > epsilon):
            return 0.0
        limits = [super().radius(epsilon)]
        if self.smooth and self.feasibility(1.0) > 0:
            limits.append(epsilon / self.feasibility(1.0))
        return min(limits)

    def ratio(self, goal: Goal) -> float:
        """Scaled feasibility counts as well."""
        scaled = self.feasibility(self.required(goal))
        return max(super().ratio(goal), over(scaled, goal.epsilon(self.value)))

    def record(self, goal: Goal) -> dict[str, Any]:
        """For Result.certificates."""
        scaled = self.feasibility(self.required(goal))
        return super().record(goal) | {"feasibility": scaled, "point": self.source}


class GapCertifier(Certifier):
    """Gaps for points of one realized problem, started at ``w0`` (a consensus point).

    ``convexity`` is (mu_x, mu_z) of every agent's objective in the user's variables.
    """

    def __init__(
        self, realized: Realized, w0: Array, convexity: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        super().__init__(realized)
        self.w0 = w0
        n = realized.space.runtime.n
        mu_x, mu_z = convexity
        mu = min(mu_x, n * mu_z)
        lifted = self.space.z_end < self.space.size
        self.mu = mu if mu < math.inf and not lifted else 0.0  # of F in (x, z); y has none
        # ||(x, mean z)|| of an execution vector of length one at most: mean z = s sum_i z_i / n.
        self.unit = max(1.0, realized.s / math.sqrt(n)) if realized.space.q else 1.0

    def value(self, w: Array) -> float:
        """sum_i f_i at each agent's own copy; one averaging."""
        return float(self.space.runtime.total(self.realized.objective.values(w))[0])

    def way(self, w: Array) -> Array:
        """(x, mean z) - (x0, z0) in the user's variables, as the agents' shares of it."""
        step = w - self.w0
        self.space.z(step)[...] *= self.realized.s / math.sqrt(self.space.runtime.n)
        return step

    def _ask(self, *products: tuple[Array, Array], more: tuple[Array, ...] = ()) -> Piggyback:
        """Inner products and ``more`` columns: in the next message."""
        columns = [self.space.partial_dots(u, v) for u, v in products]
        return self.space.runtime.piggyback(np.concatenate([*columns, *more], axis=1))

    def gap(
        self,
        w: Array,
        gradient: Array,
        p: Array,
        *,
        distance: Later | None = None,
        slack: Later = zero,
        multiplier: Array | None = None,
    ) -> PointGap:
        """The bound at w itself with the dual vector p in Range K', and its ``multiplier``.

        Cost: one averaging, one residual where the distance to the feasible set is not known.
        Scalars are piggybacked; sup <r, w - w'> over consensus points with ||(x, z) - (x', z')|| <=
        1 is (sum_i ||r_xi||^2 + ||sum_i r_zi / s||^2)^{1/2}.
        """
        objective = self.realized.objective
        space = self.space
        n = space.runtime.n
        r = gradient + p
        way = self.way(w)
        L = objective.L if math.isfinite(objective.L) else 0.0
        off = 4 * EPS * L * np.sqrt(space.partial_dots(w, w))
        more = (*self.rounding(w, gradient, r, off), objective.values(w))
        pairs = ((r, w - self.w0), (gradient, gradient), (p, p), (way, way), (w, w))
        received = self._ask(*pairs, more=more)
        if distance is None:
            distance = zero
            if not self._system.empty:
                residual = self._system.residual(w)[0]
                misfit = space.piggyback((residual, residual))
                distance = partial(self._distance, misfit)
        own = space.runtime.piggyback(piece_sums(space.x(r) ** 2, space.d)[:, None])
        mean = space.runtime.average(space.z(r))[0] * (n / self.realized.s)
        slope = math.sqrt(float(own.value[0]) + float(space.runtime.common(mean @ mean)))
        inner, *squares, value = (float(v) for v in received.value)
        steep, size, moved, length = (math.sqrt(v + self.unseen**2) for v in squares[:4])
        # All that rounding may take is added here.
        lacks, away = self._lost(length, np.array(squares[4:]))
        scale = execution_radius(self.realized, 1.0)
        slope += scale * lacks
        far = distance() + away
        excess = slack() + (size + lacks) * far + 4 * EPS * n * (abs(value) + steep * length)
        smooth = math.isfinite(objective.L)
        steepness = objective.L if smooth else steep
        return PointGap(
            value=value,
            base=excess + inner + moved * scale * lacks + self.unseen**2,
            slope=slope,
            violation=self.unit * far,
            travelled=moved,
            w=w,
            gradient=gradient,
            p=p,
            distance=far,
            steepness=steepness if steepness > 0 else 1.0,  # violations count where F is flat
            smooth=smooth,
            scale=scale,
            multiplier=multiplier,
            excess=excess,
        )

    def repaired(self, w: Array, wanted: float | Later) -> tuple[Array, Later]:
        """(RF^k(w), its distance to the feasible set, at most)."""
        if self._system.empty:
            return w, zero
        return self._repair(w, wanted)

    def _accuracy(self, w: Array, gradient: Array, goal: Goal) -> Callable[[], tuple[float, float]]:
        """(how near to the feasible set a point is to be repaired, how far a slope projected).

        Known with the next message.
        """
        way = self.way(w)
        objective = self.realized.objective
        more = (objective.values(w),)
        received = self._ask((gradient, gradient), (way, way), more=more)

        def known() -> tuple[float, float]:
            steep, moved, value = (float(v) for v in received.value)
            radius = max(goal.required(math.sqrt(moved)), 1e-300)
            size = max(math.sqrt(steep), 1e-300)
            if math.isfinite(objective.L):
                size = max(size, objective.L * execution_radius(self.realized, radius))
            # Share of the accuracy that a repair, or a projection, may leave.
            epsilon = 1e-2 * goal.epsilon(value)
            return min(epsilon / size, 0.5 * goal.tol / self.unit), epsilon / radius

        return known

    def tight_smooth(self, w: Array, goal: Goal) -> PointGap:
        """At the repaired point with p = -Pi_N grad F: affine calls and one gradient."""
        objective = self.realized.objective
        accuracy = self._accuracy(w, objective.gradient(w), goal)
        repaired, distance = self.repaired(w, lambda: accuracy()[0])
        gradient, _ = objective.precise_gradient(repaired)
        p, multiplier = self.project(gradient, lambda: accuracy()[1])
        return self.gap(repaired, gradient, p, distance=distance, multiplier=multiplier)

    def tight_subgradient(
        self, w: Array, gradient: Array, goal: Goal, slack: Later = zero
    ) -> PointGap:
        """At the repaired point v (w itself where F is infinite there), from a subgradient at w.

        F(v) - F* <= F(v) - F(w) + bound(w). For a strongly convex F it is repaired as far as
        rounding allows, so that it counts as feasible in the error bound.
        """
        accuracy = self._accuracy(w, gradient, goal)
        p, multiplier = self.project(gradient, lambda: accuracy()[1])
        found = self.gap(w, gradient, p, slack=slack, multiplier=multiplier)
        repaired, distance = self.repaired(w, 0.0 if self.mu > 0 else accuracy()[0])
        step = repaired - w
        objective = self.realized.objective
        pairs = ((step, step), (gradient, gradient), (gradient + p, gradient + p))
        received = self._ask(*pairs, more=(objective.values(repaired),))
        *squares, there = (float(v) for v in received.value)
        if not math.isfinite(there):
            return found
        moved, steep, left = (math.sqrt(v + self.unseen**2) for v in squares)
        away = distance()
        rise = there - found.value + 4 * EPS * self.space.runtime.n * abs(there)
        error = math.nan
        if self.mu > 0:
            # The feasible point next to v: F is larger there by its slope, which L may increase.
            L = objective.L if math.isfinite(objective.L) else 0.0
            c = found.excess + rise + left * moved + (steep + L * (moved + away)) * away
            root = math.sqrt(found.slope**2 + 2.0 * self.mu * max(c, 0.0))
            error = (found.slope + root) / self.mu + away * self.unit
        return replace(
            found,
            w=repaired,
            value=there,
            base=found.base + rise,
            violation=self.unit * away,
            distance=away,
            error=error,
        )


class Prover(Protocol):
    """An iteration that can bound its own gap; ``found`` is what it adds to the record."""

    certifier: GapCertifier
    found: dict[str, float]

    def quick_gap(self, state: Any) -> PointGap | None:
        """A cheap bound (None: there is none yet)."""

    def tight_gap(self, state: Any) -> PointGap:
        """The best bound that affine calls and one gradient give."""


class GapJudge(Judge):
    """F - F* <= eps and scaled feasibility <= eps for a radius, unit rows violated by tol at most.

    The tight bound is taken when the quick one is near the goal. ``record`` is Result.certificates:
    what is known last. With ``scheduled`` the schedule's own theorem proves the gap once it is
    over; the bound is computed for the rows and for the record.
    """

    def __init__(
        self, prover: Prover, goal: Goal, record: dict[str, Any], *, scheduled: bool = False
    ) -> None:
        self.prover = prover
        self.goal = goal
        self.record = record
        self.scheduled = scheduled
        self.notes = prover.certifier.notes

    def check(self, iteration: Judged, state: Any) -> Check:
        """Quick, then tight if near."""
        quick = self.prover.quick_gap(state)
        if quick is None:
            return Check(math.nan)
        bound = quick.bound(quick.required(self.goal))
        if bound > 4.0 * self.goal.epsilon(quick.value):
            self._note(quick)
            return Check(bound, Evidence("look", over(bound, self.goal.epsilon(quick.value))))
        return self._tight(state)

    def _tight(self, state: Any, *, finished: bool = False) -> Check:
        found = self.prover.tight_gap(state)
        self._note(found)
        rests = self.prover.certifier.realized.system.interval.source
        evidence = Evidence("gap", found.ratio(self.goal), rests)
        if finished:
            evidence = Evidence("schedule", over(found.violation, self.goal.tol), rests)
            self.record["proved_by"] = "schedule" if evidence.met else "nothing"
        proved = self.prover.certifier.proved(
            found.w, found.gradient, found.multiplier, found.error, found.slope, found.distance
        )
        return Check(found.bound(found.required(self.goal)), evidence, proved)

    def _note(self, found: Gap) -> None:
        """Write what is known now."""
        self.record.update(found.record(self.goal))
        self.record.update(self.prover.found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One tight bound."""
        return self._tight(state, finished=self.scheduled and iteration.finished(state))
