"""Nystrom approximation of a positive semidefinite S from the images of one block of vectors.

With test vectors W (m x r) and Y = S W, L L' = W'Y,

    B B' = Y (W'Y)^{-1} Y' <= S,   B = Y L^{-T},

agrees with S on Range W; so M = B B' + c I preconditions S + c I and keeps its lower end
(Frangella, Tropp, Udell 2023). What rounding does to "<=" is bounded, not hoped for: for any B, L,
with E = B L' - S W and L L' >= W'S W,

    (1 - t) B B' <= S + (e^2 / t) I,   e = ||E L^{-T}||,   t > 0

(with a = B'x and u = W L^{-T} a: 0 <= (x - u)'S(x - u) <= x'Sx - |a|^2 + 2 x'E L^{-T} a). A shift
of the core by nu I, nu above the rounding, makes F = L L' - W'S W >= 0. Hence
S + c I >= (1 - e/sqrt c) M.
No communication: who computes Y pays. Cost: 4 m r^2 operations once, 4 m r a solve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS


def random_signs(m: int, r: int, seed: int) -> Array:
    """Random signs / sqrt(m), the same for everybody with the same seed."""
    drawn = np.random.default_rng([seed, m, r]).bytes(-(-m * r // 8))
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=m * r).reshape(m, r)
    signs = bits.astype(np.float64)
    size = 1.0 / math.sqrt(m)
    signs *= 2 * size  # in place: there may be many
    signs -= size
    return signs


@dataclass(frozen=True)
class Nystrom:
    """B with B B' <= S, but for the ``e`` of the module text (infinite: nothing is known)."""

    B: Array
    e: float = 0.0

    @classmethod
    def of(cls, W: Array, Y: Array, noise: float = math.inf) -> Nystrom:
        """From test vectors and their images, known with ||Y - S W|| <= noise ||W||_F."""
        m, r = W.shape
        if not r:
            return cls(W)
        off = noise * _size(W)
        rounding = 2 * EPS * (m + r) * _size(W) * _size(Y) + _size(W) * off
        core = W.T @ Y
        # nu over the mean of the core's diagonal, at the least
        nu = 1e-9 * float(np.trace(core)) / r
        if math.isfinite(rounding):
            nu = max(nu, 4 * rounding)
        L = np.linalg.cholesky(0.5 * (core + core.T) + nu * np.eye(r))
        B = scipy.linalg.solve_triangular(L, Y.T, lower=True, check_finite=False).T
        off += 2 * EPS * r * _size(B) * _size(L)
        return cls(B, off / math.sqrt(0.5 * nu))

    def left(self, W: Array, Y: Array) -> Array:
        """(S - B B') W of any W with Y = S W."""
        return np.asarray(Y - self.B @ (self.B.T @ W))

    def plus(self, c: float) -> Shifted:
        """M = B B' + c I."""
        return Shifted(self.B, c, self.e)


class Shifted:
    """M = B B' + c I, by way of the r x r matrix B'B + c I.

    ``share``: S + c I >= share M is proved (0 where nothing is).
    """

    def __init__(self, B: Array, c: float, e: float) -> None:
        inner = B.T @ B
        self.B = B
        self.c = c
        self.share = max(1.0 - e / math.sqrt(c), 0.0)
        # Rounding may leave B'B with eigenvalues below zero, by so much. Any y will do.
        least = 4 * EPS * len(inner) * float(np.trace(inner))
        shifted = inner + max(c, least) * np.eye(len(inner))
        self._factor = scipy.linalg.cho_factor(shifted) if len(inner) else None

    def _inside(self, v: Array) -> Array:
        """y that minimises ||v - B y||^2 / c + ||y||^2."""
        if self._factor is None:
            return np.zeros(0)
        return np.asarray(scipy.linalg.cho_solve(self._factor, self.B.T @ v, check_finite=False))

    def solve(self, v: Array) -> Array:
        """M^{-1} v."""
        return np.asarray((v - self.B @ self._inside(v)) / self.c)

    def norm(self, v: Array, noise: float = 0.0) -> float:
        """A bound on (u'M^{-1}u)^{1/2} for every u within ``noise`` of v, rounding included.

        v'M^{-1}v is the least value of ||v - B y||^2 / c + ||y||^2 over y: any y will do.
        """
        size = _size(v)
        plain = (size * (1 + EPS * len(v)) + noise) / math.sqrt(self.c)
        y = self._inside(v)
        inside = _size(y)
        rest = _size(v - self.B @ y) + EPS * (len(y) + 2) * (size + _size(self.B) * inside)
        found = math.hypot(rest / math.sqrt(self.c), inside) * (1 + EPS * len(v))
        return min(plain, found + noise / math.sqrt(self.c))


def _size(v: Any) -> float:
    """||v||, of a matrix that of Frobenius."""
    return float(np.linalg.norm(v))
