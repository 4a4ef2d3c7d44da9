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
Further vectors P with their images extend L by rows P'B: B_new = (S P - B B'P) L_new^{-T}.
Solves with large tame M multiply by a B in single precision: it is as good a preconditioner at half
the memory traffic, and no bound rests on it. No communication: who computes Y pays.
Cost: 4 m r^2 operations once (4 m r k for k more vectors), 4 m r a solve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.tolerances import EPS

SHIFT = 1e-9  # nu over the mean of the core's diagonal, at the least
TAME = 1e5  # ||B||^2 / c up to which single precision leaves two digits of M^{-1} v at the worst
LARGE = 2**18  # entries of B from which memory limits a product


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
class Columns:
    """B = [B_1 B_2 ...], each block as it came; ``length`` = ||B||_F. Growing copies nothing."""

    parts: tuple[Array, ...] = ()
    length: float = 0.0

    @property
    def count(self) -> int:
        """Of columns."""
        return sum(part.shape[1] for part in self.parts)

    @property
    def size(self) -> int:
        """Of entries."""
        return sum(part.size for part in self.parts)

    def plus(self, more: Array) -> Columns:
        """[B more]."""
        return Columns((*self.parts, more), math.hypot(self.length, _size(more)))

    def single(self, scale: float) -> Columns:
        """B / scale, in single precision."""
        return Columns(
            tuple(
                np.divide(part, scale, dtype=np.float32, casting="same_kind") for part in self.parts
            ),
            self.length / scale,
        )

    def along(self, V: Array) -> Array:
        """V'B of a vector, or of columns."""
        return np.concatenate([V.T @ part for part in self.parts], axis=-1)

    def times(self, Y: Array) -> Array:
        """B Y of a vector, or of columns."""
        cuts = np.cumsum([part.shape[1] for part in self.parts])[:-1]
        first, *others = (
            part @ piece for part, piece in zip(self.parts, np.split(Y, cuts), strict=True)
        )
        for image in others:
            first += image
        return np.asarray(first)


@dataclass(frozen=True)
class Nystrom:
    """B and B'B; ``off`` >= ||E||, ``floor`` <= the least eigenvalue of F, ``length`` = ||L||_F.

    ``noise``: images are known with ||Y - S W|| <= noise ||W||_F (infinite: nothing is known).
    """

    B: Columns
    inner: Array
    noise: float
    off: float = 0.0
    floor: float = math.inf
    length: float = 0.0
    _shifted: dict[float, Shifted] = field(default_factory=dict, init=False, repr=False)

    @property
    def e(self) -> float:
        """Of the module text."""
        return self.off / math.sqrt(self.floor)

    @classmethod
    def nothing(cls, noise: float = math.inf) -> Nystrom:
        """No vectors: B B' = 0."""
        return cls(Columns(), np.zeros((0, 0)), noise)

    @classmethod
    def of(cls, W: Array, Y: Array, noise: float = math.inf) -> Nystrom:
        """From test vectors and their images."""
        return cls.nothing(noise).grown(W, Y)

    def grown(self, P: Array, Y: Array) -> Nystrom:
        """With further vectors and their images."""
        if not P.shape[1]:
            return self
        m, k = P.shape
        r = self.B.count + k
        core = P.T @ Y
        size_P = _size(P)
        size_Y = _size(Y)
        size_B = self.B.length
        off = self.noise * size_P
        rounding = 2 * EPS * (m + r) * size_P * (size_Y + size_P * size_B**2) + size_P * off
        nu = SHIFT * float(np.trace(core)) / k
        # P'B, the new rows of L, differ from P'S W L^{-T}: what F has beside its diagonal blocks.
        beside = size_P * (self.off + 2 * EPS * m * size_B * self.length)
        if math.isfinite(rounding):
            nu = max(nu, 4 * (rounding + beside * (beside / self.floor)))
        rest = 0.5 * (core + core.T)
        left = Y
        size_L = 0.0
        if r > k:
            rows = self.B.along(P)
            rest = rest - rows @ rows.T
            left = Y - self.B.times(rows.T)
            size_L = _size(rows)
        rest[np.diag_indices_from(rest)] += nu
        L = np.linalg.cholesky(rest)
        B = scipy.linalg.solve_triangular(L, left.T, lower=True, check_finite=False).T
        size_L = math.hypot(size_L, _size(L))
        both = self.B.plus(B)
        off += 2 * EPS * r * both.length * size_L
        inner = B.T @ B
        if r > k:
            mixed = self.B.along(B)
            inner = np.block([[self.inner, mixed.T], [mixed, inner]])
        turn = 1 + beside / self.floor
        floor = min(self.floor, 0.5 * nu) / turn / turn
        return Nystrom(
            both,
            inner,
            self.noise,
            math.hypot(self.off, off),
            floor,
            math.hypot(self.length, size_L),
        )

    def plus(self, c: float) -> Shifted:
        """M = B B' + c I."""
        if c not in self._shifted:
            self._shifted[c] = Shifted(self.B, self.inner, c, self.e)
        return self._shifted[c]


class Shifted:
    """M = B B' + c I, by way of the r x r matrix B'B + c I.

    ``share``: S + c I >= share M is proved (0 where nothing is).
    """

    def __init__(self, B: Columns, inner: Array, c: float, e: float) -> None:
        self.B = B
        self.c = c
        self.share = max(1.0 - e / math.sqrt(c), 0.0)
        self._factor: Any = None
        self._single: Columns | None = None
        if B.count:
            # Rounding may leave B'B with eigenvalues below zero, by so much. Any y will do.
            least = 4 * EPS * len(inner) * float(np.trace(inner))
            self._factor = scipy.linalg.cho_factor(inner + max(c, least) * np.eye(len(inner)))
            if B.size >= LARGE and B.length**2 <= TAME * c:
                self._single = B.single(math.sqrt(c))

    def _inside(self, v: Array) -> Array:
        """y that minimises ||v - B y||^2 / c + ||y||^2."""
        return np.asarray(scipy.linalg.cho_solve(self._factor, self.B.along(v), check_finite=False))

    def solve(self, v: Array) -> Array:
        """M^{-1} v."""
        if self._factor is None:
            return v / self.c
        if self._single is not None and 0 < (size := _size(v)) < math.inf:
            along = self._single.along((v / size).astype(np.float32)).astype(np.float64)
            inside = self.c * scipy.linalg.cho_solve(self._factor, along, check_finite=False)
            image = self._single.times(inside.astype(np.float32)).astype(np.float64)
            return np.asarray((v - size * image) / self.c)
        return np.asarray((v - self.B.times(self._inside(v))) / self.c)

    def norm(self, v: Array, noise: float = 0.0) -> float:
        """A bound on (u'M^{-1}u)^{1/2} for every u within ``noise`` of v, rounding included.

        v'M^{-1}v is the least value of ||v - B y||^2 / c + ||y||^2 over y: any y will do.
        """
        size = _size(v)
        plain = (size * (1 + EPS * len(v)) + noise) / math.sqrt(self.c)
        if self._factor is None:
            return plain
        y = self._inside(v)
        rest = _size(v - self.B.times(y))
        inside = _size(y)
        rest += EPS * (self.B.count + 2) * (size + self.B.length * inside)
        found = math.hypot(rest / math.sqrt(self.c), inside) * (1 + EPS * len(v))
        return min(plain, found + noise / math.sqrt(self.c))


def _size(v: Any) -> float:
    """||v||, of a matrix that of Frobenius."""
    return float(np.linalg.norm(v))
