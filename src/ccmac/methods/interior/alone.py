"""Losses with kinks where all columns together are few: interior points that everybody takes alone.

As in :mod:`ccmac.methods.newton.compressed` one message of turned columns E tells everybody

    F(c) = |c|^2/2 + h(z),    z = (E'c - a)/beta,    h(z) = min_b sum_j max(l_j r_j, u_j r_j)

with r = z + b - k (b = 0 without an intercept): hinges, absolute values, quantiles. Its dual has a
slope l <= s <= u for each row, of sum zero where b is free, and c = -E s/beta. Predictor and
corrector steps follow r = up - down, up (u - s) = down (s - l) = mu. Then the active rows, whose s
lies between its bounds, are held at their kinks and c is solved for once more.
For any x, b and slopes s of sum zero, rho the gradient with s in place of a subgradient,

    F(x) - F* <= sum_j (u - s)_j max(r_j, 0) + (s - l)_j max(-r_j, 0) + |rho|^2 / (2 mu).

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
from ccmac.certificates.stopping import Check, Evidence, Judge, Judged
from ccmac.certificates.structure import ExplicitBound
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.extended import norm
from ccmac.linalg.symmetric import weighted_gram
from ccmac.linalg.tolerances import EPS
from ccmac.methods.base import Iteration, State, known, vector
from ccmac.methods.newton.compressed import Turned
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
class Kinks:
    """sum_j max(low_j (u_j - at_j), high_j (u_j - at_j)), u = z + b; ``free``: b is fitted."""

    low: Array
    high: Array
    at: Array
    free: bool

    @classmethod
    def of(cls, h: Any, n: int) -> Kinks:
        """Of n times a Hinge or Pinball, or of an Intercept of one."""
        free = isinstance(h, Intercept)
        loss = h.loss if isinstance(h, Intercept) else h
        assert isinstance(loss, Hinge | Pinball)
        y = loss.y
        assert y is not None
        weight = n * np.broadcast_to(loss.weight, y.shape)
        if isinstance(loss, Pinball):
            return cls(-loss.quantile * weight, (1.0 - loss.quantile) * weight, y, free)
        return cls(np.where(y > 0, -weight, 0.0), np.where(y > 0, 0.0, weight), y, free)

    def value(self, r: Array) -> float:
        """h where the scores are r past their kinks."""
        return float(np.maximum(self.low * r, self.high * r).sum())

    def lacking(self, r: Array, s: Array) -> float:
        """h + its conjugate - s'u: how far s is from being a subgradient."""
        above, below = np.maximum(r, 0.0), np.maximum(-r, 0.0)
        return float((self.high - s) @ above + (s - self.low) @ below)

    def balanced(self, s: Array) -> Array:
        """Slopes of sum zero, where b is free: those that outweigh shrink towards zero."""
        s = np.clip(s, self.low, self.high)
        if not self.free:
            return s
        up, down = float(s[s > 0].sum()), float(-s[s < 0].sum())
        least = min(up, down)
        return np.where(s > 0, s * (least / (up or 1.0)), s * (least / (down or 1.0)))


