"""Interior points that everybody takes alone: losses all know, all columns together few.

As in :mod:`ccmac.methods.newton.compressed` one message of turned columns E tells everybody

    F(c) = |c|^2/2 + h(z),    z = (E'c - a)/beta,    h(z) = min over b, sigma >= least of
    sum_j max over l_j <= s_j <= u_j of s_j r_j - sigma B_j s_j^2/2,    plus sigma W/2

with r = z + b - k (b = 0 without an intercept). B = 0 and W = 0 are kinks: hinges, absolute values,
quantiles. B = 1/w and W = sum w are Huber's loss with its scale sigma, also where the scale is so
small that Newton's steps lose their digits. The dual has the slopes s, of sum zero where b is free,
c = -E s/beta, and left = (W - sum_j B_j s_j^2)/2 >= 0. Predictor and corrector steps follow

    r - sigma B s = up - down,   up (u - s) = down (s - l) = left (sigma - least) = mu.

With kinks the active rows, whose s lies between its bounds, are then held at their kinks, and c is
solved for once more. For any x, b, sigma and slopes s of sum zero with left >= 0, v the slopes that
attain h there and rho the gradient of F with s in place of v,

    F(x) - F* <= sum_j (v - s)_j (r - sigma B (v + s)/2)_j + (sigma - least) left + |rho|^2/(2 mu).

Cost: 1 argmin. Setup as in :mod:`ccmac.methods.newton.compressed`; a gap 2 averagings, of m + 2
floats and of 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Proved
from ccmac.certificates.gap import Gap, Goal
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged, check_of, over
from ccmac.certificates.structure import ExplicitBound
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import norm
from ccmac.linalg.symmetric import weighted_gram
from ccmac.linalg.tolerances import EPS
from ccmac.methods.base import Iteration, State, known, vector
from ccmac.methods.newton.compressed import Turned
from ccmac.objectives.concomitant import ConcomitantHuber
from ccmac.objectives.intercept import Intercept
from ccmac.objectives.loss import Hinge, Pinball
from ccmac.workspace import Workspace
from ccmac.workspace.dual import Explicit

STEPS = 100
CLOSE = 1e-11  # of F: a gap that will do
WORSE = 100.0  # times the least gap: steps have lost their digits
SHORT = 0.995  # of the way to the boundary
INDEPENDENT = 1e-12  # singular values over the largest
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
        low = np.where(y > 0, -w, 0.0)
        high = np.where(y > 0, 0.0, w)
        if isinstance(loss, Pinball):
            low = -loss.quantile * w
            high = (1.0 - loss.quantile) * w
        return cls(low, high, y, none, 0.0, 0.0, free)

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
    """u - s, s - l, up, down, sigma - least and left (no entries with kinks), b; or a step."""

    above: Array
    below: Array
    up: Array
    down: Array
    over: Array
    left: Array
    b: float

    def slopes(self, h: Terms) -> Array:
        """s, from the bound that is nearer."""
        return np.where(self.below < self.above, h.low + self.below, h.high - self.above)

    def moved(self, step: Interior, t: float) -> Interior:
        """A step of length t further."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return Interior(*(own + t * change for own, change in pairs))

    def room(self, step: Interior) -> float:
        """The largest length that keeps all positive."""
        worst = 0.0
        for name in ("above", "below", "up", "down", "over", "left"):
            falls = -getattr(step, name) / getattr(self, name)
            worst = max(worst, float(np.max(falls, initial=0.0)))
        return 1.0 / worst if worst > 0 else np.inf

    @property
    def gap(self) -> float:
        """The sum of all products."""
        return float(self.up @ self.above + self.down @ self.below + self.over @ self.left)


