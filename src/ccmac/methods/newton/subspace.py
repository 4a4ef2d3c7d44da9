"""The problem on a span of multipliers: everything in it is known to everybody.

With S = sum_i A_i T_i A_i' (T_i the inverse of g_i'' under C_i x = c_i) and x_i(p) the minimiser of
g_i + <A_i'p, .>, the points x(p) = x(0) - T A'p hold the solution (p is then its multiplier), and

    F(x(p)) = F_0 + p'Sp/2 + h((S p - a) / beta),    a = sum_i A_i x_i(0) - b_i.

For p = P'c with rows P S-orthonormal (P S P' = I) and E = P S this is |c|^2/2 + h((E'c - a)/beta):
Newton's method in c needs no message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.methods.local.newton import ARMIJO
from ccmac.workspace.explicit import Explicit

FAINT = 1e-12  # v'S v over |v| |S v| below which it is rounding
SETTLED = 1e-26  # of |c|^2: a decrement that is rounding
THIN = 1e-8  # eigenvalues of a block below this share of the largest are left out
INNER = 1e-3  # of the first decrement: the span is minimised well enough for its next vector
STEPS = 30
ALIKE = 1e-13
TRIES = 60  # of one line search


@dataclass(frozen=True)
class Span:
    """P and E (rows, capacity many, ``k`` of them used)."""

    P: Array
    E: Array
    k: int

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
        keep = np.flatnonzero(values > THIN * values[-1])[::-1][: len(self.P)]
        combine = (turn[:, keep] / np.sqrt(values[keep])).T
        self.P[: len(keep)], self.E[: len(keep)] = combine @ W, combine @ Y
        return Span(self.P, self.E, len(keep))

    def outside(self, v: Array) -> Array:
        """v without its part in the span, as far as E knows it: what is worth a product."""
        return np.asarray(v - (self.E[: self.k] @ v) @ self.P[: self.k])

    def extended(self, v: Array, image: Array) -> tuple[Span, float]:
        """(span with v, an :meth:`outside` whose S v = ``image``; its length in the norm of S).

        Made orthogonal before the product, so that no error of older images enters the new one. A
        span that is full must be thinned first; what is rounding stays outside.
        """
        inside = self.P[: self.k] @ image
        v = v - inside @ self.P[: self.k]
        image = image - inside @ self.E[: self.k]
        square = float(v @ image)
        length = math.sqrt(max(square, 0.0))
        blurred = FAINT * float(np.linalg.norm(v)) * float(np.linalg.norm(image))
        if not square > blurred or self.k == len(self.P):
            return self, length
        self.P[self.k], self.E[self.k] = v / length, image / length
        return Span(self.P, self.E, self.k + 1), length

    def thinned(self, c: Array, multiplier: Array) -> tuple[Span, Array]:
        """(the newer half with P'c and ``multiplier``, both in the span; c in its coordinates)."""
        half = self.k // 2
        kept = np.stack([c[:half], self.E[:half] @ multiplier], axis=1)
        turn, _ = np.linalg.qr(kept)
        start = turn.shape[1]
        newer = self.k - half
        for rows in (self.P, self.E):
            rows[: start + newer] = np.concatenate([turn.T @ rows[:half], rows[half : self.k]])
        new = np.zeros_like(c)
        new[: start + newer] = np.concatenate([turn.T @ c[:half], c[half : self.k]])
        return Span(self.P, self.E, start + newer), new


@dataclass(frozen=True)
class OnSpan:
    """F on a span: h, a and beta."""

    explicit: Explicit
    a: Array

    def shared(self, image: Array) -> Array:
        """z from S p."""
        return np.asarray((image - self.a) / self.explicit.beta)

    def gradient(self, span: Span, c: Array, slope: Array) -> Array:
        """In c, for the slope of h at z(c)."""
        out = np.zeros_like(c)
        out[: span.k] = c[: span.k] + span.E[: span.k] @ slope / self.explicit.beta
        return out

    def newton(self, span: Span, gradient: Array, bend: Array) -> Array:
        """-F''^{-1} gradient, for a diagonal h'' at z(c)."""
        E = span.E[: span.k]
        return self.descent(gradient, (E * bend) @ E.T)

    def descent(self, gradient: Array, gram: Array) -> Array:
        """-F''^{-1} gradient from E h'' E'."""
        k = len(gram)
        out = np.zeros_like(gradient)
        if k:
            H = gram / self.explicit.beta**2
            H[np.diag_indices(k)] += 1.0
            out[:k] = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), gradient[:k])
        return out

    def minimiser(self, span: Span, c: Array) -> Array:
        """argmin over the span, starting at c, where everybody knows h."""
        h = self.explicit
        goal = -1.0
        z = self.shared(span.image(c))
        value = h.value(z) + 0.5 * float(c @ c)
        slope = h.slope(z)
        for _ in range(STEPS):
            gradient = self.gradient(span, c, slope)
            step = self.descent(gradient, h.gram(z, span.E[: span.k]))
            fall = -float(gradient @ step)
            goal = INNER * fall if goal < 0 else goal
            if fall <= max(goal, SETTLED * float(c @ c)):
                break
            move = span.image(step) / h.beta
            t = 1.0
            low = (0.0, -fall)
            high = (1.0, 0.0)
            for _ in range(TRIES):
                ahead = c + t * step
                there = z + t * move
                rise = h.value(there) + 0.5 * float(ahead @ ahead) - value
                slope = h.slope(there)
                along = float(self.gradient(span, ahead, slope) @ step)
                flat = abs(along) <= 0.5 * fall
                whole = t == 1.0 and (along <= 0.0 or rise <= -ARMIJO * fall)
                if whole or (flat and rise <= ALIKE * abs(value)):
                    break
                # The slope along the step increases: its root lies between low and high.
                low, high = ((t, along), high) if along < 0 else (low, (t, along))
                share = -low[1] / max(high[1] - low[1], 1e-300)
                t = low[0] + min(max(share, 1e-3), 0.999) * (high[0] - low[0])
            c = ahead
            z = there
            value = value + rise
            if fall <= ALIKE * abs(value):  # below what values tell: this step was the last
                break
        return c
