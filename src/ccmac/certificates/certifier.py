"""The error bound of points of a realization: looks, repairs, and the interval they rely on.

The bound of :mod:`ccmac.certificates.error_bound` is tightest at a repaired point (delta ~ 0) with
p the best approximation of -grad Phi there; both come from conjugate residuals on G. Charged to the
current phase.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ccmac.certificates.error_bound import Bound, Dual, Look, distance_bound
from ccmac.certificates.outside import Outside
from ccmac.inputs import Array
from ccmac.linalg.chebyshev import smallest_degree
from ccmac.linalg.conjugate import Remainder, conjugate_residuals
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import AffineSystem, Realized
from ccmac.runtime.base import Rider
from ccmac.runtime.space import lengths

Later = Callable[[], float]  # a number that is known once its message has travelled
FLOOR = 1e-13
FAR = 1e3  # times the floor: rounding is far
ROUNDS_OF_REPAIR = 5
CONFIRMING = 4  # steps that must not contradict the interval before a look is believed
ROUNDING = 1e-11  # of a dual state: what may lie outside Range K' in any run
SHARE = 0.05  # of the accuracy wanted, left to what remains infeasible
DOUBT = 0.99  # quotients beyond the certified interval by more than this contradict it


def zero() -> float:
    """What needs no message to be known: the distance from no equations, say."""
    return 0.0


def below(target: float) -> Callable[[float, float], bool]:
    """Stop when the norm is at most ``target``."""
    return lambda norm, _: norm <= target


class Certifier:
    """Bounds for points of one realized problem (smooth, strongly convex).

    ``outside`` knows the user's rows: how far a dual vector is outside Range K'. Without it (points
    are repaired only, or systems are no problem's) it counts as inside. ``notes`` collects what was
    found wrong with the certified interval, and mended.
    """

    def __init__(self, realized: Realized, outside: Outside | None = None) -> None:
        self.realized = realized
        self.outside = outside
        self.space = realized.space
        self.notes: list[str] = []

    @property
    def _system(self) -> AffineSystem:
        return self.realized.system

    @property
    def _unseen(self) -> float:
        """What may be missing in a norm because of how sums travel."""
        return math.sqrt(self.space.runtime.unseen(self.space.size))

    @property
    def _unseen_distance(self) -> float:
        """The same in a distance to the feasible set."""
        return 0.0 if self._system.empty else self._unseen / self._system.interval.low

    def look(self, w: Array, dual: Dual | None) -> Look:
        """The bound at w with the method's own dual state, as far as it has one.

        Cost: 1 residual, 1 reduction, and with a dual state 1 gradient.
        """
        objective = self.realized.objective
        space = self.space
        scale = self.realized.error_scale
        # One vector at a time: a look must not need more memory than an iteration.
        squares = [space.partial_dots(w, w), self._user_squares(w)]
        residual = None
        gradient = None
        off = np.zeros((space.count, 1))
        if not self._system.empty:
            residual = self._system.residual(w)[0]
            squares.append(space.partial_dots(residual, residual))
        else:
            squares.append(np.zeros_like(squares[0]))
        if dual is not None:
            gradient, off = objective.precise_gradient(w)
            rest = np.zeros_like(gradient) if dual.p is None else gradient + dual.p
            squares += [space.partial_dots(rest, rest), *self._rounding(w, rest, gradient, dual)]
            del rest
        told = space.runtime.total(np.concatenate([*squares, off**2], axis=1))
        length, size, norm = np.sqrt(told[:3]).tolist()
        delta = 0.0 if self._system.empty else norm / self._system.interval.low
        mu = objective.mu
        L = objective.L
        infeasible = scale * math.sqrt(L / mu) * delta
        if dual is None:
            return Look(w, dual, size, None, residual, norm, length, (math.nan, infeasible))
        r = math.sqrt(told[3])
        error, r, delta = self._error(r, delta, size, length, told[4:])
        bound = Bound(error, r, delta, w, gradient, dual.price)
        return Look(w, dual, size, bound, residual, norm, length, (scale * r / mu, infeasible))

    def _rounding(self, w: Array, left: Array, gradient: Array, dual: Dual) -> list[Array]:
        """Columns of what rounding may do, with ``left`` taken for grad Phi + p (to be summed)."""
        return [] if self.outside is None else [self.outside.tell(w, left, gradient, dual.price)]

    def _user_squares(self, w: Array) -> Array:
        """Per agent, its share of ||(x, z)||^2 in the user's variables."""
        space = self.space
        user = np.zeros(space.size)
        space.x(user)[...] = space.x(w)
        space.z(user)[...] = self.realized.copies(w) / math.sqrt(space.runtime.n)
        return space.partial_dots(user, user)

    def tight(self, look: Look, goal: float) -> Bound:
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
            wanted = SHARE * goal * math.sqrt(objective.mu / objective.L)
            w, delta = self._repair(w, wanted, look)
        gradient, off = objective.precise_gradient(w)
        left = gradient
        price = system.zero_price()
        if dual is not None and look.bound is not None and look.bound.gradient is not None:
            left = gradient - look.bound.gradient if dual.p is None else gradient + dual.p
        if not system.empty:
            enough = (1 - 2 * SHARE) * objective.mu * goal
            low = system.interval.low
            reduced = conjugate_residuals(
                system.homogeneous(),
                left,
                # Below 0.3 hardly any of Range K' can be left.
                lambda r, image: r <= enough or image <= 0.3 * low * r,
                self._limit,
            )
            left = reduced.remaining
            price = reduced.price
        if dual is not None:
            price = price + dual.price
        columns = [space.partial_dots(left, left), space.partial_dots(w, w)]
        columns += [*self._rounding(w, left, gradient, Dual(None, price)), off**2]
        told = space.runtime.total(np.concatenate(columns, axis=1))
        r, length = np.sqrt(np.maximum(told[:2], 0.0)).tolist()
        error, r, away = self._error(r, delta(), look.size, length, told[2:])
        return Bound(error, r, away, w, gradient, price)

    def _error(
        self, r: float, delta: float, size: float, length: float, rounding: Array
    ) -> tuple[float, float, float]:
        """(the bound in the user's variables, r, delta) with what rounding may add to them.

        ``rounding``: sums of the columns of :class:`Outside`, then of the squares of what gradients
        lack. Of sums of squares a share of eps for each term is lost; the copies' mean that is
        returned is right to n + 2 eps of their sizes; mu to its decomposition.
        """
        objective = self.realized.objective
        n = self.space.runtime.n
        many = self._many
        lacks, away = self._lost(length, rounding)
        r = r * (1 + many * EPS) + lacks + 2 * self._unseen
        if not self._system.empty:
            delta = delta * (1 + many * EPS) + away + self._unseen_distance
        mu = objective.mu - 2 * EPS * many * objective.L
        L = objective.L
        if not mu > 0:
            return math.inf, r, delta
        error = distance_bound(r, delta, mu, L) * self.realized.error_scale * (1 + 16 * EPS)
        return error + (n + 2) * EPS * size + self._unseen, r, delta

    @property
    def _many(self) -> int:
        """Terms of the longest sums, nearly: what they lack is that many eps of their sizes."""
        return self.space.runtime.n + 8 if self.outside is None else self.outside.many

    def _lost(self, length: float, rounding: Array) -> tuple[float, float]:
        """What rounding may take from ||grad Phi + p|| and from the distance to the equations."""
        lacks = math.sqrt(max(rounding[-1], 0.0))
        noise = 0.0
        system = self._system
        if self.outside is not None and len(rounding) > 1:
            outside, noise = self.outside.heard(rounding[:-1])
            lacks += outside
        if system.empty:
            return lacks, 0.0
        noise += (self.space.runtime.n + 8) * EPS * system.turn * length
        return lacks, noise / system.interval.low

    def verified(self, w: Array, dual: Dual, tol: float) -> bool:
        """Whether p, or -grad Phi where there is none, lies in Range K' as bounds take for granted.

        Of a state that was read from a file; an observation, never charged. What lies outside may
        spoil a bound by a tenth of ``tol``, or be rounding.
        """
        objective = self.realized.objective
        space = self.space
        with space.runtime.ledger.observing():
            p = objective.gradient(w) if dual.p is None else dual.p
            size = space.norm(p)
            spoils = 0.1 * tol * objective.mu / self.realized.error_scale
            allowed = max(spoils, ROUNDING * size)
            if not self._system.empty and math.isfinite(size):
                size = space.norm(self._project(p, lambda: 0.5 * allowed)[0])
            return math.isfinite(size) and size <= allowed

    def confirmed(self, look: Look) -> bool:
        """Whether a few steps on G w - g meet nothing outside the interval the look relies on.

        Cost: CONFIRMING + 2 products with G; where something is met the interval is mended.
        """
        if look.residual is None:
            return True
        before = self._system.interval
        floor = FLOOR * (1.0 + look.size)
        self._doubt(
            conjugate_residuals(
                self._system.homogeneous(),
                look.residual,
                below(0.0),
                CONFIRMING,
                trusted=FAR * floor,
            )
        )
        return self._system.interval == before

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
            size = space.ride((w, w))
            residual = system.residual(w)[0]
            [before], [length] = space.norms(residual), lengths(size)
        else:
            residual = look.residual
            before = look.norm
            length = look.length
        floor = FLOOR * (1.0 + length)
        wanted = wanted if isinstance(wanted, float) else wanted()
        for _ in range(ROUNDS_OF_REPAIR):
            goal = max(wanted, floor) * system.interval.low
            if before <= goal:
                break
            reduced = conjugate_residuals(
                system.homogeneous(), residual, below(0.8 * goal), self._limit, trusted=FAR * floor
            )
            w = w - reduced.y
            residual = system.residual(w)[0]
            now = space.ride((residual, residual))
            if reduced.left <= goal and goal >= FAR * floor * system.interval.low:
                self._doubt(reduced)
                return w, partial(self._distance, now)
            [after] = lengths(now)
            low = system.interval.low
            self._doubt(reduced)
            stuck = after > 0.5 * before and system.interval.low == low
            before = after
            if stuck:
                break
        return w, lambda: before / system.interval.low

    def _distance(self, squares: Rider) -> float:
        """Distance to the feasible set, at most, from ||G w - g||^2."""
        return lengths(squares)[0] / self._system.interval.low

    def _doubt(self, reduced: Remainder) -> None:
        """Quotients of vectors in Range G outside the certified interval prove it wrong."""
        interval = self._system.interval
        if reduced.lowest < DOUBT * interval.low:
            self._system.interval = interval.widened(low=0.5 * reduced.lowest / interval.low)
            self.notes.append(
                f"a repair met the eigenvalue {reduced.lowest:.3g} or less, below the interval: "
                f"its lower end was put to {self._system.interval.low:.3g}"
            )
        if DOUBT * reduced.highest > interval.high:
            self._system.interval = self._system.interval.widened(
                high=1.1 * reduced.highest / interval.high
            )
            self.notes.append(
                f"a repair met the eigenvalue {reduced.highest:.3g} or more, above the interval: "
                f"its upper end was put to {self._system.interval.high:.3g}"
            )

    def _project(self, vector: Array, wanted: Later) -> tuple[Array, Array]:
        """(vector + K'lambda with at most ``wanted`` of Range K' left, lambda's coupled part)."""
        low = self._system.interval.low
        reduced = conjugate_residuals(
            self._system.homogeneous(),
            vector,
            lambda r, image: r <= wanted() or image <= low * wanted(),
            self._limit,
        )
        return reduced.remaining, reduced.price