@dataclass(frozen=True)
class Path:
    """Steps towards the minimum of |c|^2/2 + h(E'c - a): rows E over beta, kinks at + a."""

    E: Array
    h: Terms

    def minimum(self) -> tuple[Array, Array, float, float]:
        """(c, slopes, b, sigma), as near as steps get; then on the active rows."""
        h = self.h
        half = 0.5 * (h.high - h.low)
        r = self._scores(h.low + half, 0.0)
        unit = float(np.mean(np.abs(r))) or 1.0
        scale = np.array([unit] if h.weight else [])
        point = Interior(
            half,
            half,
            np.maximum(r, 0.0) + unit,
            np.maximum(-r, 0.0) + unit,
            scale,
            np.full_like(scale, h.left(h.low + half)),
            0.0,
        )
        least = np.inf
        best = point
        for _ in range(STEPS):
            s = point.slopes(h)
            r = self._scores(s, point.b)
            c = -self.E @ s
            sigma = h.least + float(point.over.sum())
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
        s = best.slopes(h)
        c = -self.E @ s
        b = best.b
        if not h.weight:
            between = np.minimum(best.above, best.below) / np.max(half)
            c, b = self._held(s, b, between > np.maximum(best.up, best.down) / unit)
        return c, h.allowed(s), b, h.least + float(best.over.sum())

    def _scores(self, s: Array, b: float) -> Array:
        """E'c + b past their kinks, c = -E s."""
        return np.asarray(b - (self.E @ s) @ self.E - self.h.at)

    def _stepped(self, point: Interior, s: Array, r: Array) -> Interior:
        """One predictor and corrector step, after Mehrotra: (I + E D^{-1} E') is factorized.

        What is left of b and sigma, whose columns border it, is a system of two unknowns.
        """
        E, h = self.E, self.h
        above, below, up, down = point.above, point.below, point.up, point.down
        over, left = point.over, point.left
        sigma = h.least + float(over.sum())
        lacking = r - up + down - sigma * h.bend * s
        short = h.left(s) - left
        inverse = 1.0 / (up / above + down / below + sigma * h.bend)
        gram = weighted_gram(E, inverse)
        gram[np.diag_indices_from(gram)] += 1.0
        factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
        border = np.vstack([np.ones((int(h.free), len(s))), *[-h.bend * s for _ in over]])
        columns = E @ (border * inverse).T
        follows = scipy.linalg.cho_solve(factor, columns)
        small = (border * inverse) @ border.T - columns.T @ follows
        small[int(h.free) :, int(h.free) :] += np.diag(left / over)

        def direction(on_up: Array, on_down: Array, on_left: Array) -> Interior:
            right = lacking - on_up / above + on_down / below
            dc = -scipy.linalg.cho_solve(factor, E @ (inverse * right))
            asked = np.append([-s.sum()] * h.free, on_left / over - short)
            asked -= border @ (inverse * right) + columns.T @ dc
            y = np.linalg.solve(small, asked)
            dc -= follows @ y
            ds = inverse * (dc @ E + y @ border + right)
            ends = np.split(y, [int(h.free)])
            dleft = (on_left - left * ends[1]) / over
            dup, ddown = (on_up + up * ds) / above, (on_down - down * ds) / below
            return Interior(-ds, ds, dup, ddown, ends[1], dleft, float(ends[0].sum()))

        ahead = direction(-up * above, -down * below, -over * left)
        end = point.moved(ahead, min(1.0, point.room(ahead)))
        aim = (end.gap / point.gap) ** 3 * point.gap / (2 * len(s) + len(over))
        step = direction(
            aim - up * above - ahead.up * ahead.above,
            aim - down * below - ahead.down * ahead.below,
            aim - over * left - ahead.over * ahead.left,
        )
        return point.moved(step, min(1.0, SHORT * point.room(step)))

    def _held(self, s: Array, b: float, active: Any) -> tuple[Array, float]:
        """(c, b) of the minimum with active rows at their kinks, others on their side."""
        h = self.h
        c = -self.E @ s
        free = float(h.free)
        slopes = np.where(active, 0.0, h.slopes(self._scores(s, b), 0.0))
        M = np.vstack([self.E[:, active], np.full(np.count_nonzero(active), free)])
        U, sigma, V = np.linalg.svd(M, full_matrices=M.shape[1] < len(M))
        seen = np.count_nonzero(sigma > INDEPENDENT * sigma.max(initial=0.0))
        y = U[:, :seen] @ ((V[:seen] @ h.at[active]) / sigma[:seen])
        Z = U[:, seen:]
        ones = np.append(np.ones(len(c)), 0.0)
        slope = np.append(self.E @ slopes, free * slopes.sum()) + ones * y
        y += Z @ np.linalg.lstsq((Z.T * ones) @ Z, -(Z.T @ slope), rcond=INDEPENDENT)[0]
        pairs = [(c, b), (y[:-1], free * float(y[-1]))]
        return min(pairs, key=self._value)

    def _value(self, pair: tuple[Array, float]) -> float:
        c, b = pair
        return 0.5 * float(c @ c) + self.h.value(c @ self.E + b - self.h.at, 0.0)


@dataclass(frozen=True)
class AloneState(State):
    """u = (x, copies of z), the slopes s, b and sigma."""

    u: Array = vector()
    s: Array = known()
    b: float = 0.0
    sigma: float = 0.0
    gap: float = 0.0
    over: bool = False


