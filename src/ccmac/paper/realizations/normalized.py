"""Separately normalized channels: from M_j w = v_j to the residual of their normalized stack.

A channel is a linear map with its right-hand side and the cost of one action (forward or adjoint).
Its polynomial normalization is M^ = p(Q) M, Q = M M', with p the Chebyshev interpolant of x^{-1/2}
(Proposition prop:poly-normalization); one call M^ or M^' is 2 deg(p) + 1 actions. The stack adds
the channels' normal residuals and charges two affine calls, one forward and one adjoint.

On small problems in one process a channel may be materialised: the same numbers faster, at the
charge of the execution along the edges. A simulation that is not fused executes every round, bit
for bit as separate processes do, and is materialised only on request.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.linalg.ranks import row_space, squared_range
from ccmac.paper.realizations.inverse_root import InverseRoot
from ccmac.realizations.base import AffineSystem, Interval
from ccmac.runtime.space import Space

RULES = ("paper", "tight", "exact")


class Channel(ABC):
    """M w = ``right`` on a space; rows are one flat array."""

    right: Array
    space: Space

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, execution variables)."""
        return len(self.right), self.space.size

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """One action, forward or adjoint."""

    @abstractmethod
    def forward(self, w: Array) -> Array:
        """M w."""

    @abstractmethod
    def adjoint(self, rows: Array) -> Array:
        """M' rows, a new execution vector."""

    def gram(self, rows: Array) -> Array:
        """M M' rows: two actions."""
        return self.forward(self.adjoint(rows))

    def multiplier(self, rows: Array) -> Array | None:
        """Multiplier of the coupled equation within ``rows``; None when the channel has none."""
        return None


class NormalizedChannel(ABC):
    """K^'(K^ w - v^) of one normalized channel; spec^+(K^'K^) lies in ``spread``, and before it
    was normalized spec^+(M M') in ``squares``.
    """

    spread: tuple[float, float]
    squares: tuple[float, float] = (1.0, 1.0)
    cost: Cost
    right: Array

    @abstractmethod
    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """(K^'(K^ w - v^), multiplier of the coupled equation if it is here)."""

    @property
    def degree(self) -> int | None:
        """Of its polynomial; None without one."""
        return None

    def homogeneous(self) -> Self:
        """The same operator with right-hand side zero."""
        other = copy.copy(self)
        other.right = np.zeros_like(self.right)
        return other


class PolynomialChannel(NormalizedChannel):
    """M^ = p(Q) M, v^ = p(Q) v. Cost of a residual: 2 (2 deg p + 1) actions."""

    def __init__(self, channel: Channel, polynomial: InverseRoot) -> None:
        self.channel = channel
        self.polynomial = polynomial
        self.spread = polynomial.spread
        self.squares = (polynomial.low, polynomial.high)
        self.cost = 2 * (2 * polynomial.degree + 1) * channel.cost
        self.right = self.smooth(channel.right)

    @property
    def degree(self) -> int:
        return self.polynomial.degree

    def smooth(self, rows: Array) -> Array:
        """p(Q) rows. Cost: 2 deg p actions."""
        return self.polynomial.apply(self.channel.gram, rows)

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """One normalized forward and one normalized adjoint call."""
        rows = self.smooth(self.channel.forward(w))
        rows -= self.right
        rows = self.smooth(rows)
        return self.channel.adjoint(rows), self.channel.multiplier(rows)


class WhitenedChannel(NormalizedChannel):
    """M^ = (M M')^{+1/2} M by a dense SVD, so that M^'M^ is the projector onto Range(M').

    No separate preconditioning does better (Theorem thm:blockwise-opt).

    For small problems. A call is charged as one action of the channel.
    """

    spread = (1.0, 1.0)

    def __init__(self, channel: Channel, matrix: Array, ledger: Ledger) -> None:
        self.channel = channel
        self.ledger = ledger
        self.cost = 2 * channel.cost
        self.rows = row_space(matrix)
        if self.rows.rank:
            largest, least = self.rows.singular[[0, -1]].tolist()
            self.squares = (least * least, largest * largest)
        self.right = self.rows.coordinates(channel.right)

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        """V (V'w - S^{-1} U' R^{-1} v)."""
        self.ledger.charge_cost(self.cost)
        basis = self.rows.basis
        inner = basis.T @ w - self.right
        return basis @ inner, self.channel.multiplier(self.rows.multipliers(inner))


