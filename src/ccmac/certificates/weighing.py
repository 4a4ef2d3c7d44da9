"""What a multiplier of all equations proves, where every agent knows its own rows alone.

K'lambda and lambda'v are taken in extended precision from the agents' own blocks. Against the claim
count what rounding may have done there and in the sums, and the grain of masked ones
(:mod:`ccmac.runtime.masked`). Cost: one averaging of 2 q + 8 floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.infeasibility import VISIBLE, Infeasibility, described
from ccmac.certificates.multipliers import Recovery
from ccmac.inputs import Array
from ccmac.linalg.blocks import has_entries, multiply
from ccmac.linalg.extended import (
    EPS_LONG,
    Long,
    dot,
    halves,
    norm,
    product,
    rounded_sum,
    square,
    summed,
)
from ccmac.linalg.tolerances import EPS
from ccmac.runtime.notes import heard_by_all


@dataclass(frozen=True)
class Weighed:
    """lambda'v, a lower bound of its size, an upper bound of ||K'lambda||, the size of a point,
    ||lambda||, and what rounding lambda to doubles may leave of K'lambda.
    """

    value: float
    sure: float
    defect: float
    size: float
    length: float
    rounding: float = math.inf


@dataclass(frozen=True)
class Lambda:
    """Multipliers: coupled ones, which all know, and those of the agents owned here."""

    coupled: Array
    local: list[Array]
    shared: list[Array]


class Weighing:
    """Multipliers in the blocks of a :class:`Recovery`."""

    def __init__(self, recovery: Recovery) -> None:
        self.user = recovery
        self.problem = recovery.problem
        self.runtime = recovery.runtime

    def local(self, coupled: Array) -> list[Array]:
        """kappa_i that cancel A_i'price in the rows of the C_i, then what rounding left of it."""
        found = [np.zeros(k) for k in self.problem.p.values()]
        for _ in range(2):
            left = [self.on_x(k, coupled, kappa)[0] for k, kappa in enumerate(found)]
            flat = np.concatenate([np.zeros(0), *left]).astype(np.float64)
            more = self.user.local.multipliers(flat)
            found = [kappa + rest for kappa, rest in zip(found, more, strict=True)]
        return found

    def on_x(self, k: int, coupled: Array, kappa: Array) -> tuple[Long, float]:
        """(A_i'price + C_i'kappa_i of one agent, what rounding may have done to its norm)."""
        i, agent = list(self.problem.agents.items())[k]
        return _image([(agent.A, coupled), (agent.C, kappa)], self.problem.d[i])

    def on_z(self, k: int, coupled: Array, delta: Array) -> tuple[Long, float]:
        """The same for B_i'price + D_i'delta_i, which the agents' sums cancel."""
        agent = list(self.problem.agents.values())[k]
        return _image([(agent.B, coupled), (agent.D, delta)], self.problem.q)

    def weighed(self, prices: Lambda, squares: list[float]) -> Weighed:
        """One averaging; ``squares`` are the agents' parts of the square of a point's size."""
        rows = [self._share(prices, k, own) for k, own in enumerate(squares)]
        table = heard_by_all(self.runtime, np.stack(rows))
        q = self.problem.q
        many = 4 * self.problem.n
        grain = self.runtime.averaging.grain
        rough = EPS if len(table) == 1 else EPS_LONG  # sums of rows that nobody sees are doubles
        on_z = summed(table[:, : 2 * q])
        value = rounded_sum(table[:, 2 * q : 2 * q + 2].flat)
        sizes = np.add.reduce(np.abs(table[:, : 2 * q + 2]))
        on_x, on_x2, off_x, off_z, size, length = np.add.reduce(table[:, 2 * q + 2 :]).tolist()
        rounding = EPS / EPS_LONG * (off_x + off_z) + 4 * (1 + math.sqrt(q)) * grain
        off_z += many * rough * norm(sizes[:-2]) + 2 * (1 + math.sqrt(q)) * grain
        off = 2 * grain + (4 * EPS * float(sizes[-2:].sum()) if len(table) == 1 else 0.0)
        on_x = min(on_x + grain, math.sqrt(on_x2 + grain))
        defect = math.hypot(on_x, norm(on_z) + off_z) * (1 + many * EPS)
        length = math.sqrt(max(length, 0.0) + square(prices.coupled))
        sure = (abs(value) - off) * (1 - 4 * EPS)
        size = math.sqrt(max(size, 0.0))
        return Weighed(value, sure, defect, size, length, rounding)

    def _share(self, prices: Lambda, k: int, own: float) -> Array:
        """Of one agent: K'lambda on z and lambda'v in halves; numbers that are summed."""
        agent = list(self.problem.agents.values())[k]
        coupled = prices.coupled
        kappa = prices.local[k]
        delta = prices.shared[k]
        on_z, off_z = self.on_z(k, coupled, delta)
        on_x, off_x = self.on_x(k, coupled, kappa)
        sides = (agent.b, coupled), (agent.c, kappa), (agent.e, delta)
        right = [np.zeros(len(price)) if v is None else v for v, price in sides]
        value = dot(np.concatenate(right), np.concatenate([coupled, kappa, delta]))
        length = norm(on_x) + off_x
        numbers = [length, length**2, off_x, off_z, own, square(kappa) + square(delta)]
        return np.concatenate([halves(on_z), value, numbers])

    def certificate(self, prices: Lambda, seen: Weighed, norms: dict[str, float]) -> Infeasibility:
        """In words; the value is the lower bound, so that the radius is one. One averaging."""
        whole = VISIBLE * seen.length
        agents = list(self.problem.agents)
        own = zip(prices.local, prices.shared, strict=True)
        takes_part = [[norm(kappa) > whole, norm(delta) > whole] for kappa, delta in own]
        everybody = self.runtime.gather(np.array(takes_part, dtype=np.float64))
        weights = {
            "coupled": [0] if norm(prices.coupled) > whole else [],
            "C": [int(i) for i in np.flatnonzero(everybody[:, 0])],
            "D": [int(i) for i in np.flatnonzero(everybody[:, 1])],
        }
        return Infeasibility(
            described(weights, norms),
            prices.coupled,
            {i: v for i, v in zip(agents, prices.local, strict=True) if v.size},
            {i: v for i, v in zip(agents, prices.shared, strict=True) if v.size},
            seen.defect,
            math.copysign(seen.sure, seen.value),
        )


def _image(pairs: list[tuple[Any, Array]], size: int) -> tuple[Long, float]:
    """(sum of M'price, at most what rounding did to its norm); of operators row by row."""
    total = np.zeros(size, dtype=np.longdouble)
    spread = np.zeros(size)
    for block, price in pairs:
        if block is None:
            continue
        if has_entries(block):
            total += product(block.T, price)
            spread += np.asarray(abs(block).T @ np.abs(price))
            continue
        for j in np.flatnonzero(price):
            row = multiply(block, (np.arange(len(price)) == j).astype(np.float64), adjoint=True)
            total += row.astype(np.longdouble) * price[j]
            spread += np.abs(row * price[j])
    rows = sum(len(price) for _, price in pairs)
    return total, (rows + 4) * EPS_LONG * norm(spread)
