"""Tracking-ADMM (Falsone, Notarnicola, Notarstefano, Prandini 2020).

Agents track the mean violation d of the coupled equation and agree on its price lam by mixing with
a doubly stochastic M (Metropolis weights; mixing with a Laplacian diverges):

    (dl, el) = M (d, lam)
    u+  = argmin f'(u) + <el, A'u> + (c/2) ||A'u - A'u_i + dl||^2
    d+  = dl + A'u+ - A'u,     lam+ = el + c d+

d starts at A'u - b', or the tracking is biased. Converges for every c > 0 on convex objectives; no
rate is known, linear convergence is seen. ``pinned`` takes penalty (c in units of the balanced
penalty); ``tune="grid"`` races penalties. Cost: 1 argmin, 2 products with A', 1 round of 2m'
floats.
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


class TrackingAdmm(BorrowingIteration):
    """State: u (vector), its image A'u and the pair (d, lam) that travels (rows)."""

    name = "tracking-admm"

    def __init__(self, form: CoupledForm, c: float) -> None:
        self.form, self.space, self.c = form, form.space, c
        self.argmin = LocalArgmin(form, c)
        self.mixing = form.runtime.network.metropolis()

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """u at the user's point; the first image is one product, charged where it is made."""
        u = self.form.start(x, z)
        image = self.form.forward(u)
        pair = np.concatenate([image - self.form.right, np.zeros_like(image)], axis=1)
        return State({"u": u}, {"image": image, "pair": pair})

    def step(self, state: State) -> State:
        """One iteration."""
        form, image, width = self.form, state.rows["image"], self.form.width
        pair = state.rows["pair"]
        mixed = form.runtime.mix(pair, self.mixing) if form.runtime.n > 1 else pair.copy()
        d, lam = mixed[:, :width], mixed[:, width:]
        d -= image
        u = self.argmin(form.adjoint(lam + self.c * d), state.vectors["u"])
        image = form.forward(u)
        d += image
        lam += self.c * d
        return State({"u": u}, {"image": image, "pair": mixed})

    def point(self, state: State) -> tuple[Array, Array]:
        """Through the reduction."""
        return self.form.point(state.vectors["u"])

    @property
    def cost(self) -> Cost:
        """1 argmin, 2 products, 1 round."""
        message = self.form.runtime.mix_cost(2 * self.form.width, self.mixing)
        return Cost(argmins=1) + 2 * self.form.product_cost + message


def prepare_tracking(ctx: Context) -> Prepared:
    """On the reduction asked for (R1 by default)."""
    name = ctx.reduction or "R1"
    form = CoupledForm(ctx.problem, ctx.runtime, name, by_curvature=True)
    unit = balanced_penalty(form)

    def build(penalty: float) -> TrackingAdmm:
        return TrackingAdmm(form, penalty * unit)

    penalty = float(ctx.pinned.get("penalty", 1.0))
    if ctx.tune is not None and "penalty" not in ctx.pinned:
        penalty = tuned(ctx, GRID, build, "u")
    iteration = build(penalty)
    settings = {
        "reduction": form.name, "message floats": 2 * form.width, "penalty": penalty,
        "c": iteration.c,
    }  # fmt: skip
    return Prepared(
        iteration, certified_stop(ctx, iteration), f"coupled {form.name}",
        "local argmins, one round an iteration", settings,
    )  # fmt: skip


TRACKING_ADMM = Method(
    "tracking-admm",
    "ADMM with tracked violations: local argmins, one round an iteration",
    frozenset({"smooth", "strongly convex"}),
    prepare_tracking,
    ("coupled R1", "coupled R2", "coupled R3"),
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
