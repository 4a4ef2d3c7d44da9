"""Interior points that everybody takes alone: losses all know, all columns together few.

As in :mod:`ccmac.methods.newton.compressed` one message of turned columns E tells everybody

    F(c) = |c|^2/2 + h(z),    z = (E'c - a)/beta,    h(z) = min over b, sigma >= least of
    sum_j max over l_j <= s_j <= u_j of s_j r_j - sigma B_j s_j^2/2,    plus sigma W/2

with r = z + b - k (b = 0 without an intercept). B = 0 and W = 0 are kinks: hinges, absolute values,
quantiles. B = 1/w and W = sum w are Huber's loss with its scale sigma, also where the scale is so
small that Newton's steps lose their digits. The dual has the slopes s, of sum zero where b is free,
c = -E s/beta, and left = (W - sum_j B_j s_j^2)/2 >= 0. Predictor and corrector steps follow

    r - sigma B s = up - down,   up (u - s) = down (s - l) = left (sigma - least) = mu.

For any x, b, sigma and slopes s of sum zero with left >= 0, v the slopes that
attain h there and rho the gradient of F with s in place of v,

    F(x) - F* <= sum_j (v - s)_j (r - sigma B (v + s)/2)_j + (sigma - least) left + |rho|^2/(2 mu).

Cost: 1 argmin. Setup as in :mod:`ccmac.methods.newton.compressed`; a gap 2 averagings, of m + 3
floats and of 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Proved
from ccmac.certificates.gap import Gap, Goal
from ccmac.certificates.stopping import Check, Judged, check_of
from ccmac.certificates.structure import ExplicitBound, ExplicitJudge
from ccmac.inputs import Array
from ccmac.linalg.extended import norm
from ccmac.linalg.symmetric import weighted_gram
from ccmac.linalg.tolerances import EPS
from ccmac.methods.newton.compressed import RangeNewton, RangeState
from ccmac.objectives.concomitant import ConcomitantHuber
from ccmac.objectives.intercept import Intercept
from ccmac.objectives.loss import Hinge, Pinball

STEPS = 100
CLOSE = 1e-13  # of F: a gap that will do
WORSE = 100.0  # times the least gap: steps have lost their digits
CLOSER = 8  # steps at the end, at most
AT_LEAST = 1e-3  # so close to its least value the scale ends there
SHORT = 0.995  # of the way to the boundary
ROUNDING = 16.0


@dataclass(frozen=True)
class Terms:
    """l, u, k, B, W and least of the module text; ``free``: b is fitted."""

    low: Array
    high: Array
    at: Array
    bend: Array
    weight: float
    least: float
    free: bool

    @classmethod
    def of(cls, h: Any, n: int) -> Terms:
        """Of n times a Hinge or Pinball, an Intercept of one, or a ConcomitantHuber."""
        free = isinstance(h, Intercept)
        loss = h.loss if isinstance(h, Intercept) else h
        assert isinstance(loss, Hinge | Pinball | ConcomitantHuber)
        y = loss.y
        assert y is not None
        w = n * np.broadcast_to(loss.weight, y.shape)
        none = np.zeros_like(w)
        if isinstance(loss, ConcomitantHuber):
            reach = loss.epsilon * w
            bend = np.divide(1.0, w, out=none, where=w > 0)
            return cls(-reach, reach, y, bend, float(w.sum()), loss.least, loss.intercept)
        share = loss.quantile if isinstance(loss, Pinball) else (y > 0) * 1.0
        return cls(-share * w, (1.0 - share) * w, y, none, 0.0, 0.0, free)

    def slopes(self, r: Array, sigma: float) -> Array:
        """v, which attain the maximum."""
        soft = sigma * self.bend
        ends = np.where(r > 0, self.high, self.low)
        return np.clip(np.divide(r, soft, out=ends, where=soft > 0), self.low, self.high)

    def value(self, r: Array, sigma: float) -> float:
        """h with this b and sigma."""
        v = self.slopes(r, sigma)
        return float(v @ (r - 0.5 * sigma * self.bend * v)) + 0.5 * sigma * self.weight

    def left(self, s: Array) -> float:
        """Of W/2."""
        return 0.5 * (self.weight - float(self.bend @ s**2))

    def lacking(self, r: Array, sigma: float, s: Array) -> float:
        """h and its conjugate, less s'u: how far s is from being a subgradient."""
        v = self.slopes(r, sigma)
        terms = (v - s) * (r - 0.5 * sigma * self.bend * (v + s))
        return float(terms.sum()) + (sigma - self.least) * max(self.left(s), 0.0)

    def allowed(self, s: Array) -> Array:
        """Slopes of a finite conjugate: what is too much shrinks towards zero."""
        s = np.clip(s, self.low, self.high)
        if self.free:
            up, down = float(s[s > 0].sum()), float(-s[s < 0].sum())
            least = min(up, down)
            s = np.where(s > 0, s * (least / (up or 1.0)), s * (least / (down or 1.0)))
        spent = float(self.bend @ s**2)
        return s * np.sqrt(self.weight / spent) if spent > self.weight else s


