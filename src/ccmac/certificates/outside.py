"""What rounding leaves of a dual vector outside Range K', and of a residual, in the user's rows.

A bound takes p in Range K' for granted:  p_x = A_i'y + C_i'kappa_i,  p_z = s (B_i'y + D_i'delta_i)
+ nu_i with sum nu_i = 0. What a run has added up is that but for rounding. With its own price y,
whatever that is,

    dist(p, Range K')^2 <= sum_i ||p_xi - A_i'y - C_i'kappa_i||^2 + ||sum_i (p_zi - s B_i'y)||^2 / n

for any kappa_i; all of it is evaluated in the long format (by operators in doubles), and its own
rounding added. Where there are equations D, which nobody knows together, or a lift, the last sum is
taken for rounding of its terms. Cost: 1 A, 1 B, 3 C; 4 + q floats of a reduction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg.blocks import frobenius, has_entries, multiply
from ccmac.linalg.extended import EPS_LONG, Long, norm, product, square
from ccmac.linalg.tolerances import EPS
from ccmac.realizations.base import Realized
from ccmac.workspace import Workspace


class Outside:
    """The user's rows on the agents owned here, beside the vectors of a realization."""

    def __init__(self, work: Workspace, realized: Realized) -> None:
        problem = self.problem = work.problem
        self.space = realized.space
        self.runtime = work.runtime
        self.s = realized.s
        self.local = work.local
        self.ledger = work.ledger
        self.system = realized.system
        self.blocks = [(a.A, a.B, a.C) for a in problem.agents.values()]
        self.sizes = [tuple(frobenius(block) for block in own) for own in self.blocks]
        self.right = [frobenius(agent.b) for agent in problem.agents.values()]
        self.measured = "D" not in problem.present and not self.space.lift
        # Of all agents: all must find the same bound.
        self.widest = int(work.curvature.d.max(initial=0)) + problem.q + self.space.lift
        self.many = self.runtime.n + self.widest + 8

    def tell(self, w: Array, left: Array, gradient: Array, price: Array) -> Array:
        """The agents' columns: squares of what is outside in x, of the terms in z, of the rounding
        of their coupled and of their local rows at w; then the terms in z.
        """
        present = self.problem.present
        space = self.space
        self.ledger.charge(**{u: k for u, k in {"A": 1, "B": 1, "C": 3}.items() if u in present})
        y = np.zeros(self.problem.m)
        if price.shape[1] and self.measured:
            y = self.system.common_price(price)[0, : self.problem.m]
        p: Any = left.astype(np.longdouble) - gradient
        rows = np.zeros((space.count, 4 + space.q))
        apart = [self._apart(k, space.x_of(p, k), y) for k in range(space.count)]
        lost = self._stripped([own for own, _ in apart])
        for k, (_, noise) in enumerate(apart):
            B, size_B, (x, z) = self.blocks[k][1], self.sizes[k][1], space.split(w)[k]
            image, unit = _priced(B, y)
            on_z = space.z(p)[k] - self.s * image
            off = unit * (len(y) + 3) * (self.s * size_B * norm(y) + norm(space.z(p)[k]))
            coupled = self.sizes[k][0] * norm(x) + self.s * size_B * norm(z) + self.right[k]
            rows[k, 0] = lost[k] + noise + off
            rows[k, 1] = square(on_z) + (square(space.y(p)[k]) if space.lift else 0.0)
            rows[k, 2] = (len(x) + len(z) + 2) * EPS * coupled
            rows[k, 3] = self._local_rounding(k, norm(x))
            rows[k, 4:] = on_z.astype(np.float64)
        with np.errstate(over="ignore"):  # of iterates that have blown up
            rows[:, [0, 2, 3]] **= 2
        return rows

    def heard(self, sums: Array) -> tuple[float, float]:
        """(dist(p, Range K'), what rounding may have taken from ||G w - g|| beside multiples of
        ||w||), at most, from the columns' sums.
        """
        x, z, coupled, local = (math.sqrt(max(v, 0.0)) for v in sums[:4])
        n = self.runtime.n
        unseen = math.sqrt(self.runtime.unseen(self.space.q + 4))
        # A sum of n doubles, and rows that were rounded to doubles before.
        mean = (n + 2) * EPS * z
        if self.measured:
            mean += norm(sums[4:]) / math.sqrt(n)
        else:
            mean += self.many * EPS * z
        return math.hypot(x, mean) + 2 * unseen, self.system.gain * coupled + local + 2 * unseen

    def _apart(self, k: int, p: Any, y: Array) -> tuple[Long, float]:
        """(p_xi - A_i'y, its rounding)."""
        A = self.blocks[k][0]
        size = self.sizes[k][0]
        if not self.measured:
            return np.zeros(len(p), dtype=np.longdouble), self.many * EPS * norm(p)
        image, unit = _priced(A, y)
        return p - image, unit * (len(y) + 3) * (size * norm(y) + norm(p))

    def _stripped(self, apart: list[Long]) -> list[float]:
        """||v_i - C_i'kappa_i|| for the best kappa_i, twice refined, rounding added."""
        noise = [0.0] * len(apart)
        for _ in range(0 if self.local.empty else 2):
            flat = np.concatenate([np.zeros(0), *(v.astype(np.float64) for v in apart)])
            for k, kappa in enumerate(self.local.multipliers(-flat)):
                (image, unit), size = _priced(self.blocks[k][2], kappa), self.sizes[k][2]
                noise[k] += unit * (len(kappa) + 3) * (size * norm(kappa) + norm(apart[k]))
                apart[k] = apart[k] - image
        return [norm(v) + off for v, off in zip(apart, noise, strict=True)]

    def _local_rounding(self, k: int, size: float) -> float:
        """Of P_C x - C^+ c, by the condition of C_i."""
        if self.local.empty:
            return 0.0
        if self.local.spaces:
            space = self.local.spaces[k]
            turn = float(space.singular[0] / space.singular[-1]) if space.rank else 0.0
        else:
            low, high = self.local.interval
            turn = math.sqrt(high / low)
        return (2 * self.widest + 8) * EPS * turn * size


def _priced(block: Any, price: Array) -> tuple[Any, float]:
    """(M'price, the unit of its rounding)."""
    if block is None:
        return np.zeros((), dtype=np.longdouble), EPS_LONG
    if has_entries(block):
        return product(block.T, price), EPS_LONG
    return multiply(block, price, adjoint=True).astype(np.longdouble), EPS
