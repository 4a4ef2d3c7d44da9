"""Condat-Vu: gradient steps in the primal, extrapolated steps in the dual.

    w+ = w - tau (grad Phi(w) + p),     p+ = p + sigma K'(K (2 w+ - w) - v),     p = K'y

Converges when 1/tau - sigma ||K||^2 >= L/2 (Condat 2013, Vu 2013). One parameter s splits the two:
sigma = s/||K||^2, tau = 0.999/(L/2 + s). The rule s = max(L/2, (mu L kappa(K'K))^{1/2}) makes the
contraction of the strongly convex primal and of the dual alike; ``balance`` multiplies it.
Cost: 1 gradient, 1 residual (2 affine calls, one averaging).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.methods.base import Model, State
from ccmac.methods.comparators.unnormalized import PrimalDual, prepare, residual_cost
from ccmac.methods.method import Context, Method, Prepared
from ccmac.realizations.base import Realized

Array = NDArray[np.float64]


class CondatVu(PrimalDual):
    """Gradient step, extrapolated dual step."""

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        w, p = state.vectors["w"], state.vectors["p"]
        ahead = w - self.tau * (model.objective.gradient(w) + p)
        if not model.system.empty:
            p += self.sigma * model.system.residual(2.0 * ahead - w)[0]
        state.vectors["w"] = ahead
        return state

    def iteration_cost(self, model: Model) -> Cost:
        """1 gradient and 1 residual."""
        return model.objective.cost + residual_cost(model)


def condat_vu(realized: Realized, balance: float) -> CondatVu:
    """Steps from the constants and the interval of the stack."""
    mu, L, interval = realized.objective.mu, realized.objective.L, realized.system.interval
    s = balance * max(L / 2, math.sqrt(mu * L * interval.ratio))
    return CondatVu(0.999 / (L / 2 + s), s / interval.high)


def prepare_condat_vu(ctx: Context) -> Prepared:
    """Condat-Vu on the plain averaged stack."""
    return prepare("condat-vu", ctx, "primal-dual steps without normalization", condat_vu)


CONDAT_VU = Method(
    "condat-vu",
    "Condat-Vu primal-dual gradient steps on the stack without normalization",
    frozenset({"smooth", "strongly convex"}),
    prepare_condat_vu,
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
