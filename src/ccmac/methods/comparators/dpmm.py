"""DPMM, the decentralized proximal method of multipliers (Gong and Zhang 2023), equality case.

On a coupled form with penalty gamma, proximal weight 1/alpha, L the graph Laplacian:

    y~ = y - gamma Lam
    u+ = argmin f'(u) + <y~, A'u - b'> + (gamma/2) ||A'u - b'||^2 + ||u - u_i||^2 / (2 alpha)
    y^ = y~ + gamma (A'u+ - b'),   Lam+ = Lam + beta L y^,   y+ = y^ + gamma (Lam - Lam+)

Converges for every gamma, alpha > 0 and 0 < beta < 1/(gamma lambda_max(L)); beta is 0.99 of that.
``pinned`` takes penalty (gamma in units of the balanced penalty) and proximal (1/alpha in units of
mu); ``tune="grid"`` races penalties. Cost: 1 argmin, 2 products with A', 1 round of m' floats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.methods.base import State
from ccmac.methods.borrowed import BorrowingIteration, certified_stop
from ccmac.methods.comparators.local_argmin import LocalArgmin
from ccmac.methods.comparators.penalty import GRID, balanced_penalty
from ccmac.methods.comparators.reductions import CoupledForm
from ccmac.methods.comparators.tuning import tuned
from ccmac.methods.method import Context, Method, Prepared

Array = NDArray[np.float64]
PROXIMAL = 0.01


class Dpmm(BorrowingIteration):
    """State: u (vector), the prices y and their disagreement Lam (rows of m' floats)."""

    name = "dpmm"

    def __init__(self, form: CoupledForm, gamma: float, weight: float) -> None:
        self.form, self.space, self.gamma = form, form.space, gamma
        self.argmin = LocalArgmin(form, gamma, weight)
        top = form.runtime.network.extremes[1] if form.runtime.n > 1 else 1.0
        self.beta = 0.99 / (gamma * top)

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """u at the user's point, prices zero (a warm dual has no place here)."""
        zero = np.zeros_like(self.form.right)
        return State({"u": self.form.start(x, z)}, {"y": zero, "Lam": zero.copy()})

    def step(self, state: State) -> State:
        """One iteration."""
        form, gamma = self.form, self.gamma
        y, Lam = state.rows["y"], state.rows["Lam"]
        ahead = y - gamma * Lam
        u = self.argmin(form.adjoint(ahead - gamma * form.right), state.vectors["u"])
        hat = ahead + gamma * (form.forward(u) - form.right)
        moved = self.beta * form.runtime.mix(hat) if form.runtime.n > 1 else np.zeros_like(hat)
        state.rows["y"], state.rows["Lam"] = hat - gamma * moved, Lam + moved
        state.vectors["u"] = u
        return state

    def point(self, state: State) -> tuple[Array, Array]:
        """Through the reduction."""
        return self.form.point(state.vectors["u"])

    @property
    def cost(self) -> Cost:
        """1 argmin, 2 products, 1 round."""
        message = self.form.runtime.mix_cost(self.form.width)
        return Cost(argmins=1) + 2 * self.form.product_cost + message


def prepare_dpmm(ctx: Context) -> Prepared:
    """On the reduction asked for (R1 by default)."""
    name = ctx.reduction or "R1"
    form = CoupledForm(ctx.problem, ctx.runtime, name, by_curvature=True)
    unit = balanced_penalty(form)
    mu, L = form.curvature()
    weight = float(ctx.pinned.get("proximal", PROXIMAL)) * (mu if mu > 0 else L)

    def build(penalty: float) -> Dpmm:
        return Dpmm(form, penalty * unit, weight)

    penalty = float(ctx.pinned.get("penalty", 1.0))
    if ctx.tune is not None and "penalty" not in ctx.pinned:
        penalty = tuned(ctx, GRID, build, "u")
    iteration = build(penalty)
    settings = {
        "reduction": form.name, "message floats": form.width, "penalty": penalty,
        "gamma": iteration.gamma, "beta": iteration.beta, "1/alpha": weight,
    }  # fmt: skip
    return Prepared(
        iteration, certified_stop(ctx, iteration), f"coupled {form.name}",
        "local argmins, one round an iteration", settings,
    )  # fmt: skip


DPMM = Method(
    "dpmm",
    "decentralized proximal method of multipliers: local argmins, one round an iteration",
    frozenset({"smooth", "strongly convex"}),
    prepare_dpmm,
    ("coupled R1", "coupled R2", "coupled R3"),
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
