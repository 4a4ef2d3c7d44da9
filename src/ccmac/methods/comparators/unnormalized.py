"""What the classical primal-dual methods run on: the stack without normalizers.

K = [(2/(a+b))^{1/2} Pi H P_kerC; P_C; I - Pi; ...] of the averaged realization: the coupled row is
only divided by a number, so every residual costs one averaging. The block scale of z is the one the
planner finds best at this normalization (``pinned={"scale": ...}`` fixes it). The methods need K
only through K'(K w - v), and keep p = K'y instead of the dual variable y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.error_bound import Certifier
from ccmac.certificates.stopping import CertifiedStop
from ccmac.ledger import Cost
from ccmac.methods.base import Model, ModelIteration, Solver, State
from ccmac.methods.comparators.tuning import tuned
from ccmac.methods.cross_apapc import averaged_realization
from ccmac.methods.method import Context, Prepared
from ccmac.realizations.base import Realized

Array = NDArray[np.float64]
PLAIN = {"normalizer": "semi-iteration", "inner": 1, "outer": 1}
OWN = ("balance",)
GRID = (1.0, 0.1, 0.3, 3.0, 10.0)
WIDEN_LIMIT = 8


@dataclass(frozen=True)
class PrimalDual(Solver):
    """Primal step ``tau``, dual step ``sigma``; the state is w and p."""

    tau: float
    sigma: float

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """w = w0, p = 0 or the warm dual."""
        return State({"w": w0.copy(), "p": np.zeros_like(w0) if p is None else p.copy()})


def residual_cost(model: Model) -> Cost:
    """One residual, if there are equations."""
    return Cost() if model.system.empty else model.system.cost


def unnormalized(ctx: Context) -> Realized:
    """The plain stack of the averaged realization (setup: one Lanczos run)."""
    ours = {k: v for k, v in ctx.pinned.items() if k not in OWN}
    return averaged_realization(replace(ctx, pinned=ours), PLAIN)


def prepare(
    name: str, ctx: Context, why: str, solver: Callable[[Realized, float], Solver]
) -> Prepared:
    """``solver(realized, balance)`` on the plain stack; ``balance`` scales the step rule.

    ``tune="grid"`` lets :data:`GRID` race (:mod:`tuning`); the trials are charged to setup.
    """
    realized = unnormalized(ctx)
    builder = _Builder(name, ctx, why, solver, realized)
    balance = float(ctx.pinned.get("balance", 1.0))
    if ctx.tune is not None and "balance" not in ctx.pinned:
        balance = tuned(ctx, GRID, builder.iteration, "w")
    return builder.prepared(balance)


@dataclass(frozen=True)
class _Builder:
    """Iterations on one realized stack, for every ``balance`` and after every widening."""

    name: str
    ctx: Context
    why: str
    solver: Callable[[Realized, float], Solver]
    realized: Realized

    def iteration(self, balance: float) -> ModelIteration:
        """The method with its rule multiplied by ``balance``."""
        return ModelIteration(self.name, self.solver(self.realized, balance), self.realized)

    def prepared(self, balance: float, widened: int = 0) -> Prepared:
        """Stopped by the stack's own certificate."""
        realized, interval = self.realized, self.realized.system.interval
        stopping = None
        if not self.ctx.reference:
            stopping = CertifiedStop(Certifier(realized), self.ctx.tol)
        iteration = self.iteration(balance)
        settings = {
            "scale": realized.s,
            "balance": balance,
            "interval": (interval.low, interval.high),
            **vars(iteration.solver),
        }
        found = {
            "interval": [interval.low, interval.high],
            "source": interval.source,
            "mu": realized.objective.mu,
            "L": realized.objective.L,
            "widened": widened,
        }
        widen = partial(self._wider, balance, widened) if widened < WIDEN_LIMIT else None
        return Prepared(
            iteration, stopping, "averaged", self.why, settings, certificates=found, widen=widen
        )

    def _wider(self, balance: float, widened: int) -> Prepared:
        self.realized.system.widen()
        return self.prepared(balance, widened + 1)
