"""What of a plan is decided in advance, what it aims at, and what was chosen among."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ccmac.inputs import Array
from ccmac.ledger import Costs
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

    ``by_price``: the error is that of the minimisers at the method's price. ``lean``: its residuals
    are :meth:`~ccmac.realizations.base.AffineSystem.lean` ones.
    """

    target: float = 1e-6
    measure: tuple[float, float] = (1.0, 1.0)
    costs: Costs = field(default_factory=Costs)
    by_price: bool = False
    lean: bool = False


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
            self, iterations=iterations, rounds=iterations * step.rounds, gradients=iterations,
            products=iterations * step.products, bill=iterations * step.bill,
        )  # fmt: skip


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
