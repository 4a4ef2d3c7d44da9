"""Normalizers of the coupled rows: q ~ S^{-1}, S = (1/n) sum_i H_i P_kerC H_i'.

They act on vectors of m floats that every agent holds, as a polynomial in S or by deflation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.chebyshev import Chain, growth, semi_iteration_chain

Gram = Callable[[Array], Array]


class Normalizer(ABC):
    """q ~ S^{-1} on common m-vectors; ``spread`` (a, b) bounds spec(q(S) S)."""

    averagings: int
    low: float  # of the spectrum of S
    spread: tuple[float, float]

    @abstractmethod
    def chain(self, gram: Gram, right: Array) -> Chain:
        """q(S) right; ``gram`` is what the agents put into the mean S h."""

    @abstractmethod
    def __str__(self) -> str:
        """Kind and size, for the plan."""

    @abstractmethod
    def widened(self) -> Normalizer:
        """The same, trusting the top of the spectrum of S four times less."""


@dataclass(frozen=True)
class SemiIteration(Normalizer):
    """Chebyshev semi-iteration of ``steps`` steps on [low, high]."""

    low: float
    high: float
    steps: int

    @property
    def averagings(self) -> int:  # type: ignore[override]
        return self.steps - 1 if self.high > self.low else 0

    @property
    def spread(self) -> tuple[float, float]:  # type: ignore[override]
        """1 -+ 1/T_steps."""
        error = 1.0 / growth(self.steps, self.low, self.high)
        return 1.0 - error, 1.0 + error

    def __str__(self) -> str:
        return f"semi-iteration {self.steps}"

    def widened(self) -> SemiIteration:
        """[low/2, 4 high]."""
        return SemiIteration(0.5 * self.low, 4.0 * self.high, self.steps)

    def chain(self, gram: Gram, right: Array) -> Chain:
        return semi_iteration_chain(gram, right, self.low, self.high, self.steps)


@dataclass(frozen=True)
class Deflation(Normalizer):
    """W T^{-1} W' + m0 (I - E)(I - E)', E = W T^{-1} (S W)', on Lanczos vectors W; no rounds.

    spec = {1} and m0 [low, top]: ``top`` is the largest eigenvalue of S left after the deflation
    and m0 = 2/(low + top).
    """

    basis: Array  # (vectors, m)
    images: Array  # S basis
    inverse: Array  # T^{-1}
    low: float
    top: float

    averagings = 0

    @property
    def weight(self) -> float:
        """m0."""
        return 2.0 / (self.low + self.top)

    @property
    def spread(self) -> tuple[float, float]:  # type: ignore[override]
        """m0 low, m0 top (they enclose 1)."""
        return self.weight * self.low, self.weight * self.top

    def __str__(self) -> str:
        return f"deflation {len(self.basis)}"

    def widened(self) -> Deflation:
        """top x 4, low / 2."""
        return Deflation(self.basis, self.images, self.inverse, 0.5 * self.low, 4.0 * self.top)

    def chain(self, gram: Gram, right: Array) -> Chain:
        """Dense work on what every agent holds."""
        return self.apply(right)
        yield  # a generator without averagings

    def apply(self, right: Array) -> Array:
        """P right."""
        W = self.basis
        SW = self.images
        inner = self.inverse @ (W @ right[0])
        fine = right[0] - inner @ SW
        again = self.inverse @ (SW @ fine)
        fine -= again @ W
        fine *= self.weight
        fine += inner @ W
        return np.asarray(fine[None])