@dataclass(frozen=True)
class Interior:
    """(u - s, s - l, sigma - least), their multipliers (up, down, left), and b; or a step.

    With kinks sigma has no entry.
    """

    slack: Array
    multiplier: Array
    b: float

    def moved(self, step: Interior, t: float) -> Interior:
        """A step of length t further."""
        multiplier = self.multiplier + t * step.multiplier
        return Interior(self.slack + t * step.slack, multiplier, self.b + t * step.b)

    def room(self, step: Interior) -> float:
        """The largest length that keeps all positive."""
        falls = np.append(-step.slack / self.slack, -step.multiplier / self.multiplier)
        return 1.0 / worst if (worst := float(falls.max())) > 0 else np.inf

    @property
    def gap(self) -> float:
        """The sum of all products."""
        return float(self.slack @ self.multiplier)


@dataclass(frozen=True)
class Path:
    """Steps towards the minimum of |c|^2/2 + h(E'c - a): rows E over beta, kinks at + a."""

    E: Array
    h: Terms

    def minimum(self) -> tuple[Array, Array, float, float]:
        """(c, slopes, b, sigma), as near as steps get."""
        h = self.h
        half = 0.5 * (h.high - h.low)
        s = h.low + half
        r = self._scores(s, 0.0)
        unit = float(np.mean(np.abs(r))) or 1.0
        scale = [unit] if h.weight else []
        left = [h.left(s)] if h.weight else []
        signs = np.maximum(r, 0.0) + unit, np.maximum(-r, 0.0) + unit
        point = Interior(np.concatenate([half, half, scale]), np.concatenate([*signs, left]), 0.0)
        best = point
        least = np.inf
        for _ in range(STEPS):
            s, sigma = self._read(point)
            r = self._scores(s, point.b)
            c = self.E @ s
            lacking = h.lacking(r, sigma, s)
            if lacking < least:
                least = lacking
                best = point
            done = lacking <= CLOSE * (0.5 * float(c @ c) + h.value(r, sigma))
            if done or not lacking <= WORSE * least:
                break
            try:
                point = self._stepped(point, s, r)
            except np.linalg.LinAlgError:  # rounding
                break
        s, sigma = self._read(best)
        c, b = -self.E @ s, best.b
        if h.weight:
            sigma = h.least if sigma <= h.least * (1.0 + AT_LEAST) else sigma
            c, b = self._closer(c, b, s, sigma)
        return c, h.allowed(s), b, sigma

    def _closer(self, c: Array, b: float, s: Array, sigma: float) -> tuple[Array, float]:
        """(c, b) by Newton's steps on h at this sigma, while they come closer to the slopes s.

        Where many rows fit exactly, the sum -E s has lost the digits that tell s from r.
        """
        h = self.h
        E = np.vstack([self.E, np.ones((int(h.free), len(s)))])
        at = np.append(c, np.full(int(h.free), b))
        best = at
        least = np.inf
        for _ in range(CLOSER):
            r = at @ E - h.at
            off = h.lacking(r, sigma, s) + 0.5 * float(np.sum((at[: len(c)] + self.E @ s) ** 2))
            if not off < least:
                break
            least = off
            best = at
            v = h.slopes(r, sigma)
            soft = (h.low < v) & (v < h.high)
            gram = weighted_gram(E[:, soft], 1.0 / (sigma * h.bend[soft]))
            gram[np.diag_indices(len(c))] += 1.0
            slope = E @ v
            slope[: len(c)] += at[: len(c)]
            at = at - np.linalg.lstsq(gram, slope)[0]
        return best[: len(c)], float(best[len(c) :].sum())

    def _read(self, point: Interior) -> tuple[Array, float]:
        """s, from the bound that is nearer, and sigma."""
        above, below, over = self._parts(point.slack)
        s = np.where(below < above, self.h.low + below, self.h.high - above)
        return s, self.h.least + float(over.sum())

    def _parts(self, v: Array) -> list[Array]:
        return np.split(v, [len(self.h.low), 2 * len(self.h.low)])

    def _scores(self, s: Array, b: float) -> Array:
        """E'c + b past their kinks, c = -E s."""
        return np.asarray(b - (self.E @ s) @ self.E - self.h.at)

    def _stepped(self, point: Interior, s: Array, r: Array) -> Interior:
        """One predictor and corrector step, after Mehrotra: (I + E D^{-1} E') is factorized.

        What is left of b and sigma, whose columns border it, is a system of two unknowns.
        """
        E, h = self.E, self.h
        up, down, left = self._parts(point.multiplier)
        sigma = self._read(point)[1]
        lacking = r - up + down - sigma * h.bend * s
        short = h.left(s) - left
        ratio = point.multiplier / point.slack
        on_up, on_down, on_left = self._parts(ratio)
        inverse = 1.0 / (on_up + on_down + sigma * h.bend)
        gram = weighted_gram(E, inverse)
        gram[np.diag_indices_from(gram)] += 1.0
        factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
        border = np.vstack([np.ones((int(h.free), len(s))), *[-h.bend * s for _ in left]])
        columns = E @ (border * inverse).T
        follows = scipy.linalg.cho_solve(factor, columns)
        small = (border * inverse) @ border.T - columns.T @ follows
        small[int(h.free) :, int(h.free) :] += np.diag(on_left)

        def direction(products: Array) -> Interior:
            asked = products / point.slack
            on_up, on_down, on_left = self._parts(asked)
            right = lacking - on_up + on_down
            dc = -scipy.linalg.cho_solve(factor, E @ (inverse * right))
            ends = np.append([-s.sum()] * h.free, on_left - short)
            ends -= border @ (inverse * right) + columns.T @ dc
            y = np.linalg.solve(small, ends)
            dc -= follows @ y
            ds = inverse * (dc @ E + y @ border + right)
            b, over = np.split(y, [int(h.free)])
            slack = np.concatenate([-ds, ds, over])
            return Interior(slack, asked - ratio * slack, float(b.sum()))

        now = point.slack * point.multiplier
        ahead = direction(-now)
        end = point.moved(ahead, min(1.0, point.room(ahead)))
        aim = (end.gap / point.gap) ** 3 * point.gap / len(now)
        step = direction(aim - now - ahead.slack * ahead.multiplier)
        return point.moved(step, min(1.0, SHORT * point.room(step)))


