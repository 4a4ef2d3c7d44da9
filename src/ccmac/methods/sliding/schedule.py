"""Steps and lengths of primal-dual sliding for a Lipschitz F.

Saddle form on balls:  min over B(x0, 2R), max over ||y|| <= Rl of F(x) + <K x - v, y>, with
||x0 - x*|| <= R, M >= ||F'|| on B(x*, 3R) and Rl = 2M/sigma (Lemma ns-dual-radius). Then

    eta = ||K|| Rl / R,   tau = ||K|| R / Rl,   T = max(1, ceil(32 M^2 / (eta eps)) - 3),
    om = 1 + 2 / (T (T + 3)),   N = ceil((1 + om) ||K|| R Rl / eps)

give F - F* + Rl ||K x - v|| <= eps after N outer steps of T subgradients each: 2N affine calls,
about 8 chi M R / eps of them, and about 64 (M R / eps)^2 subgradients. For a mu-strongly convex F
phases with R_{s+1} = R_s / 2 and eps_s = mu R_s^2 / 8 end after the first eps_s <= eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """One run of the sliding loop: ``outer`` steps with ``inner`` subgradients each."""

    radius: float
    dual_radius: float
    eta: float
    tau: float
    outer: int
    inner: int

    @property
    def affine(self) -> int:
        """Normalized calls: one forward and one adjoint an outer step."""
        return 2 * self.outer

    @property
    def subgradients(self) -> int:
        """In all."""
        return self.outer * self.inner


def balanced_phase(
    norm: float,
    sigma: float,
    lipschitz: float,
    radius: float,
    epsilon: float,
    *,
    thrift: float = 1.0,
) -> Phase:
    """The phase for ||K|| <= norm, sigma_min^+ >= sigma; ``thrift`` > 1 shortens both loops."""
    dual = 2.0 * lipschitz / sigma
    eta = norm * dual / radius
    tau = norm * radius / dual
    inner = max(1, math.ceil(32.0 * lipschitz**2 / (eta * epsilon * thrift)) - 3)
    growth = 1.0 + 2.0 / (inner * (inner + 3))
    outer = max(1, math.ceil((1.0 + growth) * norm * radius * dual / (epsilon * thrift)))
    return Phase(radius, dual, eta, tau, outer, inner)


def certified_phases(
    norm: float, sigma: float, lipschitz: float, radius: float, epsilon: float, mu: float
) -> list[Phase]:
    """One phase, or restarts when mu > 0 (the last one asks for eps, no more)."""
    single = [balanced_phase(norm, sigma, lipschitz, radius, epsilon)]
    if not mu > 0:
        return single
    phases = []
    size = radius
    while True:
        target = mu * size * size / 8.0
        phases.append(balanced_phase(norm, sigma, lipschitz, size, max(target, epsilon)))
        if target <= epsilon:
            return phases
        size /= 2.0
