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
from ccmac.certificates.stopping import Check, Judge, Judged, check_of
from ccmac.inputs import Array
from ccmac.linalg.blocks import frobenius
from ccmac.linalg.chebyshev import smallest_degree
from ccmac.linalg.conjugate import Remainder, conjugate_residuals
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import AffineSystem, Realized


def _at_most(goal: float, norm: float, _: float) -> bool:
    return norm <= goal


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

    # -- bounds ------------------------------------------------------------------------------------
    def tight(self, w: Array, dual: Dual | None, tol: float) -> Proved:
        """The bound at the repaired point; an error of tol max(1, ||(x, z)||) is wanted.

        Repairs until the distance to feasibility is small against that, then removes from
        grad Phi + p what multipliers cancel, until it is met or nothing is left to remove.
        """
        objective = self.realized.objective
        space = self.space
        system = self._system
        size = math.sqrt(float(space.runtime.total(self._user_squares(w))[0]))
        goal = tol * max(1.0, size) / self.realized.error_scale
        before = w
        w, delta = self.repaired(w, 0.05 * goal * math.sqrt(objective.mu / objective.L))
        gradient, off = objective.precise_gradient(w)
        left = gradient
        multiplier = system.zero_multiplier()
        if dual is not None:
            p = -objective.gradient(before) if dual.p is None else dual.p
            left = gradient + p
            multiplier = dual.multiplier
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
        return self._bound(w, (gradient, left, off), multiplier, lambda: (delta, size))

    def plain(self, w: Array, dual: Dual) -> Proved:
        """The bound at w as it is, with the method's own dual state.

        Cost: 1 residual, 1 gradient, 1 reduction.
        """
        space = self.space
        squares = [self._user_squares(w), np.zeros((space.count, 1))]
        if not self._system.empty:
            residual = self._system.residual(w)[0]
            squares[1] = space.partial_dots(residual, residual)
        sent = space.runtime.piggyback(np.concatenate(squares, axis=1))
        gradient, off = self.realized.objective.precise_gradient(w)
        left = np.zeros_like(gradient) if dual.p is None else gradient + dual.p

        def known() -> tuple[float, float]:
            size, norm = np.sqrt(sent.value).tolist()
            return norm / self._system.interval.low if norm else 0.0, size

        return self._bound(w, (gradient, left, off), dual.multiplier, known)

    def _bound(
        self,
        w: Array,
        slopes: tuple[Array, Array, Array],
        multiplier: Array,
        known: Callable[[], tuple[float, float]],
    ) -> Proved:
        """From (grad Phi, grad Phi + p, what rounding may take from it); one reduction.

        ``known`` tells, once that has travelled, (delta, ||(x, z)||).
        """
        space = self.space
        objective = self.realized.objective
        gradient, left, off = slopes
        columns = [space.partial_dots(left, left), space.partial_dots(w, w)]
        columns += self.rounding(w, gradient, left, off)
        received = space.runtime.total(np.concatenate(columns, axis=1))
        r, length = np.sqrt(np.maximum(received[:2], 0.0)).tolist()
        delta, size = known()
        lacks, away = self._lost(length, received[2:])
        r += lacks
        delta += away
        error = distance_bound(r, delta, objective.mu, objective.L) * self.realized.error_scale
        return self.proved(w, gradient, multiplier, (error, r, delta, size))

    def _user_squares(self, w: Array) -> Array:
        """Per agent, its share of ||(x, z)||^2 in the user's variables."""
        space = self.space
        user = np.zeros(space.size)
        space.x(user)[...] = space.x(w)
        space.z(user)[...] = self.realized.copies(w) / math.sqrt(space.runtime.n)
        return space.partial_dots(user, user)

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
    @property
    def _limit(self) -> int:
        """Steps in which the certified interval promises a factor of 1e-12."""
        return smallest_degree(self._system.interval.low, self._system.interval.high, 1e-12)

    def repaired(self, w: Array, wanted: float = 0.0) -> tuple[Array, float]:
        """(w moved towards the feasible set, its distance from it, at most).

        ``wanted`` is that distance; less is not tried for. Where the equations conflict w is moved
        to where they conflict least.
        """
        system = self._system
        space = self.space
        if system.empty:
            return w, 0.0
        residual = system.residual(w)[0]
        before, length = space.norms(residual, w)
        floor = self.floor * (1.0 + length)
        for _ in range(5):
            goal = max(wanted, floor) * system.interval.low
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
            [after] = space.norms(residual)
            mended = self._mend(reduced)
            stuck = after > 0.5 * before and not mended
            before = after
            if stuck:
                break
        return w, before / system.interval.low

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

    def project(self, vector: Array, wanted: float) -> tuple[Array, Array]:
        """(p, its multiplier) with vector + p in the kernel of K but for ``wanted`` of Range K'."""
        if self._system.empty:
            return np.zeros_like(vector), self._system.zero_multiplier()
        low = self._system.interval.low
        reduced = conjugate_residuals(
            self._system.homogeneous(),
            vector,
            lambda r, image: r <= wanted or image <= low * wanted,
            self._limit,
        )
        return reduced.remaining - vector, reduced.multiplier


@dataclass
class RealizedJudge(Judge):
    """||error|| <= tol max(1, ||(x, z)||) by a :class:`Certifier`, for any method.

    Its point is embedded in the certifier's realization; a method that shares that realization
    lends its dual state.
    """

    certifier: Certifier
    tol: float
    costly = True

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was wrong with the certified interval."""
        return self.certifier.notes

    def check(self, iteration: Judged, state: Any) -> Check:
        """One tight bound."""
        realized = self.certifier.realized
        w = iteration.embedded(state, realized)
        found = self.certifier.tight(w, iteration.dual(state, realized), self.tol)
        return check_of(found, self.tol, realized.system.interval.source)
