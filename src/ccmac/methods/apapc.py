"""Cross-APAPC (Algorithm cross-apapc): accelerated primal-dual steps with a Chebyshev correction.

    w_g   = tau w + (1 - tau) w_f
    w_1/2 = [w - eta (grad Phi(w_g) - mu w_g + p)] / (1 + eta mu)
    r     = theta [w_1/2 - Cheb_N(w_1/2)],   p += r,   w+ = w_1/2 - eta/(1 + eta mu) r
    w_f   = w_g + 2 tau/(2 - tau) (w+ - w)

Needs Phi smooth and strongly convex. ``steps="paper"`` takes tau, eta, theta for the correction's
spectrum [11/15, 19/15]; ``steps="interval"`` takes them from the interval of the polynomial that
is really applied, so that every degree is safe. Cost: 1 gradient, 2N affine calls. The energy
contracts by (1 + min(1/sqrt(kappa chi), 1/chi)/4)^{-1}, chi the ratio of the correction's
interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.filters import chebyshev_correction, correction_interval
from ccmac.methods.base import Model, Solver, State
from ccmac.realizations.averaged.twin import apapc_steps

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Apapc(Solver):
    """One solver, two normalizations: cross- and joint-apapc differ only in the system."""

    degree: int = 1
    steps: str = "interval"

    def parameters(self, model: Model) -> tuple[float, float, float]:
        """(tau, eta, theta)."""
        mu, L = model.objective.mu, model.objective.L
        if model.system.empty:
            tau = min(1.0, 0.5 * math.sqrt(mu / L))
            return tau, 1.0 / (4 * tau * L), 0.0
        if self.steps == "paper":
            tau = min(1.0, 0.5 * math.sqrt(19.0 / 15.0 * mu / L))
            eta = 1.0 / (4.0 * tau * L)
            return tau, eta, 15.0 / (19.0 * eta)
        interval = model.system.interval
        low, high = correction_interval(interval.low, interval.high, self.degree)
        return apapc_steps(mu, L, low, high)

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """w = w_f = w0, p = 0 (or the warm dual, which must lie in Range K')."""
        dual = np.zeros_like(w0) if p is None else p.copy()
        price = model.system.zero_price()
        return State({"w": w0.copy(), "w_f": w0.copy(), "p": dual}, {"price": price})

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        tau, eta, theta = self.parameters(model)
        mu, system = model.objective.mu, model.system
        w, w_f, p = state.vectors["w"], state.vectors["w_f"], state.vectors["p"]
        w_f *= 1.0 - tau
        w_g = w_f
        w_g += tau * w
        half = model.objective.gradient(w_g)
        half += p
        half *= -eta
        half += w
        half += (eta * mu) * w_g
        half *= 1.0 / (1.0 + eta * mu)
        if not system.empty:
            interval = system.interval
            moved, price = chebyshev_correction(
                system.residual, half, interval.low, interval.high, self.degree
            )
            moved *= theta
            p += moved
            state.rows["price"] = state.rows["price"] + theta * price
            moved *= eta / (1.0 + eta * mu)
            half -= moved
        # w_f+ = w_g + 2 tau/(2 - tau) (w+ - w); the array of w becomes free.
        w *= -1.0
        w += half
        w *= 2.0 * tau / (2.0 - tau)
        w_g += w
        state.vectors["w"], state.vectors["w_f"] = half, w_g
        return state

    def iteration_cost(self, model: Model) -> Cost:
        """1 gradient and N residuals."""
        inner = Cost() if model.system.empty else self.degree * model.system.cost
        return model.objective.cost + inner
