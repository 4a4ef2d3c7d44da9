"""An error bound from a price alone, where the shared variable is eliminated.

With the parts of :mod:`ccmac.workspace.eliminated`, M = B B' + c I of a sketch and share M <= S,

    ||(x, z) - (x*, z*)|| <= (r'M^{-1}r / (share mu))^{1/2} + 2 ||rho|| / mu

for the minimisers (x, z) of any price l as they were computed: r is the violation at that point,
rho = grad F + (A'l, beta l) what rounding left of their stationarity, taken in extended precision.
(With v = w - w(l) and H v = rho: ||K v||_{S^{-1}} <= ||v||_H <= ||rho|| / mu^{1/2}.) Nothing
about the method enters, no spectrum is estimated: S >= c I, and sketches stay below S.
Rounding of r, of c and of the norms is added. Cost: one averaging of m + 4 floats, 1 argmin, 3 A,
1 gradient.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ccmac.certificates.error_bound import Particulars, Proved
from ccmac.certificates.prices import Multipliers
from ccmac.certificates.stopping import FIRST_CHECK, Check, Judged, Stopping
from ccmac.inputs import Array
from ccmac.linalg.extended import EPS_LONG, Long, gradient_rounding, norm, product
from ccmac.linalg.nystrom import Nystrom, Shifted
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Images
from ccmac.runtime.base import Rider
from ccmac.runtime.space import piece_sums, row_dots
from ccmac.workspace.eliminated import Eliminated

EARLY = 0.7  # of the planned iterations before the first proof
AGAIN = 0.5  # after a proof that fell short, the estimate must fall by this factor


class DualBound:
    """Bounds for prices of one eliminated problem."""

    def __init__(self, parts: Eliminated, M: Shifted) -> None:
        self.parts = parts
        self.M = M

    @classmethod
    def from_block(cls, parts: Eliminated, block: Images) -> DualBound:
        """With what is known of S_A = (1/n) sum A_i A_i': S - c I >= (n / L) S_A for H_i <= L I."""
        top = float(np.max(parts.table.L_x * (1 + 2 * EPS * parts.table.d)))
        noise = parts.noise + 8 * EPS * parts.c
        noise += math.sqrt(parts.runtime.unseen(parts.m)) / top  # of images that were summed
        known = Nystrom.of(block.vectors, block.images * (parts.problem.n / top), noise)
        return cls(parts, known.plus(parts.c))

    def slope_again(self) -> tuple[Array, float]:
        """(sum g_i, sum ||g_i||) for a state that was read: not believed, never charged."""
        with self.parts.ledger.observing():
            found = self.parts.slope().value
        return found[:-1], float(found[-1])

    def estimate(self, energy: float) -> float:
        """The bound for r'M^{-1}r = energy, without what rounding adds."""
        return math.sqrt(max(energy, 0.0) / (max(self.M.share, EPS) * self.parts.mu))

    def at(self, price: Array, slope: Array, slopes: float) -> Proved:
        """The bound at the minimisers of ``price``; ``slope`` = sum g_i, ``slopes`` = sum ||g_i||.

        The point, its violation, prices and value travel in one message.
        """
        parts = self.parts
        n = self.parts.problem.n
        m = self.parts.m
        x = parts.minimisers(price)
        z = parts.shared(price, slope)
        own = self._all(x, z, price)
        parts.ledger.charge(gradients=1)
        parts.ledger.charge_cost(parts.A.cost)  # A'price in extended precision
        total, scalars = parts.sums(x, own, minus=parts.b)
        rho2, x2, rounding, value = (float(v) for v in scalars)
        shared = parts.beta * z
        violation = total + shared
        size_z = norm(z)
        size_price = norm(price)
        unseen = parts.runtime.unseen(m)
        off = rounding + 4 * EPS * (norm(total) + norm(shared)) + math.sqrt(unseen) + unseen
        # z is (g - beta l)/h, each operation rounded once; g a sum of n products.
        rest = 4 * EPS * (norm(slope) + abs(parts.beta) * size_price) + n * EPS * slopes
        rho = math.hypot(math.sqrt(rho2 + unseen), rest + math.sqrt(unseen))
        energy = math.inf
        if self.M.share > 0:
            energy = self.M.norm(violation, off) / math.sqrt(self.M.share)
        energy = min(energy, (norm(violation) + off) / math.sqrt(parts.c))
        error = energy / math.sqrt(parts.mu) + 2 * rho / parts.mu
        size = math.hypot(math.sqrt(x2), size_z)
        residuals = {"coupled": norm(violation), "local": 0.0, "shared": 0.0, "consensus": 0.0}
        report = Particulars(residuals, self._prices(z, price), value)
        none = np.zeros(0)
        error *= 1 + (n + m) * EPS
        return Proved(x, z, error, rho, norm(violation), size, none, none, price, report)

    def _all(self, x: Array, z: Array, price: Array) -> Array:
        """:meth:`_own` of the agents here, one row each; of many in one pass."""
        parts = self.parts
        d = self.parts.space.d
        pulled = self._pulled(price)
        if parts.whole is None:
            length = norm(price)
            ends = np.cumsum(d)[:-1]
            pairs = zip(np.split(x, ends), np.split(pulled, ends), strict=True)
            own = [self._own(k, piece, z, back, length) for k, (piece, back) in enumerate(pairs)]
            return np.array(own)
        agents = list(parts.problem.agents.values())
        images = parts.whole.H * x.astype(np.longdouble)
        slope = images - parts.g_x + pulled
        g, size, spread, left = (
            np.sqrt(piece_sums(np.square(v.astype(np.longdouble)), d))
            for v in (parts.g_x, x, images, slope)
        )
        block = parts.lengths_of_blocks
        long = EPS_LONG * (parts.m + np.asarray(d) + 4) * (block * norm(price) + spread + g)
        rho = left + long + 2 * EPS * (g + spread)  # of the products that H and g are
        b = np.sqrt(row_dots(parts.b, parts.b))
        off = EPS * (parts.space.x_size + parts.problem.n + 4) * (block * size + b)
        pieces = np.split(x, np.cumsum(d)[:-1])
        value = [a.objective.value(v, z) for a, v in zip(agents, pieces, strict=True)]
        return np.column_stack([rho * rho, size * size, off, value])

    def _pulled(self, price: Array) -> Long:
        """(A_i'price)_i in extended precision, flat; of sparse blocks in one pass."""
        A = self.parts.A
        if A.abreast is not None:
            return product(A.abreast.T, price)
        return np.concatenate(
            [
                np.zeros(d, np.longdouble) if block is None else product(block.T, price)
                for block, d in zip(A.blocks, A.columns, strict=True)
            ]
        )

    def _own(self, k: int, x: Array, z: Array, pulled: Long, length: float) -> list[float]:
        """One agent's ||rho||^2, ||x||^2, rounding of its part of r, and value.

        ``pulled`` = A_i'price, ``length`` = ||price||.
        """
        parts = self.parts
        agent = list(self.parts.problem.agents.values())[k]
        gradient = agent.objective.precise_gradient(x, z)
        rounding = gradient_rounding(gradient, np.append(x, z), parts.own_L[k])
        own = gradient[: len(x)]
        block = float(parts.lengths_of_blocks[k])
        long = EPS_LONG * (parts.m + 4) * (block * length + norm(own))
        rho = norm(own + pulled) + long + rounding
        b = 0.0 if agent.b is None else norm(agent.b)
        size = norm(x)
        off = EPS * (len(x) + parts.problem.n + 4) * (block * size + b)
        return [rho * rho, size * size, off, agent.objective.value(x, z)]

    def _prices(self, z: Array, price: Array) -> Multipliers:
        """y and nu; there are no other equations."""
        parts = self.parts
        problem = self.parts.problem
        owned = list(problem.agents)
        nu = np.outer(-parts.h_of[owned], z)
        nu += parts.g_z
        nu -= np.outer(parts.multiples[owned], price)
        local = [np.zeros(k) for k in problem.p.values()]
        return Multipliers(price.copy(), local, [np.zeros(k) for k in problem.r.values()], nu)


