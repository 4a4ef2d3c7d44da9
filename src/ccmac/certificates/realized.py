"""The error bound of points of a realization: sigma is the lower end of its interval.

The bound of :mod:`ccmac.certificates.bound` is tightest at a repaired point (delta ~ 0) with p the
best approximation of -grad Phi there; both come from conjugate residuals on G. Rounding is added in
:meth:`Certifier._lost` and nowhere else. Charged to the current phase.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ccmac.certificates.bound import Dual, Proved, distance_bound
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged, check_of
from ccmac.inputs import Array
from ccmac.linalg.blocks import frobenius
from ccmac.linalg.chebyshev import smallest_degree
from ccmac.linalg.conjugate import Remainder, conjugate_residuals
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import AffineSystem, Realized
from ccmac.runtime.base import Piggyback
from ccmac.runtime.space import lengths

Later = Callable[[], float]  # a number that is known once its message has travelled


def zero() -> float:
    """What needs no message to be known: the distance from no equations, say."""
    return 0.0


def _at_most(goal: float, norm: float, _: float) -> bool:
    return norm <= goal


@dataclass(frozen=True)
class Look:
    """What one residual and one reduction tell of a point w."""

    w: Array
    dual: Dual | None
    gradient: Array | None
    residual: Array | None  # G w - g
    norm: float  # of it
    length: float  # ||w||
    size: float  # ||(x, z)|| in the user's variables
    stationary: float  # what r alone adds to the bound (nan without a dual state)
    infeasible: float  # what delta alone adds to it
    bound: Proved | None  # None without a dual state


class Certifier:
    """Bounds for points of one realized problem (smooth, strongly convex).

    ``notes`` collects what was found wrong with the certified interval, and mended. ``floor``, of a
    point's size, is a distance that rounding leaves; ``far`` times it, rounding is far.
    """

    floor = 1e-13
    far = 1e3

    def __init__(self, realized: Realized) -> None:
        self.realized = realized
        self.space = realized.space
        self.notes: list[str] = []
        agents = realized.objective.problem.agents.values()
        s = realized.s
        self._sizes = np.array(
            [[frobenius(a.A), s * frobenius(a.B), frobenius(a.b)] for a in agents]
        )

    @property
    def _system(self) -> AffineSystem:
        return self.realized.system

    @property
    def unseen(self) -> float:
        """What may be missing in a norm because of how sums travel."""
        return math.sqrt(self.space.runtime.unseen(self.space.size))

    # -- looks -------------------------------------------------------------------------------------
    def look(self, w: Array, dual: Dual | None) -> Look:
        """The bound at w with the method's own dual state, as far as it has one.

        Cost: 1 residual, 1 reduction, and with a dual state 1 gradient.
        """
        space = self.space
        # One vector at a time: a look must not need more memory than an iteration.
        squares = [space.partial_dots(w, w), self._user_squares(w)]
        residual = None if self._system.empty else self._system.residual(w)[0]
        none = np.zeros_like(squares[0])
        squares.append(none if residual is None else space.partial_dots(residual, residual))
        gradient = None
        if dual is not None:
            gradient, off = self.realized.objective.precise_gradient(w)
            rest = np.zeros_like(gradient) if dual.p is None else gradient + dual.p
            squares += [space.partial_dots(rest, rest), *self.rounding(w, gradient, rest, off)]
            del rest
        received = space.runtime.total(np.concatenate(squares, axis=1))
        length, size, norm = np.sqrt(received[:3]).tolist()
        objective = self.realized.objective
        scale = self.realized.error_scale
        delta = 0.0 if residual is None else norm / self._system.interval.low
        infeasible = scale * math.sqrt(objective.L / objective.mu) * delta
        stationary = math.nan
        bound = None
        if dual is not None and gradient is not None:
            r = math.sqrt(received[3])
            stationary = scale * r / objective.mu
            known = r, delta, size, length
            bound = self._bound(w, gradient, dual.multiplier, known, received[4:])
        return Look(w, dual, gradient, residual, norm, length, size, stationary, infeasible, bound)

    def _user_squares(self, w: Array) -> Array:
        """Per agent, its share of ||(x, z)||^2 in the user's variables."""
        space = self.space
        user = np.zeros(space.size)
        space.x(user)[...] = space.x(w)
        space.z(user)[...] = self.realized.copies(w) / math.sqrt(space.runtime.n)
        return space.partial_dots(user, user)

    def tight(self, look: Look, goal: float) -> Proved:
        """The bound at the repaired point; ``goal`` is the accuracy wanted (user units).

        Repairs until the distance to feasibility is small against the goal, then removes from
        grad Phi + p what multipliers cancel, until the goal is met or nothing is left to remove.
        """
        objective = self.realized.objective
        space = self.space
        system = self._system
        goal = goal / self.realized.error_scale
        dual = look.dual
        w = look.w
        delta = zero
        if look.residual is not None:
            w, delta = self._repair(w, 0.05 * goal * math.sqrt(objective.mu / objective.L), look)
        gradient, off = objective.precise_gradient(w)
        left = gradient
        multiplier = system.zero_multiplier() if dual is None else dual.multiplier
        if dual is not None and look.gradient is not None:
            left = gradient - look.gradient if dual.p is None else gradient + dual.p
        if not system.empty:
            enough = 0.9 * objective.mu * goal
            little = 0.3 * system.interval.low  # below it hardly any of Range K' can be left
            reduced = conjugate_residuals(
                system.homogeneous(),
                left,
                lambda r, image: r <= enough or image <= little * r,
                self._limit,
            )
            left = reduced.remaining
            multiplier = reduced.multiplier + multiplier
        columns = [space.partial_dots(left, left), space.partial_dots(w, w)]
        columns += self.rounding(w, gradient, left, off)
        received = space.runtime.total(np.concatenate(columns, axis=1))
        r, length = np.sqrt(np.maximum(received[:2], 0.0)).tolist()
        return self._bound(w, gradient, multiplier, (r, delta(), look.size, length), received[2:])

    def _bound(
        self,
        w: Array,
        gradient: Array,
        multiplier: Array,
        known: tuple[float, float, float, float],
        rounding: Array,
    ) -> Proved:
        """From (r, delta, ||(x, z)||, ||w||) and the sums of the columns of :meth:`rounding`."""
        r, delta, size, length = known
        objective = self.realized.objective
        lacks, away = self._lost(length, rounding)
        r += lacks
        delta += away
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return self.proved(w, gradient, multiplier, (error, r, delta, size))

    def proved(
        self, w: Array, gradient: Array, multiplier: Array, known: tuple[float, float, float, float]
    ) -> Proved:
        """What is known of w, in the user's variables: (error, ||r||, delta, ||(x, z)||)."""
        space = self.space
        copies = self.realized.copies(w)
        gz = space.z(gradient) / self.realized.s
        return Proved(space.x(w), copies, *known, space.x(gradient), gz, multiplier, w=w)

    # -- rounding ----------------------------------------------------------------------------------
    def rounding(self, w: Array, gradient: Array, left: Array, off: Array) -> list[Array]:
        """Columns of squares, to be summed: what agents' parts of grad Phi + p may lack, and their
        terms of the coupled rows.

        ``left`` is that sum, ``off`` what the gradient may lack; p was added up by many steps.
        """
        space = self.space
        short = np.array(space.d) + space.runtime.n + 2  # terms of a row's sum
        many = short + space.q
        slopes = sum(np.sqrt(space.partial_dots(v, v))[:, 0] for v in (gradient, left))
        lacks = off[:, 0] + 2 * EPS * many * slopes
        rows = [
            A * float(np.linalg.norm(x)) + B * float(np.linalg.norm(z)) + b
            for (A, B, b), (x, z) in zip(self._sizes, space.split(w), strict=True)
        ]
        with np.errstate(over="ignore"):  # of iterates that have blown up
            return [lacks[:, None] ** 2, (short * np.array(rows))[:, None] ** 2]

    def _lost(self, length: float, sums: Array) -> tuple[float, float]:
        """What rounding may take from ||grad Phi + p|| and from the distance to the equations."""
        system = self._system
        lacks = math.sqrt(max(float(sums[0]), 0.0)) + 2 * self.unseen
        if system.empty:
            return lacks, 0.0
        terms = math.sqrt(max(float(sums[1]), 0.0))
        noise = 2 * EPS * (system.gain * terms + self.space.runtime.n * system.turn * length)
        return lacks, (noise + self.unseen) / system.interval.low

    # -- repairs -----------------------------------------------------------------------------------
    def confirmed(self, look: Look) -> bool:
        """Whether a few steps on G w - g meet nothing outside the interval the look relies on.

        Cost: 6 products with G; where something is met the interval is mended.
        """
        if look.residual is None:
            return True
        trusted = self.far * self.floor * (1.0 + look.size)
        system = self._system.homogeneous()
        met = conjugate_residuals(system, look.residual, partial(_at_most, 0.0), 4, trusted=trusted)
        return not self._mend(met)

    def repair(self, w: Array) -> Array:
        """w moved to the feasible set (or to where the equations conflict least)."""
        return self._repair(w, 0.0)[0]

    @property
    def _limit(self) -> int:
        """Steps in which the certified interval promises a factor of 1e-12."""
        return smallest_degree(self._system.interval.low, self._system.interval.high, 1e-12)

    def _repair(
        self, w: Array, wanted: float | Later, look: Look | None = None
    ) -> tuple[Array, Later]:
        """(w - y with G y ~ G w - g, its distance bound); ``look``: what is known of w.

        ``wanted`` may be something that is known with the next message. Where rounding is far, the
        norm of the new residual is believed to be what the recursion says, and known (for the
        bound) with the message after the repair.
        """
        system = self._system
        space = self.space
        if look is None or look.residual is None:
            size = space.piggyback((w, w))
            residual = system.residual(w)[0]
            [before], [length] = space.norms(residual), lengths(size)
        else:
            residual = look.residual
            before = look.norm
            length = look.length
        floor = self.floor * (1.0 + length)
        wanted = wanted if isinstance(wanted, float) else wanted()
        for _ in range(5):
            low = system.interval.low
            goal = max(wanted, floor) * low
            if before <= goal:
                break
            reduced = conjugate_residuals(
                system.homogeneous(),
                residual,
                partial(_at_most, 0.8 * goal),
                self._limit,
                trusted=self.far * floor,
            )
            w = w - reduced.y
            residual = system.residual(w)[0]
            now = space.piggyback((residual, residual))
            if reduced.left <= goal and goal >= self.far * floor * low:
                self._mend(reduced)
                return w, partial(self._distance, now)
            [after] = lengths(now)
            stuck = after > 0.5 * before and not self._mend(reduced)
            before = after
            if stuck:
                break
        return w, lambda: before / system.interval.low

    def _distance(self, squares: Piggyback) -> float:
        """Distance to the feasible set, at most, from ||G w - g||^2."""
        return lengths(squares)[0] / self._system.interval.low

    def _mend(self, met: Remainder) -> bool:
        """Quotients of vectors in Range G outside the interval prove it wrong: it is widened."""
        interval = self._system.interval
        low = 0.5 * met.lowest / interval.low if met.lowest < 0.99 * interval.low else 1.0
        high = 1.1 * met.highest / interval.high if 0.99 * met.highest > interval.high else 1.0
        if low == high == 1.0:
            return False
        self._system.interval = wider = interval.widened(low, high)
        self.notes.append(
            f"a repair met eigenvalues from {met.lowest:.3g} to {met.highest:.3g}, not in the "
            f"interval: it was put to [{wider.low:.3g}, {wider.high:.3g}]"
        )
        return True

    def project(self, vector: Array, wanted: Later) -> tuple[Array, Array]:
        """(p, its multiplier) with vector + p in the kernel of K but for ``wanted`` of Range K'."""
        if self._system.empty:
            return np.zeros_like(vector), self._system.zero_multiplier()
        low = self._system.interval.low
        reduced = conjugate_residuals(
            self._system.homogeneous(),
            vector,
            lambda r, image: r <= wanted() or image <= low * wanted(),
            self._limit,
        )
        return reduced.remaining - vector, reduced.multiplier


