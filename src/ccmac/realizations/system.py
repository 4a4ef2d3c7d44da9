"""What a solver sees of the constraints: the normal residual of the normalized stack.

Methods use the stack K^ = [S_1 K_1; S_2 K_2] only through G = K^'K^ and g = K^'v^. A realization is
therefore a residual map w -> G w - g, the interval that holds the positive spectrum of G, and the
static cost of one residual (one forward and one adjoint call of the stack).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from ccmac.inputs import Array

from ccmac.ledger import Cost
from ccmac.runtime.space import Space



@dataclass(frozen=True)
class Interval:
    """0 < low <= spec^+ <= high; ``source`` says on what ``low`` rests.

    ``proved`` (structure, a factorization, an exhausted space), ``supplied`` or ``estimated``.
    """

    low: float
    high: float
    source: str = "proved"

    @property
    def ratio(self) -> float:
        """high / low."""
        return self.high / self.low

    def widened(self, low: float = 1.0, high: float = 1.0) -> Interval:
        """Endpoints multiplied by ``low`` (<= 1) and ``high`` (>= 1)."""
        return Interval(self.low * low, self.high * high, self.source)


class AffineSystem(ABC):
    """Normal residual of a normalized stack, with its certified interval."""

    space: Space
    interval: Interval
    empty: bool

    @abstractmethod
    def residual(self, w: Array) -> tuple[Array, Array]:
        """(G w - g, price of the coupled equation). Charges 2 affine calls and their products."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Static cost of one residual."""

    @abstractmethod
    def channel_residuals(self, w: Array) -> list[Array]:
        """G_j w - g_j channel by channel (a diagnosis; costs one residual)."""

    @abstractmethod
    def homogeneous(self) -> AffineSystem:
        """The same operator with zero right-hand sides: its residual is G w."""

    def widen(self) -> None:
        """After a blow-up: trust both ends of the interval less."""
        self.interval = Interval(0.25 * self.interval.low, 2.0 * self.interval.high, "estimated")

    def zero_price(self) -> Array:
        """A price of the right shape."""
        return np.zeros((1, 0))

    def common_price(self, price: Array) -> Array:
        """The coupled multiplier as one row that all agents know."""
        return price
