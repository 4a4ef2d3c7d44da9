"""The log-free schedule of smooth-convex continuation (eq. cvxlf-schedule): no logarithm of T.

    B = max(200, 20 + (Lambda + 6)^2),   S = ceil log2(64 L R^2 / eps),   nu_s = L 2^{-s},
    k_s = ceil(log B / log(1 + 2^{-s/2}/24)),
    k = max(0, ceil log2(16 sqrt(2) (Lambda + 6) L R^2 / eps))

Totals (eq. cvxlf-ledger): 1 + A_tot gradients and d_RF (4 A_tot + 2k + 4) affine calls, where
A_tot = sum_s k_s = O(T), T = sqrt(L R^2 / eps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ccmac.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """Stage lengths ``lengths`` with regularizations ``nu``, then ``repairs`` residual filters."""

    L: float
    nu: tuple[float, ...]
    lengths: tuple[int, ...]
    repairs: int
    time: float  # T_cvx

    @property
    def steps(self) -> int:
        """A_tot."""
        return sum(self.lengths)

    @property
    def horizon(self) -> int:
        """Driver steps in all: A_tot + k + 1."""
        return self.steps + self.repairs + 1

    def gradients(self) -> int:
        """1 + A_tot."""
        return 1 + self.steps

    def affine(self, degree: int) -> int:
        """d_RF (4 A_tot + 2k + 4)."""
        return degree * (4 * self.steps + 2 * self.repairs + 4)

    def steps_of(self, stage: int) -> tuple[float, float, float]:
        """(tau, eta, theta) of a stage: L_in = 6L, mu_in = nu, correction in [1/2, 3]."""
        nu = self.nu[stage]
        root = math.sqrt(self.L * nu)
        return 0.5 * math.sqrt(nu / self.L), 1.0 / (12.0 * root), 4.0 * root


def certified_schedule(L: float, radius: float, epsilon: float, budget: float) -> Schedule:
    """The schedule for ||w0 - w*|| <= radius and sigma ||lambda*|| <= budget L radius."""
    size = L * radius * radius
    if not 0 < epsilon <= size:
        raise InputError(
            f"continuation: eps = {epsilon:.3g} must be positive and at most L R^2 = {size:.3g}; "
            "the start is already accurate, or the radius is too small"
        )
    constant = max(200.0, 20.0 + (budget + 6.0) ** 2)
    last = math.ceil(math.log2(64.0 * size / epsilon))
    lengths = tuple(
        math.ceil(math.log(constant) / math.log1p(2.0 ** (-s / 2) / 24.0)) for s in range(last + 1)
    )
    repairs = max(0, math.ceil(math.log2(16.0 * math.sqrt(2.0) * (budget + 6.0) * size / epsilon)))
    nu = tuple(L * 2.0**-s for s in range(last + 1))
    return Schedule(L, nu, lengths, repairs, math.sqrt(size / epsilon))


def gradient_steps(L: float, radius: float, epsilon: float) -> int:
    """N_AGD = ceil sqrt(2 L R^2 / eps) of the branch without equations (Algorithm cvx-agd)."""
    return max(1, math.ceil(math.sqrt(2.0 * L * radius * radius / epsilon)))