class MaterialisedChannel(NormalizedChannel):
    """M'(p(Q)^2 (M w - v)) with M and p(Q)^2 M dense."""

    def __init__(self, executed: PolynomialChannel, ledger: Ledger) -> None:
        self.channel = executed.channel
        self.ledger = ledger
        self.spread = executed.spread
        self.cost = executed.cost
        self.squares = executed.squares
        self.matrix = dense_matrix(executed.channel, ledger)
        values, vectors = np.linalg.eigh(self.matrix @ self.matrix.T)
        squared = (vectors * executed.polynomial(values) ** 2) @ vectors.T
        self.smoothed = squared @ self.matrix
        self.right = squared @ executed.channel.right

    def residual(self, w: Array) -> tuple[Array, Array | None]:
        self.ledger.charge_cost(self.cost)
        rows = self.smoothed @ w - self.right
        return rows @ self.matrix, self.channel.multiplier(rows)


class NormalizedStack(AffineSystem):
    """K^ = [K^_1; K^_2; ...] with ``width`` coupled multipliers; ``charge`` is paid once a
    residual.

    ``common``: whether all agents know one multiplier, or each its own, which tend to each other.
    """

    def __init__(
        self,
        space: Space,
        channels: Sequence[NormalizedChannel],
        interval: Interval,
        *,
        width: int = 0,
        common: bool = True,
        charge: Cost | None = None,
    ) -> None:
        self.space, self.channels, self.interval = space, list(channels), interval
        self.width = width
        self.common = common
        self.charge = Cost(affine=2) if charge is None else charge
        self.empty = not self.channels

    @property
    def gain(self) -> float:
        return max((c.spread[1] / math.sqrt(c.squares[0]) for c in self.channels), default=0.0)

    @property
    def turn(self) -> float:
        ratios = [high / low for low, high in (c.squares for c in self.channels)]
        return self.interval.high * max(map(math.sqrt, ratios), default=1.0)

    def residual(self, w: Array) -> tuple[Array, Array]:
        self.space.runtime.ledger.charge_cost(self.charge)
        self.space.runtime.mind_the_time()  # channels that are multiplied out send nothing
        out = np.zeros(0)
        coupled = self.zero_multiplier()
        for k, channel in enumerate(self.channels):
            part, multiplier = channel.residual(w)
            if multiplier is not None:
                coupled = multiplier
            if k:
                out += part
            else:
                out = part
        return (out if self.channels else np.zeros_like(w)), coupled

    def channel_residuals(self, w: Array) -> list[Array]:
        """Each channel's residual (costs one residual)."""
        self.space.runtime.ledger.charge_cost(self.charge)
        return [channel.residual(w)[0] for channel in self.channels]

    def homogeneous(self) -> NormalizedStack:
        other = copy.copy(self)
        other.channels = [channel.homogeneous() for channel in self.channels]
        return other

    def zero_multiplier(self) -> Array:
        return np.zeros((1 if self.common else self.space.count, self.width))

    def common_multiplier(self, multiplier: Array) -> Array:
        """The mean of the agents' own multipliers: one averaging."""
        return multiplier if self.common else self.space.runtime.average(multiplier)

    @property
    def cost(self) -> Cost:
        return sum((channel.cost for channel in self.channels), self.charge)


def materialised(
    channels: Sequence[NormalizedChannel], space: Space, wanted: bool | None
) -> list[NormalizedChannel]:
    """The channels with polynomials turned into matrices.

    ``wanted`` = None decides: fused, all agents here, at most 600 variables and rows a channel.
    """
    runtime = space.runtime
    whole = len(runtime.owned) == runtime.n
    if wanted and not whole:
        raise InputError("materialise: needs all agents in one process; drop the option")

    def chosen(c: PolynomialChannel) -> bool:
        # Execution variables, and rows of a channel, that are multiplied out.
        small = max(space.size, len(c.right)) <= 600
        return runtime.fused and whole and small if wanted is None else wanted

    return [
        MaterialisedChannel(c, runtime.ledger)
        if isinstance(c, PolynomialChannel) and chosen(c)
        else c
        for c in channels
    ]


def spread_over(channels: Sequence[NormalizedChannel]) -> tuple[float, float]:
    """(a, b) that hold spec^+(K^_j'K^_j) of every channel.

    A fixed spread costs the stack the factor b/a (Corollary cor:inexact-whitening).
    """
    return min(c.spread[0] for c in channels), max(c.spread[1] for c in channels)


def certified_interval(spread: tuple[float, float], chi: float, source: str) -> Interval:
    """[a/(3 chi^2), 2b] of two channels with that spread.

    Equation eq:normalized-joint-certificate, from Lemma lem:joint-cheb and the bridge of a lift.
    """
    return Interval(spread[0] / (3.0 * chi * chi), 2.0 * spread[1], source)


def dense_matrix(channel: Channel, ledger: Ledger) -> Array:
    """M row by row (small channels; an observer's look, charges nothing)."""
    with ledger.observing():
        rows = [channel.adjoint(unit) for unit in np.eye(len(channel.right))]
    return np.stack(rows)


def squared_singular_range(matrix: Array) -> tuple[float, float]:
    """(least positive, largest) eigenvalue of M M'; (0, 0) for a zero matrix."""
    return squared_range(matrix)[1:]