class Priced(Protocol):
    """What the rule asks of an iteration."""

    def prices(self, state: Any) -> tuple[Array, Array, float]:
        """(price, sum of the g_i, sum of their norms)."""

    def energy(self, state: Any) -> float:
        """r'M^{-1}r as the method knows it."""


class DualStop(Stopping):
    """||error|| <= tol max(1, ||(x, z)||): looked for at every step, for nothing; proved once."""

    def __init__(self, bound: DualBound, tol: float) -> None:
        self.bound = bound
        self.tol = tol
        self._hope = math.inf  # estimates must be below before a proof is tried again
        self._stored = False  # the state comes from a file

    def memory(self) -> dict[str, Any]:
        """What a failed proof taught."""
        return {"hope": repr(self._hope)}

    def recall(self, memory: dict[str, Any]) -> None:
        """Continue; a wrong memory can delay a proof, not replace it."""
        self._hope = float(memory["hope"])
        if not self._hope >= 0:
            raise ValueError("the stored estimate is none")
        self._stored = True

    def due(self, iteration: int) -> bool:
        """Always."""
        return True

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """The method's own residual; when that meets the goal, the proof."""
        method: Priced = iteration  # type: ignore[assignment]
        seen = self.bound.estimate(method.energy(state))
        price, slope, _ = method.prices(state)
        z = self.bound.parts.shared(price, slope)  # alone: less than (x, z)
        size = float(np.linalg.norm(z))
        if not seen <= min(self.tol * max(1.0, size), self._hope):
            return Check(seen, False)
        found = self.final(iteration, state)
        self._hope = AGAIN * seen
        return found

    def final(self, iteration: Judged, state: Any) -> Check:
        """One proof."""
        method: Priced = iteration  # type: ignore[assignment]
        price, slope, slopes = method.prices(state)
        if self._stored:  # what is read is not believed; an observation, never charged
            slope, slopes = self.bound.slope_again()
        found = self.bound.at(price, slope, slopes)
        return Check(found.error, found.error <= self.tol * max(1.0, found.size), found)


