"""PAPC: a projected gradient step whose projection is one dual step.

    h = w - tau grad Phi(w),   p+ = p + sigma K'(K (h - tau p) - v),   w+ = h - tau p+,   p = K'y

Converges for tau < 2/L and sigma tau ||K||^2 <= 1, linearly at max{(1 - tau mu)^2, 1 - lambda_-/
lambda_+} when Phi is strongly convex. Rule: tau = 2/(L + mu) (times ``balance``, kept below 2/L),
sigma = 1/(tau ||K||^2). Cost: 1 gradient, 1 residual (2 affine calls, one averaging).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.methods.base import Model, State
from ccmac.methods.comparators.unnormalized import PrimalDual, prepare, residual_cost
from ccmac.methods.method import Context, Method, Prepared
from ccmac.realizations.base import Realized

Array = NDArray[np.float64]


class Papc(PrimalDual):
    """Gradient step, projection by one dual step."""

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        w, p = state.vectors["w"], state.vectors["p"]
        descent = w - self.tau * model.objective.gradient(w)
        if not model.system.empty:
            p += self.sigma * model.system.residual(descent - self.tau * p)[0]
        state.vectors["w"] = descent - self.tau * p
        return state

    def iteration_cost(self, model: Model) -> Cost:
        """1 gradient and 1 residual."""
        return model.objective.cost + residual_cost(model)


def papc(realized: Realized, balance: float) -> Papc:
    """Steps from the constants and the interval of the stack."""
    mu, L = realized.objective.mu, realized.objective.L
    tau = min(balance * 2.0 / (L + mu), 1.999 / L)
    return Papc(tau, 1.0 / (tau * realized.system.interval.high))


def prepare_papc(ctx: Context) -> Prepared:
    """PAPC on the plain averaged stack."""
    return prepare("papc", ctx, "proximal alternating predictor-corrector, not accelerated", papc)


PAPC = Method(
    "papc",
    "proximal alternating predictor-corrector on the stack without normalization",
    frozenset({"smooth", "strongly convex"}),
    prepare_papc,
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