@dataclass
class RealizedJudge(Judge):
    """||error|| <= tol max(1, ||(x, z)||) by a :class:`Certifier`, for any method.

    Its point is embedded in the certifier's realization; a method that shares that realization
    lends its dual state for a cheap look. The tight bound is taken only when that gives hope.
    """

    certifier: Certifier
    tol: float

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was wrong with the certified interval."""
        return self.certifier.notes

    def _look(self, iteration: Judged, state: Any) -> Look:
        realized = self.certifier.realized
        dual = iteration.dual(state, realized)
        return self.certifier.look(iteration.embedded(state, realized), dual)

    def _check(self, found: Proved) -> Check:
        return check_of(found, self.tol, self.certifier.realized.system.interval.source)

    def check(self, iteration: Judged, state: Any) -> Check:
        """A cheap look first; the tight bound only when that gives hope."""
        look = self._look(iteration, state)
        if not math.isfinite(look.size):
            return Check(math.nan)
        goal = self.tol * max(1.0, look.size)
        seen = math.nan if look.bound is None else look.bound.error
        if look.bound is not None and seen <= goal:
            confirmed = self.certifier.confirmed(look)
            return self._check(look.bound) if confirmed else Check(seen)
        excess = self._excess(look, goal)
        if excess > 1.0:
            return Check(seen, Evidence("look", excess))
        return self._check(self.certifier.tight(look, goal))

    def _excess(self, look: Look, goal: float) -> float:
        """How many times too large the look is for a tight bound to be worth its cost.

        A repair removes the infeasible part at a cost that grows with its logarithm only. Where
        the point is stationary, going on is as fast as a repair: the look itself must meet the
        goal.
        """
        if look.dual is None:
            return look.infeasible / (100.0 * goal)
        if look.stationary <= 0.01 * look.infeasible:
            return look.infeasible / goal
        # Of the stationary part a tight bound takes a few times what it leaves.
        return max(look.stationary / (3.0 * goal), look.infeasible / (1000.0 * goal))

    def final(self, iteration: Judged, state: Any) -> Check:
        """One tight bound."""
        look = self._look(iteration, state)
        if not math.isfinite(look.size):
            return Check(math.nan)
        return self._check(self.certifier.tight(look, self.tol * max(1.0, look.size)))