@dataclass(frozen=True)
class AloneState(RangeState):
    """Of one step: c is followed by the slopes s, b and sigma."""

    gap: float = 0.0


class Alone(RangeNewton):
    """One step to the minimum of the module text."""

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> AloneState:
        """The user's point, which is not needed."""
        return AloneState(self.space.joined(x, z), np.zeros((1, sum(self.E.shape) + 2)))

    def step(self, state: RangeState) -> AloneState:
        """The minimum; rows that do not count stay out of it."""
        self.work.ledger.charge(argmins=1)
        beta = self.explicit.beta
        h = Terms.of(self.explicit.parts[0], self.work.problem.n)
        rows = h.high > h.low
        at = (h.at + self.turned.a / beta)[rows]
        counted = replace(h, low=h.low[rows], high=h.high[rows], at=at, bend=h.bend[rows])
        within = self.E if rows.all() else self.E[:, rows]
        c, slopes, b, sigma = Path(within / beta, counted).minimum()
        s = np.zeros(len(rows))
        s[rows] = slopes
        found = self.runtime.common(np.concatenate([c, s, [b, sigma]]))
        c = found[: len(c)]
        u = self.turned.placed(c, (c @ self.E - self.turned.a) / beta)
        return AloneState(u, found[None], over=True)


class AloneJudge(ExplicitJudge):
    """gap <= eps by the bound of the module text; of smooth losses the distance that follows."""

    def __init__(self, iteration: RangeNewton, goal: Goal, start: tuple[Array, Array]) -> None:
        bound = ExplicitBound(iteration.work, iteration.explicit)
        super().__init__(bound, goal.tol, iteration.refined)
        self.h = Terms.of(bound.explicit.parts[0], bound.problem.n)
        self.goal = goal
        self.record: dict[str, Any] = {}
        self.x0, self.z0 = start

    def check(self, iteration: Judged, state: Any) -> Check:
        """The gap at the state's x and z(x), with its slopes or with those of h at its z."""
        runtime = self.bound.runtime
        x, copies = iteration.point(state)
        if isinstance(state, AloneState):
            _, s, (b, sigma) = np.split(state.c[0], [-2 - len(self.h.at), -2])
        else:
            h: Any = self.bound.explicit.parts[0]
            b, sigma = h.fitted(copies[0])
            s = runtime.common(self.h.allowed(self.bound.explicit.slope(copies[0])))
        found, proved = self._gap(x, s, float(b), float(sigma))
        if self.h.weight:
            return check_of(proved, self.goal.tol).agreed(runtime)
        return found.check(self.goal, proved, self.record).agreed(runtime)

    final = check

    def _gap(self, x: Array, s: Array, b: float, sigma: float) -> tuple[Gap, Proved]:
        at = self.bound
        moved = x - self.x0
        far = [[norm(at.space.x_of(moved, k)) ** 2] for k in range(at.space.count)]
        z, off, size, [travelled] = at.followed(x, np.array(far))
        multiplier = -s / at.explicit.beta
        gradient, squares = at.gradients(x, multiplier)
        parts = enumerate(at.explicit.x_parts)
        values = [part.value_at(at.space.x_of(x, k)) for k, part in parts]
        square, value = at.runtime.total(np.column_stack([squares, values])).tolist()
        r = z + b - self.h.at
        shared = self.h.value(r, sigma)
        steep = norm(np.maximum(self.h.high, -self.h.low))
        base = self.h.lacking(r, sigma, s) + square / (2 * at.mu) + 2 * steep * off
        base += ROUNDING * EPS * (shared + abs(value) + float(np.abs(s) @ np.abs(r)))
        violation = off * abs(at.explicit.beta)
        found = Gap(
            value=value + shared,
            base=base,
            slope=abs(float(s.sum())) if self.h.free else 0.0,
            violation=violation,
            travelled=math.hypot(math.sqrt(travelled), norm(z - self.z0)),
        )
        error = math.sqrt(2 * base / at.mu)
        left = math.sqrt(square)
        each = np.tile(s / at.problem.n, (at.space.count, 1))
        return found, Proved(x, z, error, left, violation, size, gradient, each, multiplier)