class Alone(Iteration[AloneState]):
    """One step to the minimum of the module text."""

    def __init__(self, work: Workspace, explicit: Explicit) -> None:
        self.work = work
        self.space = work.space
        self.explicit = explicit
        self.turned = Turned(work, explicit)
        self.h = Terms.of(explicit.parts[0], work.problem.n)

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> AloneState:
        """The user's point, which is not needed."""
        return AloneState(self.space.joined(x, z), np.zeros((1, len(self.h.at))))

    def step(self, state: AloneState) -> AloneState:
        """The minimum; rows that do not count stay out of it."""
        self.work.ledger.charge(argmins=1)
        beta = self.explicit.beta
        E = self.turned.E
        rows = self.h.high > self.h.low
        terms = replace(
            self.h,
            low=self.h.low[rows],
            high=self.h.high[rows],
            at=(self.h.at + self.turned.a / beta)[rows],
            bend=self.h.bend[rows],
        )
        within = E if rows.all() else E[:, rows]
        c, slopes, b, sigma = Path(within / beta, terms).minimum()
        s = np.zeros(len(rows))
        s[rows] = slopes
        found = self.work.runtime.common(np.concatenate([c, s, [b, sigma]]))
        c, s, ends = np.split(found, [len(c), len(c) + len(s)])
        z = (c @ E - self.turned.a) / beta
        return AloneState(
            self.turned.placed(c, z), s[None], b=float(ends[0]), sigma=float(ends[1]), over=True
        )

    def point(self, state: AloneState) -> tuple[Array, Array]:
        """x and the z that follows."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: AloneState) -> bool:
        """After one step."""
        return state.over

    @property
    def cost(self) -> Cost:
        """Of the step."""
        return Cost(argmins=1)


class AloneJudge(Judge, ExplicitBound):
    """gap <= eps by the bound of the module text; of smooth losses the distance that follows."""

    def __init__(
        self, work: Workspace, explicit: Explicit, goal: Goal, record: dict[str, Any], start: Any
    ) -> None:
        ExplicitBound.__init__(self, work, explicit)
        self.notes = []
        self.h = Terms.of(explicit.parts[0], work.problem.n)
        self.goal = goal
        self.record = record
        self.x0, self.z0 = start

    def estimate(self, iteration: Judged, state: Any) -> tuple[float, float] | None:
        """What the gradient can mean at most."""
        seen = float(np.hypot(1.0, self.norm / self.explicit.beta) * state.gap / np.sqrt(self.mu))
        z = iteration.point(state)[1][0]
        return seen, over(seen, self.goal.tol * max(1.0, norm(z)))

    def check(self, iteration: Judged, state: Any) -> Check:
        """The gap at the state's x and z(x), with its slopes or with those of h at its z."""
        x, copies = iteration.point(state)
        if not isinstance(state, AloneState):
            h: Any = self.explicit.parts[0]
            b, sigma = h.fitted(copies[0])
            s = self.runtime.common(self.h.allowed(self.explicit.slope(copies[0])))
            state = AloneState(state.u, s[None], b=b, sigma=sigma)
        found, proved = self._gap(x, state)
        if self.h.weight:
            return check_of(proved, self.goal.tol).agreed(self.runtime)
        self.record.update(found.record(self.goal))
        bound = found.bound(self.goal.required(found.travelled))
        return Check(bound, Evidence("gap", found.ratio(self.goal)), proved).agreed(self.runtime)

    def _gap(self, x: Array, state: AloneState) -> tuple[Gap, Proved]:
        n = self.problem.n
        beta = self.explicit.beta
        space = self.space
        images = self._images(x)
        own = [
            [norm(space.x_of(x, k)) ** 2, norm(space.x_of(x - self.x0, k)) ** 2, norm(images[k])]
            for k in range(space.count)
        ]
        misfit, sizes = (n * mean[0] for mean in self.runtime.combine([images, np.array(own)]))
        z = -misfit / beta
        off = 4 * EPS * n * (float(sizes[2]) / abs(beta) + norm(z))
        s = state.s[0]
        r = z + state.b - self.h.at
        multiplier = -s / beta
        gradient, squares = self._gradients(x, multiplier)
        values = [part.value_at(space.x_of(x, k)) for k, part in enumerate(self.explicit.x_parts)]
        square, value = self.runtime.total(np.column_stack([squares, values]))
        shared = self.h.value(r, state.sigma)
        steep = norm(np.maximum(self.h.high, -self.h.low))
        base = self.h.lacking(r, state.sigma, s) + float(square) / (2 * self.mu) + 2 * steep * off
        base += ROUNDING * EPS * (shared + abs(float(value)) + float(np.abs(s) @ np.abs(r)))
        found = Gap(
            value=float(value) + shared,
            base=base,
            slope=abs(float(s.sum())) if self.h.free else 0.0,
            violation=off * abs(beta),
            travelled=float(np.hypot(np.sqrt(sizes[1]), norm(z - self.z0))),
        )
        size = float(np.hypot(np.sqrt(sizes[0]), norm(z)))
        error = float(np.sqrt(2 * base / self.mu))
        each = np.tile(s / n, (space.count, 1))
        proved = Proved(
            x, z, error, float(np.sqrt(square)), found.violation, size, gradient, each, multiplier
        )
        return found, proved