class HasPrice(Protocol):
    """What :class:`SpacedDualStop` asks of an iteration."""

    def price(self, state: Any) -> Array:
        """The coupled multiplier, known to all."""


class SpacedDualStop(Stopping):
    """The same goal for a method that does not know its dual residual: proofs, well spaced.

    The first comes at EARLY of the ``planned`` iterations (at once after a ``warm`` start); the
    next where the rate planned, or a faster one seen, meets the goal.
    """

    def __init__(
        self, bound: DualBound, tol: float, slope: Rider, planned: float | None, *, warm: bool
    ) -> None:
        self.bound = bound
        self.tol = tol
        self._slope = slope
        plan = planned if planned is not None and math.isfinite(planned) else 0.0
        self._rate = math.log(1.0 / min(tol, 0.5)) / plan if plan else 0.0
        self._next = 1 if warm else max(FIRST_CHECK, round(EARLY * plan))
        self._last: tuple[int, float] | None = None
        self._stored = False

    def memory(self) -> dict[str, Any]:
        """The schedule and the last error."""
        return {"next": self._next, "rate": self._rate, "last": self._last}

    def recall(self, memory: dict[str, Any]) -> None:
        """Continue the schedule; no bound rests on it."""
        self._next, self._rate = int(memory["next"]), float(memory["rate"])
        if not 0 <= self._rate < math.inf:
            raise ValueError("the stored rate is none")
        last = memory["last"]
        self._last = None if last is None else (int(last[0]), float(last[1]))
        self._stored = True

    def due(self, iteration: int) -> bool:
        """By schedule."""
        return iteration >= self._next

    def check(self, iteration: Judged, state: Any, count: int) -> Check:
        """One proof."""
        found = self._prove(iteration, state)
        goal = self.tol * max(1.0, found.size)
        done = found.error <= goal
        if not done:
            self._next = count + self._ahead(count, found.error, goal)
        return Check(found.error, done, found)

    def final(self, iteration: Judged, state: Any) -> Check:
        """One proof."""
        found = self._prove(iteration, state)
        return Check(found.error, found.error <= self.tol * max(1.0, found.size), found)

    def _prove(self, iteration: Judged, state: Any) -> Proved:
        method: HasPrice = iteration  # type: ignore[assignment]
        if self._stored:
            slope, slopes = self.bound.slope_again()
        else:
            slope = self._slope.value[:-1]
            slopes = float(self._slope.value[-1])
        return self.bound.at(method.price(state), slope, slopes)

    def _ahead(self, count: int, error: float, goal: float) -> int:
        """Steps after which the goal should be met; never far ahead.

        A proof costs about what an iteration does, and errors fall unevenly: of the rate planned
        and the one seen, the faster.
        """
        last = self._last
        self._last = (count, error)
        rate = self._rate
        if last is not None and last[0] < count and 0 < error < last[1]:
            rate = max(rate, math.log(last[1] / error) / (count - last[0]))
        far = max(10, count)
        if not (rate > 0 and math.isfinite(error)):
            return min(far, max(3, count // 5))
        return min(far, max(1, math.ceil(math.log(error / goal) / rate)))
