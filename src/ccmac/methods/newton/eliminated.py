"""cross-newton where the coupled rows give z: Newton's method on a growing span of multipliers.

With S = sum_i A_i T_i A_i' (T_i the inverse of g_i'' under C_i x = c_i) and x_i(p) the minimiser of
g_i + <A_i'p, .>, the points x(p) = x(0) - T A'p hold the solution (p is then its multiplier), and

    F(x(p)) = F_0 + p'Sp/2 + h((S p - a) / beta),    a = sum_i A_i x_i(0) - b_i.

For p = P'c with rows P S-orthonormal (P S P' = I) and E = P S this is |c|^2/2 + h((E'c - a)/beta):
Newton's method in c needs no message.

s = -grad h(z)/beta is the multiplier that z asks for, p
the multiplier that x answers. One averaging a step carries S (s - s_old), which joins the span
(s_old is there, and the difference keeps its digits); a block of random vectors W, S W opens it, in
one averaging too. Where everybody knows h, F is then minimised over the whole span by everybody
alike. Else the step also carries slope and curvature of h at the end of the last Newton step in the
span, and values at shorter ones: a step that is too long is cut without a further message. S never
changes, so that no product is ever made twice: at most rank S of them, and far fewer than conjugate
gradients started anew at every Newton step.

    |x - x*|_{g''} <= gap = ((s - p)'S(s - p))^{1/2}

comes with every step for nothing: |c - E s|^2 inside of the span plus the square of what s adds.
Cost: common h 3 argmins, 3 A, one averaging of m floats; else 2 argmins, 3 gradients, 3 A,
m + 2 q + 8 floats. Setup: one averaging of m floats and of the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Proved
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.nystrom import random_signs
from ccmac.methods.base import Iteration, State, known, rows, vector
from ccmac.methods.local import ARMIJO, Factorized, OwnEquations
from ccmac.workspace import Workspace
from ccmac.workspace.dual import Explicit
from ccmac.workspace.equations import right_hand_sides

ALIKE = 1e-13


@dataclass(frozen=True)
class Span:
    """P and E (rows, capacity many, ``k`` of them used)."""

    P: Array
    E: Array
    k: int

    @property
    def images(self) -> Array:
        """The rows of E in use."""
        return self.E[: self.k]

    def multiplier(self, c: Array) -> Array:
        """p = P'c."""
        return np.asarray(c[: self.k] @ self.P[: self.k])

    def image(self, c: Array) -> Array:
        """S p = E'c."""
        return np.asarray(c[: self.k] @ self.E[: self.k])

    def with_block(self, W: Array, Y: Array) -> Span:
        """An empty span filled by vectors W with images Y = S W (rows)."""
        core = W @ Y.T
        values, turn = np.linalg.eigh(0.5 * (core + core.T))
        # eigenvalues of a block below this share of the largest are left out
        keep = np.flatnonzero(values > 1e-8 * values[-1])[::-1][: len(self.P)]
        combine = (turn[:, keep] / np.sqrt(values[keep])).T
        self.P[: len(keep)], self.E[: len(keep)] = combine @ W, combine @ Y
        return Span(self.P, self.E, len(keep))

    def outside(self, v: Array) -> Array:
        """v without its part in the span, as far as E knows it: what is worth a product."""
        return np.asarray(v - (self.E[: self.k] @ v) @ self.P[: self.k])

    def extended(self, v: Array, image: Array) -> tuple[Span, float]:
        """(span with v, an :meth:`outside` whose S v = ``image``; its length in the norm of S).

        Made orthogonal before the product, so that no error of older images enters the new one.
        What is rounding stays outside, and what has no room.
        """
        inside = self.P[: self.k] @ image
        v = v - inside @ self.P[: self.k]
        image = image - inside @ self.E[: self.k]
        square = float(v @ image)
        length = math.sqrt(max(square, 0.0))
        # v'S v over |v| |S v| below which it is rounding
        blurred = 1e-12 * float(np.linalg.norm(v)) * float(np.linalg.norm(image))
        if not square > blurred or self.k == len(self.P):
            return self, length
        self.P[self.k], self.E[self.k] = v / length, image / length
        return Span(self.P, self.E, self.k + 1), length