@dataclass(frozen=True)
class Interior:
    """u - s and s - l, the parts of r and b; also a step of them."""

    above: Array
    below: Array
    up: Array
    down: Array
    b: float

    def slopes(self, h: Kinks) -> Array:
        """s, from the bound that is nearer."""
        return np.where(self.below < self.above, h.low + self.below, h.high - self.above)

    def moved(self, step: Interior, t: float) -> Interior:
        """A step of length t further."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return Interior(*(own + t * change for own, change in pairs))

    def room(self, step: Interior) -> float:
        """The largest length that keeps all positive."""
        worst = 0.0
        for name in ("above", "below", "up", "down"):
            worst = max(worst, float(np.max(-getattr(step, name) / getattr(self, name))))
        return 1.0 / worst if worst > 0 else np.inf


@dataclass(frozen=True)
class Path:
    """Steps towards the minimum of |c|^2/2 + h(E'c - a): rows E over beta, kinks at + a."""

    E: Array
    h: Kinks

    def minimum(self) -> tuple[Array, Array, float]:
        """(c, slopes, b), as near as steps get; then on the active rows where F falls by that."""
        h = self.h
        half = 0.5 * (h.high - h.low)
        r = self._scores(h.low + half, 0.0)
        unit = float(np.mean(np.abs(r))) or 1.0
        point = Interior(half, half, np.maximum(r, 0.0) + unit, np.maximum(-r, 0.0) + unit, 0.0)
        least = np.inf
        best = point
        for _ in range(STEPS):
            s = point.slopes(h)
            r = self._scores(s, point.b)
            c = -self.E @ s
            lacking = h.lacking(r, s)
            if lacking < least:
                least = lacking
                best = point
            done = lacking <= CLOSE * (0.5 * float(c @ c) + h.value(r))
            if done or not lacking <= WORSE * least:
                break
            try:
                point = self._stepped(point, s, r)
            except np.linalg.LinAlgError:  # rounding
                break
        s = best.slopes(h)
        between = np.minimum(best.above, best.below) / np.max(half)
        active = between > np.maximum(best.up, best.down) / unit
        c, b = self._held(s, best.b, active)
        return c, h.balanced(s), b

    def _scores(self, s: Array, b: float) -> Array:
        """E'c + b past their kinks, c = -E s."""
        return np.asarray(b - (self.E @ s) @ self.E - self.h.at)

    def _stepped(self, point: Interior, s: Array, r: Array) -> Interior:
        """One predictor and corrector step, after Mehrotra: (I + E D^{-1} E') is factorized."""
        E = self.E
        above, below, up, down = point.above, point.below, point.up, point.down
        gap = float(up @ above + down @ below)
        inverse = 1.0 / (up / above + down / below)
        gram = weighted_gram(E, inverse)
        gram[np.diag_indices_from(gram)] += 1.0
        factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
        column = E @ inverse
        follows = scipy.linalg.cho_solve(factor, column)
        bend = float(inverse.sum() - column @ follows)

        def direction(on_up: Array, on_down: Array) -> Interior:
            right = r - up + down - on_up / above + on_down / below
            dc = -scipy.linalg.cho_solve(factor, E @ (inverse * right))
            db = 0.0
            if self.h.free:
                db = -(float(s.sum()) + float(inverse @ right) + float(column @ dc)) / bend
                dc -= follows * db
            ds = inverse * (dc @ E + db + right)
            return Interior(-ds, ds, (on_up + up * ds) / above, (on_down - down * ds) / below, db)

        ahead = direction(-up * above, -down * below)
        end = point.moved(ahead, min(1.0, point.room(ahead)))
        left = float(end.up @ end.above + end.down @ end.below)
        aim = (left / gap) ** 3 * gap / (2 * len(s))
        on_up = aim - up * above - ahead.up * ahead.above
        on_down = aim - down * below - ahead.down * ahead.below
        step = direction(on_up, on_down)
        return point.moved(step, min(1.0, SHORT * point.room(step)))

    def _held(self, s: Array, b: float, active: Any) -> tuple[Array, float]:
        """(c, b) of the minimum with active rows at their kinks, others on their side."""
        h = self.h
        c = -self.E @ s
        free = float(h.free)
        slopes = np.where(active, 0.0, np.where(self._scores(s, b) > 0, h.high, h.low))
        M = np.vstack([self.E[:, active], np.full(np.count_nonzero(active), free)])
        U, sigma, V = np.linalg.svd(M, full_matrices=M.shape[1] < len(M))
        seen = np.count_nonzero(sigma > INDEPENDENT * sigma.max(initial=0.0))
        y = U[:, :seen] @ ((V[:seen] @ h.at[active]) / sigma[:seen])
        Z = U[:, seen:]
        ones = np.append(np.ones(len(c)), 0.0)
        slope = np.append(self.E @ slopes, free * slopes.sum()) + ones * y
        y += Z @ np.linalg.lstsq((Z.T * ones) @ Z, -(Z.T @ slope), rcond=INDEPENDENT)[0]
        pairs = [(c, b), (y[:-1], free * float(y[-1]))]
        return min(
            pairs, key=lambda p: 0.5 * float(p[0] @ p[0]) + h.value(p[0] @ self.E + p[1] - h.at)
        )


@dataclass(frozen=True)
class AloneState(State):
    """u = (x, copies of z), the slopes s and the intercept b."""

    u: Array = vector()
    s: Array = known()
    b: float = 0.0
    over: bool = False


class Alone(Iteration[AloneState]):
    """One step to the minimum of the module text."""

    def __init__(self, work: Workspace, explicit: Explicit) -> None:
        self.work = work
        self.space = work.space
        self.explicit = explicit
        self.turned = Turned(work, explicit)
        self.h = Kinks.of(explicit.parts[0], work.problem.n)

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
        kinks = replace(
            self.h,
            low=self.h.low[rows],
            high=self.h.high[rows],
            at=(self.h.at + self.turned.a / beta)[rows],
        )
        within = E if rows.all() else E[:, rows]
        c, slopes, b = Path(within / beta, kinks).minimum()
        s = np.zeros(len(rows))
        s[rows] = slopes
        c, s, ends = np.split(
            self.work.runtime.common(np.concatenate([c, s, [b]])), [len(c), len(c) + len(s)]
        )
        z = (c @ E - self.turned.a) / beta
        return AloneState(self.turned.placed(c, z), s[None], float(ends[0]), True)

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
    """gap <= eps, by the bound of the module text."""

    def __init__(self, iteration: Alone, goal: Goal, record: dict[str, Any], start: Any) -> None:
        ExplicitBound.__init__(self, iteration.work, iteration.explicit)
        self.notes = []
        self.h = iteration.h
        self.goal = goal
        self.record = record
        self.x0, self.z0 = start

    def check(self, iteration: Judged, state: Any) -> Check:
        """The gap at the state's x, z(x), slopes and intercept."""
        x = iteration.point(state)[0]
        s = state.s[0]
        found, proved = self._gap(x, s, state.b)
        self.record.update(found.record(self.goal))
        bound = found.bound(self.goal.required(found.travelled))
        return Check(bound, Evidence("gap", found.ratio(self.goal)), proved).agreed(self.runtime)

    def _gap(self, x: Array, s: Array, b: float) -> tuple[Gap, Proved]:
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
        r = z + b - self.h.at
        multiplier = -s / beta
        gradient, squares = self._gradients(x, multiplier)
        values = [part.value_at(space.x_of(x, k)) for k, part in enumerate(self.explicit.x_parts)]
        square, value = self.runtime.total(np.column_stack([squares, values]))
        shared = self.h.value(r)
        steep = norm(np.maximum(self.h.high, -self.h.low))
        base = self.h.lacking(r, s) + float(square) / (2 * self.mu) + 2 * steep * off
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
