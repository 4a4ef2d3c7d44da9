"""The averaged realization: copies kept by exact gossip averaging, composite normal operator.

Channel 1 is  P_C + P_kerC H' q(S) Pi H P_kerC  with  S = (1/n) sum_i H_i P_kerC H_i'  on vectors
that every agent holds; channel 2 is  (I - Pi) + 1 (x) q(S_D) S_D.  Pi is executed exactly, by
neighbor rounds, and both channels' messages travel in the same rounds. Only K^'K^
enters the methods, so q ~ 1/x replaces the square of a polynomial for x^{-1/2}: m averagings
instead of 2(deg + 1). Same row spaces, hence the same cross factor, as the canonical channels of
the scaled problem.

The normalizer of the coupled rows, q ~ S^{-1}, acts on vectors of m floats that every agent holds:
the inverse of a sketch, or deflation, without rounds. Of S_D all know the whole range:
q(S_D) S_D is the projection on it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ccmac.angles.principal import weighted_extremes
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.nystrom import Shifted
from ccmac.realizations.base import AffineSystem, Interval
from ccmac.runtime.base import Piggyback
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from ccmac.workspace.equations import Coupling, LocalEquations, SharedEquations, right_hand_sides

Gram = Callable[[Array], Array]


@dataclass(frozen=True)
class Deflation:
    """q = W T^{-1} W' + m0 (I - E)(I - E)', E = W T^{-1} (S W)', on Ritz vectors W; no rounds.

    spec = {1} and m0 [low, top]: ``top`` is the largest eigenvalue of S left after the deflation
    and m0 = 2/(low + top).
    """

    basis: Array  # (vectors, m)
    images: Array  # S basis
    inverse: Array  # T^{-1}
    low: float
    top: float

    @property
    def weight(self) -> float:
        """m0."""
        return 2.0 / (self.low + self.top)

    @property
    def spread(self) -> tuple[float, float]:
        """Ends of q(S) S: m0 low, m0 top (they enclose 1)."""
        return self.weight * self.low, self.weight * self.top

    def __str__(self) -> str:
        """Kind and size, for the plan."""
        return f"deflation {len(self.basis)}"

    def widened(self) -> Deflation:
        """The same, trusting the top of the spectrum of S four times less."""
        return Deflation(self.basis, self.images, self.inverse, 0.5 * self.low, 4.0 * self.top)

    def apply(self, right: Array) -> Array:
        """q(S) right: dense work on what every agent holds."""
        W = self.basis
        SW = self.images
        inner = self.inverse @ (W @ right[0])
        fine = right[0] - inner @ SW
        again = self.inverse @ (SW @ fine)
        fine -= again @ W
        fine *= self.weight
        fine += inner @ W
        return np.asarray(fine[None])


@dataclass(frozen=True)
class Sketched:
    """q = (B B' + c I)^{-1} of a sketch B B' <= S - c I; no rounds. ``top``: of S - B B'."""

    M: Shifted
    top: float

    @property
    def low(self) -> float:
        """Of the spectrum of S."""
        return self.M.c

    @property
    def spread(self) -> tuple[float, float]:
        """Ends of q(S) S (they enclose 1)."""
        return self.M.share, max(self.top / self.M.c, 1.0)

    def __str__(self) -> str:
        """Kind and size, for the plan."""
        return f"sketch {self.M.B.shape[1]}"

    def widened(self) -> Sketched:
        """The same, trusting the top four times less."""
        return replace(self, top=4.0 * self.top)

    def apply(self, right: Array) -> Array:
        """q(S) right: dense work on what every agent holds."""
        return self.M.solve(right[0])[None]


class AveragedSystem(AffineSystem):
    """Channels of the scaled problem on (x~, z~), executed along the edges."""

    def __init__(
        self, space: Space, coupling: Coupling, local: LocalEquations, shared: SharedEquations
    ) -> None:
        self.space = space
        self.coupling = coupling
        self.local = local
        self.shared = shared
        self.runtime = space.runtime
        self.consensus = self.runtime.n > 1 and space.q > 0
        self.empty = coupling.empty and local.empty and shared.empty and not self.consensus
        self.normalizer: Deflation | Sketched | None = None
        self.interval = Interval(1.0, 1.0)
        self.local_point = local.point
        self.width = coupling.width
        self._target: Array | Piggyback = self.zero_multiplier()

    @property
    def target(self) -> Array:
        """mean_i (b_i - A_i C_i^+ c_i)."""
        if isinstance(self._target, Piggyback):
            self._target = self._target.mean
        return self._target

    @target.setter
    def target(self, row: Array) -> None:
        self._target = row

    def prepare_target(self, right: Array) -> None:
        """Find the target: one averaging (setup)."""
        if not self.coupling.empty:
            self._target = self.runtime.average(self._shifted(right))

    def _shifted(self, right: Array) -> Array:
        if self.local.empty:
            return right
        return right - self.coupling.contributions(self.local_point, None)[0]

    def again(self, work: Workspace, moved: frozenset[str]) -> AveragedSystem:
        """The same operator for right-hand sides of which ``moved`` are new.

        They travel with the next message.
        """
        other = copy.copy(self)
        received = self._target
        if (
            isinstance(received, Piggyback) and received.found is None
        ):  # the last solve sent nothing
            moved = frozenset("bce")
        other.coupling = work.coupling.rescaled(self.coupling.s)
        if "c" in moved and not self.local.empty:
            other.local = self.local.again(work.problem)
            other.local_point = other.local.point
        if "e" in moved and not self.shared.empty:
            other.shared = self.shared.again(work.problem)
            other.shared.announce()
        if moved & {"b", "c"} and not self.coupling.empty:
            right = other._shifted(right_hand_sides(work.problem).b)
            other._target = self.runtime.piggyback(np.ascontiguousarray(right))
        return other

    def finish(
        self, normalizer: Deflation | Sketched | None, cosine: float, source: str, common: bool
    ) -> None:
        """Fix the normalizer and the joint interval: weighted projectors at cosine c."""
        self.normalizer = normalizer
        first = (1.0, 1.0) if normalizer is None else normalizer.spread
        if not self.local.empty:
            first = (min(first[0], 1.0), max(first[1], 1.0))
        low, _ = weighted_extremes(first[0], 1.0, cosine)
        _, high = weighted_extremes(first[1], 1.0, 1.0 if common else cosine)
        self.interval = Interval(low, high, source)

    def widen(self) -> None:
        """After a blow-up: trust the normalizer's upper end less, and the lower end too."""
        if self.normalizer is None:
            super().widen()
            return
        self.normalizer = self.normalizer.widened()
        first = self.normalizer.spread
        high = max(first[1], 1.0) + max(self.interval.high - first[1], 1.0)
        self.interval = Interval(0.25 * self.interval.low, max(high, 2.0), "estimated")

    def at_scale(self, s: float) -> AveragedSystem:
        """The same equations in z = s z~ (targets are in the user's units and stay)."""
        other = copy.copy(self)
        other.coupling = self.coupling.rescaled(s)
        other.shared = self.shared.at_scale(s)
        return other

    def homogeneous(self) -> AveragedSystem:
        other = copy.copy(self)
        other.target = self.zero_multiplier()
        other.local_point = np.zeros_like(self.local_point)
        other.shared = self.shared.homogeneous()
        return other

    @property
    def gain(self) -> float:
        """||H'q(S) e|| <= sqrt(n q(S) S q(S)) ||e||, and e a mean of n."""
        if self.normalizer is None:
            return 0.0
        return (
            math.sqrt(self.normalizer.spread[1] / self.normalizer.low) * self.normalizer.spread[1]
        )

    @property
    def turn(self) -> float:
        return self.interval.high + 1.0

    # -- S ------------------------------------------------------------------------------------
    def gram_contribution(self, multiplier: Array) -> Array:
        """H_i P_kerC H_i'y of a multiplier y: its mean is S y. Cost: 2 A, 2 B, one projector C."""
        gx, gz = self.coupling.adjoint(multiplier)
        if not self.local.empty:
            gx = gx - self.local.project(gx)
        return self.coupling.contributions(gx, gz)[0]

    # -- the residual ---------------------------------------------------------------------------
    def _channels(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """(P_C x, coupled multiplier, mean z, D-part) of the residual at w."""
        x = self.space.x(w)
        z = self.space.z(w)
        self.runtime.ledger.charge(affine=2)
        projected = self.local.project(x)
        kernel_x = x if self.local.empty else x - projected
        parts = self.coupling.contributions(kernel_x, z, with_z=True)
        coupled, mean_z = self.runtime.combine(parts)
        multiplier = self.zero_multiplier()
        if self.normalizer is not None:
            multiplier = self.normalizer.apply(coupled - self.target)
        shared = np.zeros((1, 0)) if self.shared.empty else self.shared.violation(mean_z)
        return projected, multiplier, mean_z, shared

    def residual(self, w: Array) -> tuple[Array, Array]:
        """G w - g; one averaging of m + q floats."""
        projected, multiplier, mean_z, shared = self._channels(w)
        out = np.empty_like(w)
        out_x = self.space.x(out)
        out_z = self.space.z(out)
        self._first(multiplier, projected, out_x, out_z)
        if self.consensus:
            out_z += self.space.z(w)
            out_z -= mean_z
        if not self.shared.empty:
            out_z += shared
        return out, multiplier

    def _first(self, multiplier: Array, projected: Array, out_x: Array, out_z: Array) -> None:
        if self.normalizer is not None:
            gx, _ = self.coupling.adjoint(multiplier, out_z)
            if self.local.empty:
                out_x[...] = gx
            else:
                out_x[...] = gx - self.local.project(gx)
        else:
            out_x[...] = 0.0
            out_z[...] = 0.0
        if not self.local.empty:
            out_x += projected
            out_x -= self.local_point

    @property
    def cost(self) -> Cost:
        """One residual: 2 affine calls, their products, an averaging."""
        products = self.coupling.product_cost() + self.local.cost
        cost = Cost(affine=2) + products
        cost = cost + self.runtime.average_cost(self.coupling.width + self.coupling.q)
        return cost if self.coupling.empty else cost + products