@dataclass(frozen=True)
class Reduced:
    """F(c) = |c|^2/2 + h(z), z = (E'c - a)/beta, for rows E that everybody knows."""

    explicit: Explicit
    a: Array

    def shared(self, image: Array) -> Array:
        """z from E'c."""
        return np.asarray((image - self.a) / self.explicit.beta)

    def gradient(self, E: Array, c: Array, slope: Array) -> Array:
        """In c, for the slope of h at z(c)."""
        return np.asarray(c + E @ slope / self.explicit.beta)

    def descent(self, gradient: Array, gram: Array) -> Array:
        """-F''^{-1} gradient from E h'' E'."""
        if not len(gram):
            return np.zeros(0)
        H = gram / self.explicit.beta**2
        H[np.diag_indices_from(H)] += 1.0
        factor = scipy.linalg.cho_factor(H, overwrite_a=True, check_finite=False)
        return np.asarray(-scipy.linalg.cho_solve(factor, gradient, check_finite=False))

    def stepped(self, E: Array, c: Array) -> tuple[Array, Array, float, float]:
        """(c, z, F there, the fall that its slope had promised) after one Newton step.

        Of full length where F falls over it, else to where the slope along it has halved.
        """
        h = self.explicit
        z = self.shared(c @ E)
        value = h.value(z) + 0.5 * float(c @ c)
        gradient = self.gradient(E, c, h.slope(z))
        step = self.descent(gradient, h.gram(z, E))
        fall = -float(gradient @ step)
        move = step @ E / h.beta
        t = 1.0
        low = (0.0, -fall)
        high = (1.0, 0.0)
        for _ in range(60):
            ahead = c + t * step
            there = z + t * move
            rise = h.value(there) + 0.5 * float(ahead @ ahead) - value
            along = float(ahead @ step + h.slope(there) @ move)
            whole = t == 1.0 and (along <= 0.0 or rise <= -ARMIJO * fall)
            if whole or (abs(along) <= 0.5 * fall and rise <= ALIKE * abs(value)):
                break
            # The slope along the step increases: its root lies between low and high.
            low, high = ((t, along), high) if along < 0 else (low, (t, along))
            share = -low[1] / max(high[1] - low[1], 1e-300)
            t = low[0] + min(max(share, 1e-3), 0.999) * (high[0] - low[0])
        return ahead, there, value + rise, fall

    def minimiser(self, E: Array, c: Array) -> Array:
        """argmin of F, starting at c, where everybody knows h."""
        goal = 0.0
        for _ in range(30):
            c, _, value, fall = self.stepped(E, c)
            if fall <= max(goal, 1e-26 * float(c @ c), ALIKE * abs(value)):
                break
            # of the first decrement: the span is minimised well enough for its next vector
            goal = goal or 1e-3 * fall
        return c


FLOATS = 2**23  # of P and E together
LEAST = 64  # vectors, however long they are
LENGTHS = np.array([0.5**j for j in range(8)])


@dataclass(frozen=True)
class EliminatedState(State):
    """u = (x, copies of z); P, E, c of the span and the step planned in it; slope and curvature of
    h at z, the multiplier s that was received last and the one before, which the span holds; F
    there.
    """

    u: Array = vector()
    P: Array = rows()
    E: Array = rows()
    c: Array = known()
    step: Array = known()
    slope: Array = known()
    bend: Array = known()
    s: Array = known()
    before: Array = known()
    value: float = math.inf
    k: int = 0
    gap: float = math.inf
    least: float = math.inf
    waited: int = 0
    over: bool = False

    @property
    def span(self) -> Span:
        """The multipliers tried so far."""
        return Span(self.P[0], self.E[0], self.k)


