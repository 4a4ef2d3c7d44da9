"""PDHG (Chambolle-Pock): proximal maps of the local objectives instead of gradients.

    w+ = prox_{tau Phi}(w - tau p),     p+ = p + sigma K'(K (2 w+ - w) - v),     p = K'y

Converges for tau sigma ||K||^2 <= 1; linearly when Phi is smooth and strongly convex. Rule:
tau = (mu L kappa(K'K))^{-1/2} / ``balance``, which makes the contraction of primal and dual alike.
The prox is that of sum_i f_i: a consensus augmentation plays no part in it.
Cost: 1 prox, 1 residual (2 affine calls, one averaging).
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
from ccmac.realizations.objective import ExecutionObjective

Array = NDArray[np.float64]


def local_prox(objective: ExecutionObjective, w: Array, step: float) -> Array:
    """prox of step sum_i f_i(t x~, s z~), agent by agent. Cost: 1 prox.

    In x = t x~ the step is t^2 step, in z = s z~ it is s^2 step.
    """
    objective.ledger.charge(proxes=1)
    space, t, s = objective.space, objective.t, objective.s
    out = np.zeros_like(w)
    for k, agent in enumerate(objective.problem.agents.values()):
        x, z = agent.objective.prox(
            t * space.x_of(w, k), s * space.z(w)[k], t * t * step, s * s * step
        )
        space.x_of(out, k)[...] = x / t
        space.z(out)[k] = z / s
    return out


class Pdhg(PrimalDual):
    """Proximal step, extrapolated dual step."""

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        w, p = state.vectors["w"], state.vectors["p"]
        ahead = local_prox(model.objective, w - self.tau * p, self.tau)
        if not model.system.empty:
            p += self.sigma * model.system.residual(2.0 * ahead - w)[0]
        state.vectors["w"] = ahead
        return state

    def iteration_cost(self, model: Model) -> Cost:
        """1 prox and 1 residual."""
        return Cost(proxes=1) + residual_cost(model)


def pdhg(realized: Realized, balance: float) -> Pdhg:
    """Steps from the constants and the interval of the stack."""
    mu, L, interval = realized.objective.mu, realized.objective.L, realized.system.interval
    tau = 1.0 / (balance * math.sqrt(mu * L * interval.ratio))
    return Pdhg(tau, 1.0 / (tau * interval.high))


def prepare_pdhg(ctx: Context) -> Prepared:
    """PDHG on the plain averaged stack."""
    return prepare("pdhg", ctx, "proximal maps of the local objectives", pdhg)


PDHG = Method(
    "pdhg",
    "primal-dual hybrid gradients: proximal maps of the local objectives, no normalization",
    frozenset({"smooth", "strongly convex", "prox"}),
    prepare_pdhg,
    suggestion="condat-vu (smooth), cross-continuation or cross-sliding",
)
