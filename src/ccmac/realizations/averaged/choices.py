"""What of a plan is decided in advance, what it aims at, and what is chosen among.

The normalizers, q ~ S^{-1} on vectors that every agent holds, are a polynomial in S, or vectors
that are deflated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Costs
from ccmac.linalg.chebyshev import Chain, growth, semi_iteration_chain
from ccmac.realizations.base import Certificates, Images, Interval
from ccmac.workspace.curvature import ScaledCurvature


@dataclass(frozen=True)
class Fixed:
    """What of a plan is decided in advance; None leaves it to the planner.

    ``floor`` takes the scale at which B's part of S has that share of A's, for objectives whose
    curvature says nothing.
    """

    scale: float | None = None
    normalizer: str | None = None
    inner: int | None = None
    outer: int | None = None
    lanczos: int | None = None
    floor: float | None = None


@dataclass(frozen=True)
class Aim:
    """What a plan aims at: squared relative error, the blocks (x, z) that count, the prices.

    ``by_price``: the error is that of the minimisers at the method's price.
    """

    target: float = 1e-6
    measure: tuple[float, float] = (1.0, 1.0)
    costs: Costs = field(default_factory=Costs)
    by_price: bool = False


@dataclass(frozen=True)
class Wanted:
    """How the averaged realization is to be built.

    ``start`` is (x flat, z rows) in the user's variables, ``access`` how the C_i and D_i may be
    used (``factor`` or ``matvec``). ``stand_in`` plans with a strongly convex problem of that
    condition number in place of one that is not (its constants stay true).
    """

    start: tuple[Array, Array]
    goal: Aim = field(default_factory=Aim)
    fixed: Fixed = field(default_factory=Fixed)
    certificates: Certificates = field(default_factory=Certificates)
    access: str = "factor"
    stand_in: float | None = None
    seed: int = 0

    @property
    def key(self) -> Hashable:
        """What a plan depends on beside the problem; a plan made for one start serves others."""
        return self.goal, self.fixed, self.certificates, self.access, self.stand_in, self.seed


@dataclass(frozen=True)
class Candidate:
    """One row of the plan: settings, and what the twin expects of them."""

    scale: float  # s^2 in units of the balanced scale
    s: float
    normalizer: str  # "semi-iteration" or "deflation"
    inner: int
    outer: int
    kappa_f: float
    cross_factor: float
    iterations: float = math.inf
    rounds: float = math.inf
    gradients: float = math.inf
    products: float = math.inf
    bill: float = math.inf

    @property
    def settings(self) -> tuple[float, str, int, int]:
        """What tells candidates apart."""
        return self.scale, self.normalizer, self.inner, self.outer

    def scored(self, iterations: float, step: StepPrice) -> Candidate:
        """With the bill of so many iterations."""
        return replace(
            self,
            iterations=iterations,
            rounds=iterations * step.rounds,
            gradients=iterations,
            products=iterations * step.products,
            bill=iterations * step.bill,
        )


class StepPrice(NamedTuple):
    """What one iteration costs."""

    rounds: int
    products: int
    bill: float


@dataclass(frozen=True)
class Choice:
    """The planner's answer: the chosen candidate, its ingredients, and everything considered."""

    candidate: Candidate
    constants: ScaledCurvature
    spectrum: Interval
    cosine: float | None
    table: tuple[Candidate, ...] = field(repr=False, default=())
    block: Images | None = field(repr=False, default=None)


# -- normalizers -----------------------------------------------------------------------------------
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