class EliminatedNewton(Iteration[EliminatedState]):
    """The iteration of the module text; ``size`` random vectors open the span."""

    def __init__(self, work: Workspace, explicit: Explicit, size: int, seed: int) -> None:
        self.work = work
        self.explicit = explicit
        self.problem = work.problem
        self.runtime = work.runtime
        self.space = work.space
        self.A = work.coupling.A
        self.m = work.problem.m
        self.capacity = min(explicit.rank, max(FLOATS // (2 * self.m), LEAST))
        own = OwnEquations(work)
        self._local = []
        for k, part in enumerate(explicit.x_parts):
            V_C, _, point = own.of(k)
            d = self.space.d[k]
            self._local.append(Factorized(part, np.zeros(d), V_C, point[:d]))
        self._open(size, seed)

    def _open(self, size: int, seed: int) -> None:
        """a, and the images of the random block: one averaging."""
        self._block = np.ascontiguousarray(random_signs(self.m, size, seed).T)
        right = right_hand_sides(self.problem).b
        parts = [self._images(self._minimisers(np.zeros(self.m))) - right]
        parts += [self._images(self._inverse(w)) for w in self._block]
        means = self.runtime.combine(parts)
        self.reduced = Reduced(self.explicit, means[0][0] * self.problem.n)
        self._block_images = np.array([mean[0] for mean in means[1:]]) * self.problem.n

    # -- the agents' own work ----------------------------------------------------------------------
    def _minimisers(self, multiplier: Array) -> Array:
        """The minimisers x(lambda), flat. Cost: 1 argmin, 1 A."""
        return self._each(self.A.adjoint_common(multiplier), lambda g, v: g.minimise(v, v)[0])

    def _inverse(self, multiplier: Array) -> Array:
        """T A'lambda, flat. Cost: 1 argmin, 1 A."""
        return self._each(self.A.adjoint_common(multiplier), lambda g, v: g.inverse(v))

    def _each(self, v: Array, change: Callable[[Factorized, Array], Array]) -> Array:
        self.work.ledger.charge(argmins=1)
        out = np.empty_like(v)
        for k, g in enumerate(self._local):
            self.space.x_of(out, k)[...] = change(g, self.space.x_of(v, k))
        return out

    def _images(self, x: Array) -> Array:
        """A_i x_i, one row an agent. Cost: 1 A."""
        return self.A.forward(x).reshape(-1, self.m)

    # -- the iteration -----------------------------------------------------------------------------
    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> EliminatedState:
        """The user's point; the span begins with the block."""
        u = self.space.joined(x, z)
        K = self.capacity
        q = self.problem.q
        P, E = np.zeros((2, 1, K, self.m))
        span = Span(P[0], E[0], 0)
        if len(self._block):
            span = span.with_block(self._block, self._block_images)
        s = np.zeros((1, self.m)) if multiplier is None else np.array(multiplier[: self.m])[None]
        c, step, slope, bend = (np.zeros((1, size)) for size in (K, K, q, q))
        state = EliminatedState(u, P, E, c, step, slope, bend, s, np.zeros_like(s), k=span.k)
        if not self.explicit.common:
            return state
        return self._settled(state, np.zeros(K), keep=multiplier is not None)

    def _settled(self, state: EliminatedState, c: Array, *, keep: bool = False) -> EliminatedState:
        """The minimiser over the span, and the multiplier that it asks for (``keep``: not yet)."""
        span = state.span
        c = c.copy()
        c[: span.k] = self.reduced.minimiser(span.images, c[: span.k])
        z = self.reduced.shared(span.image(c))
        if keep:
            return replace(state, c=c[None])
        s = -self.explicit.slope(z)[None] / self.explicit.beta
        return replace(state, c=c[None], s=s, value=self.explicit.value(z) + 0.5 * float(c @ c))

    def step(self, state: EliminatedState) -> EliminatedState:
        """One vector more, then the best point of the span as far as it is known."""
        h = self.explicit
        v = state.span.outside(state.s[0] - state.before[0])
        parts = [self._images(self._inverse(v))]
        if not h.common:
            parts += self._looks(state)
        image, *sums = (mean[0] * self.problem.n for mean in self.runtime.combine(parts))
        state = self._joined(state, v, image)
        if not h.common:
            state = self._planned(self._searched(state, sums))
        else:
            self.work.ledger.charge(argmins=1)
            state = self._settled(state, state.c[0])
        return self._placed(state)

    def _joined(self, state: EliminatedState, v: Array, image: Array) -> EliminatedState:
        """v in the span, and the gap at the point where s was received."""
        c = state.c[0]
        span = state.span
        inside = c[: span.k] - span.E[: span.k] @ state.s[0]
        wider, outside = span.extended(v, image)
        fresh = math.isfinite(state.value)  # s was received at this very point
        gap = math.hypot(float(np.linalg.norm(inside)), outside) if fresh else math.inf
        waited = 0 if gap < state.least else state.waited + 1
        # of |c|: the gap is rounding
        # steps without a smaller gap: nothing is left to gain
        over = gap <= 1e-14 * float(np.linalg.norm(c)) or waited >= 40
        return replace(
            state,
            k=wider.k,
            before=state.s,
            gap=gap,
            least=min(gap, state.least),
            waited=waited,
            over=bool(over),
        )

    def _planned(self, state: EliminatedState) -> EliminatedState:
        """The Newton step in the span; none where the slope is not known yet."""
        k = state.k
        rows = state.span.images
        step = np.zeros_like(state.c[0])
        if math.isfinite(state.value):
            gradient = self.reduced.gradient(rows, state.c[0, :k], state.slope[0])
            step[:k] = self.reduced.descent(gradient, (rows * state.bend[0]) @ rows.T)
        return replace(state, step=step[None])

    def _placed(self, state: EliminatedState) -> EliminatedState:
        """x at the multiplier, copies of z as it follows."""
        c = state.c[0]
        span = state.span
        u = self.space.zeros()
        self.space.x(u)[...] = self._minimisers(span.multiplier(c))
        self.space.z(u)[...] = self.reduced.shared(span.image(c))
        return replace(state, u=u)

    # -- where h has to be summed ------------------------------------------------------------------
    def _looks(self, state: EliminatedState) -> list[Array]:
        """Slope and curvature of the h_i at the end of the step, values along it."""
        self.work.ledger.charge(gradients=3)
        ends = (state.c[0], state.c[0] + state.step[0])
        start, end = (self.reduced.shared(state.span.image(c)) for c in ends)
        points = start + LENGTHS[:, None] * (end - start)
        h = self.explicit
        return [h.slopes(end), h.bends(end), h.values(points)]

    def _searched(self, state: EliminatedState, sums: list[Array]) -> EliminatedState:
        """Take the step, or the best of the shorter ones, whose slope is asked for next."""
        slope, bend, values = sums
        c = state.c[0]
        step = state.step[0]
        ends = c + LENGTHS[:, None] * step
        values = values + 0.5 * np.sum(ends**2, axis=1)
        s = -slope[None] / self.explicit.beta
        gradient = self.reduced.gradient(state.span.images, c[: state.k], state.slope[0])
        fall = float(gradient @ step[: state.k])
        alike = values[0] <= state.value + ALIKE * abs(values[0])
        near = alike and abs(fall) <= 1e-8 * abs(values[0])
        if values[0] <= state.value + ARMIJO * fall or near or not step.any():
            return replace(
                state, c=ends[:1], slope=slope[None], bend=bend[None], s=s, value=float(values[0])
            )
        best = int(np.argmin(values))
        # Unknown slope there: the next step is none, and looks.
        return replace(state, c=ends[best : best + 1], s=s, value=math.inf)

    # -- what others ask ---------------------------------------------------------------------------
    def refined(self, state: EliminatedState, found: Proved) -> Array:
        """x after a Newton step on x itself, from a point that was judged; S is E'E on the span.

        x(p) has the rounding of its multiplier, times A'/mu: more than x needs to have. What it
        leaves of the gradient, r, has digits of its own. With t = A T r = E'tau and D = h''/beta^2,

            dx = -T r + T A'P'(tau + gamma),   (I + E D E') gamma = -tau.

        Cost: 2 argmins, 2 A, one averaging of m floats, of m + q where h has to be summed.
        """
        h = self.explicit
        span = state.span
        E = span.images
        left = found.gradient_x + self.A.adjoint_common(found.multiplier)
        left -= self.work.local.project(left)
        own = self._each(left, lambda g, v: g.inverse(v))
        parts = [self._images(own)] + ([] if h.common else [h.bends(found.z)])
        image, *bend = (mean[0] * self.problem.n for mean in self.runtime.combine(parts))
        tau = span.P[: span.k] @ image
        gram = h.gram(found.z, E) if h.common else (E * bend[0]) @ E.T
        multiplier = self.runtime.common(span.multiplier(tau + self.reduced.descent(tau, gram)))
        return np.asarray(found.x - own + self._inverse(multiplier))

    def point(self, state: EliminatedState) -> tuple[Array, Array]:
        """The minimisers at the multiplier."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: EliminatedState) -> bool:
        """The gap is rounding, or has not shrunk for long."""
        return state.over

    @property
    def cost(self) -> Cost:
        """Of every step."""
        width = self.m
        common = self.explicit.common
        own = Cost(argmins=3) if common else Cost(argmins=2, gradients=3)
        width += 0 if common else 2 * self.problem.q + len(LENGTHS)
        return own + 3 * self.A.cost + self.runtime.average_cost(width)
