"""Nystrom approximation of a positive semidefinite S from the images of one block of vectors.

With test vectors W (m x r) and Y = S W, L L' = W'Y,

    B B' = Y (W'Y)^{-1} Y' <= S,   B = Y L^{-T},

agrees with S on Range W; so M = B B' + c I preconditions S + c I and keeps its lower end
(Frangella, Tropp, Udell 2023). What rounding does to "<=" is bounded, not hoped for: for any B, L,
with E = B L' - S W and L L' >= W'S W,

    (1 - t) B B' <= S + (e^2 / t) I,   e = ||E L^{-T}||,   t > 0

(with a = B'x and u = W L^{-T} a: 0 <= (x - u)'S(x - u) <= x'Sx - |a|^2 + 2 x'E L^{-T} a). A core
shifted by nu W'W, nu above the rounding, makes L L' >= W'S W. Hence S + c I >= (1 - e/sqrt c) M.
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

SHIFT = 1e-9  # nu over the mean of the core's diagonal, at the least
DEPENDENT = 1e-4  # test vectors whose Gram matrix has eigenvalues below this are thinned out


def random_signs(m: int, r: int, seed: int) -> Array:
    """Random signs / sqrt(m), the same for everybody with the same seed."""
    signs = np.random.default_rng([seed, m, r]).integers(0, 2, (m, r), dtype=np.int8)
    return np.asarray((2.0 * signs - 1.0) / math.sqrt(m), dtype=np.float64)


@dataclass(frozen=True)
class Nystrom:
    """B and e of the module text; e is infinite where nothing is known of the rounding."""

    B: Array
    e: float

    @classmethod
    def of(cls, W: Array, Y: Array, noise: float = math.inf) -> Nystrom:
        """From test vectors and images with ||Y - S W|| <= noise ||W||_F."""
        m, r = W.shape
        gram = W.T @ W
        values = np.linalg.eigvalsh(gram)
        if values[0] < DEPENDENT * values[-1]:
            values, turn = np.linalg.eigh(gram)
            turn = turn[:, values >= DEPENDENT * values[-1]]
            return cls.of(W @ turn, Y @ turn, noise)
        core = W.T @ Y
        size_W, size_Y = math.sqrt(np.trace(gram)), float(np.linalg.norm(Y))
        least = float(values[0]) - 4 * EPS * m * float(values[-1])
        off = noise * size_W
        rounding = 2 * EPS * (m + r) * size_W * size_Y + math.sqrt(values[-1]) * off
        nu = SHIFT * np.trace(core) / np.trace(gram)
        if math.isfinite(rounding):
            nu = max(nu, 4 * rounding / least)
        shifted = 0.5 * (core + core.T) + nu * gram
        L = np.linalg.cholesky(shifted)
        B = np.ascontiguousarray(scipy.linalg.solve_triangular(L, Y.T, lower=True).T)
        off += 2 * EPS * r * float(np.linalg.norm(B)) * float(np.linalg.norm(L))
        return cls(B, off / math.sqrt(0.5 * nu * least))

    def plus(self, c: float) -> Shifted:
        """M = B B' + c I."""
        return Shifted(self.B, c, self.e)

    @classmethod
    def nothing(cls, m: int) -> Nystrom:
        """No vectors: B B' = 0."""
        return cls(np.zeros((m, 0)), 0.0)


class Shifted:
    """M = B B' + c I, by way of the r x r matrix B'B + c I.

    ``share``: S + c I >= share M is proved (0 where nothing is).
    """

    def __init__(self, B: Array, c: float, e: float) -> None:
        self.B, self.c = B, c
        self.share = max(1.0 - e / math.sqrt(c), 0.0)
        self._factor: Any = None
        if B.shape[1]:
            inner = B.T @ B
            inner[np.diag_indices_from(inner)] += c
            self._factor = scipy.linalg.cho_factor(inner)

    def _inside(self, v: Array) -> Array:
        """y that minimises ||v - B y||^2 / c + ||y||^2."""
        return np.asarray(scipy.linalg.cho_solve(self._factor, v @ self.B))

    def solve(self, v: Array) -> Array:
        """M^{-1} v."""
        if self._factor is None:
            return v / self.c
        return np.asarray((v - self.B @ self._inside(v)) / self.c)

    def norm(self, v: Array, noise: float = 0.0) -> float:
        """A bound on (u'M^{-1}u)^{1/2} for every u within ``noise`` of v, rounding included.

        v'M^{-1}v is the least value of ||v - B y||^2 / c + ||y||^2 over y: any y will do.
        """
        size = float(np.linalg.norm(v))
        plain = (size * (1 + EPS * len(v)) + noise) / math.sqrt(self.c)
        if self._factor is None:
            return plain
        y = self._inside(v)
        rest, inside = float(np.linalg.norm(v - self.B @ y)), float(np.linalg.norm(y))
        r = self.B.shape[1]
        rest += EPS * (r + 2) * (size + float(np.linalg.norm(self.B)) * inside)
        found = math.hypot(rest / math.sqrt(self.c), inside) * (1 + EPS * len(v))
        return min(plain, found + noise / math.sqrt(self.c))
