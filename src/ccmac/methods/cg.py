"""cross-cg: conjugate gradients on the two-channel dual of a quadratic problem.

With T_i the local inverse under C_i and D_i, lambda the coupled price and nu_i (sum zero) the
consensus prices, the dual system is

    sum_i [A_i B_i] T_i h_i = r_lambda,   (I - Pi)(T_i h_i)_z = r_nu,   h_i = (A_i'l, B_i'l + n_i)

preconditioned by diag(I, omega I), omega = [tr sum_i K_i T_i K_i' / m] / [mean_i tr (T_i)_zz / q],
which brings both channels to one scale (traces by random probes). In the one-reduction form of CG
both inner products are known from vectors that exist before the averaging, so they travel with it:

    y = (r_l, omega r_n),  t_i = T_i h_i(y),  AVERAGE (K_i t_i, (t_i)_z, <y, r>, <h, t>)
    beta = g/g_old,  alpha = g/(d - beta g/alpha_old),  s = q + beta s,  r -= alpha s,
    t~ = t + beta t~,  u -= alpha t~

so that u_i stays the exact local minimiser at the current prices. The first iteration computes u at
the starting prices and its residual. Needs quadratic, strongly convex objectives whose Hessians may
be factorized. Cost: 1 argmin (a local solve), 2 A, 2 B, one averaging, one riding reduction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.error_bound import Dual
from ccmac.ledger import Cost
from ccmac.methods.base import State
from ccmac.methods.borrowed import BorrowingIteration, certified_stop
from ccmac.methods.dual_channels import channel_curvatures, split_vector
from ccmac.methods.local.inverse import LocalInverses
from ccmac.methods.method import Context, Method, Prepared
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space, row_dots
from ccmac.workspace.blocks import right_hand_sides
from ccmac.workspace.coupling import Coupling
from ccmac.workspace.curvature import CurvatureTable

Array = NDArray[np.float64]
GROWTH = 1e8
SETTLED = 1e-30


class DualConjugateGradients(BorrowingIteration):
    """State: u, t~ (vectors), residuals, price and directions (rows), g, alpha (scalars)."""

    name = "cross-cg"

    def __init__(self, problem: Problem, runtime: Runtime, seed: int = 0) -> None:
        self.problem, self.runtime = problem, runtime
        self.space = Space(runtime, list(problem.d.values()), problem.q)
        self.coupling = Coupling(problem, runtime)
        self.local = LocalInverses(problem, self.space, CurvatureTable(problem, runtime))
        self._right = right_hand_sides(problem).b[:, : self.coupling.width]
        coupled, shared = channel_curvatures(self.space, self.coupling, self._energies, seed)
        self.omega = coupled / shared

    def _energies(self, h: Array) -> Array:
        return self.space.partial_dots(h, self.local.apply(h))[:, 0]

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """The user's point; the prices of a warm start enter the first iteration."""
        space, width = self.space, self.coupling.width
        first = space.zeros() if dual is None else dual[: space.z_end].copy()
        common = np.zeros((1, width))
        copies = np.zeros((space.count, space.q))
        return State(
            {"u": split_vector(space, x, z), "t": first},
            {
                "r_l": common, "s_l": common.copy(), "r_n": copies, "s_n": copies.copy(),
                "price": common.copy(), "d_l": common.copy(),
            },
            {"g": 0.0, "alpha": 0.0, "first": 0.0, "least": np.inf, "count": 0.0, "over": 0.0},
        )  # fmt: skip

    def step(self, state: State) -> State:
        """The local minimisers first, then one step of CG."""
        if state.scalars["count"] == 0.0:
            u = self.local.minimisers(state.vectors["t"])
            coupled, deviation = self._image(u, self._right)
            state.vectors = {"u": u, "t": self.space.zeros()}
            state.rows |= {"r_l": coupled, "r_n": deviation}
        else:
            self._conjugate(state)
        state.scalars["count"] += 1.0
        return state

    def _image(self, u: Array, right: Array | None = None) -> tuple[Array, Array]:
        """(sum_i K_i u_i - b_i, z_i - mean z): one averaging."""
        z = self.space.z(u)
        coupled, copies = self.coupling.contributions(self.space.x(u), z, with_z=True)
        if right is not None:
            coupled = coupled - right
        mean, mean_z = self.runtime.combine([coupled, copies])
        return mean * self.problem.n, z - mean_z

    def _conjugate(self, state: State) -> None:
        rows, scalars = state.rows, state.scalars
        r_l, r_n = rows["r_l"], rows["r_n"]
        h = self.space.zeros()
        if not self.coupling.empty:
            h = split_vector(self.space, *self.coupling.adjoint(r_l))
        self.space.z(h)[...] += self.omega * r_n
        t = self.local.apply(h)
        q_l, q_n = self._image(t)
        g, d = self.runtime.total(self._products(r_l, r_n, h, t), riding=True)
        scalars["least"] = min(scalars["least"], float(g))
        scalars["first"] = scalars["first"] or float(g)
        # g never exceeds kappa times an earlier g, but for rounding or equations in conflict.
        beta = g / scalars["g"] if scalars["g"] else 0.0
        # Curvature along the new direction: it vanishes where equations in conflict pull.
        curvature = d - beta * g / scalars["alpha"] if beta else d
        settled = g <= SETTLED * scalars["first"] or curvature <= SETTLED * d
        if settled or g > GROWTH * scalars["least"]:
            scalars["over"] = 1.0
            return
        alpha = g / curvature
        rows["s_l"], rows["s_n"] = q_l + beta * rows["s_l"], q_n + beta * rows["s_n"]
        rows["d_l"] = r_l + beta * rows["d_l"]
        rows["price"] = rows["price"] + alpha * rows["d_l"]
        direction = t + beta * state.vectors["t"]
        state.vectors["t"] = direction
        state.vectors["u"] -= alpha * direction
        rows["r_l"], rows["r_n"] = r_l - alpha * rows["s_l"], r_n - alpha * rows["s_n"]
        scalars["g"], scalars["alpha"] = float(g), float(alpha)

    def _products(self, r_l: Array, r_n: Array, h: Array, t: Array) -> Array:
        """Per agent <y, r> (its share of the common part) and <h, t>."""
        share = float(r_l[0] @ r_l[0]) / self.problem.n
        own = share + self.omega * row_dots(r_n, r_n)
        return np.stack([own, self.space.partial_dots(h, t)[:, 0]], axis=1)

    def point(self, state: State) -> tuple[Array, Array]:
        """The local minimisers at the current prices."""
        return self.space.x(state.vectors["u"]), self.space.z(state.vectors["u"])

    def dual(self, state: State, realized: Realized) -> Dual | None:
        """u minimises the Lagrangian: its gradient is -K'lambda, unless curvature was shifted."""
        if self.local.shifted or realized is not self.realized:
            return None
        return Dual(None, state.rows["price"])

    def finished(self, state: State) -> bool:
        """Nothing is left to reduce, or the residual grows: rounding, or equations in conflict."""
        return state.scalars["over"] > 0

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has no adjoint products and no reduction)."""
        products = 2 * self.coupling.product_cost()
        message = self.runtime.average_cost(self.coupling.width + self.space.q)
        return Cost(argmins=1) + products + message + self.runtime.total_cost(2, riding=True)


def prepare_cg(ctx: Context) -> Prepared:
    """One reduction for omega; a realization only when a certificate is wanted."""
    iteration = DualConjugateGradients(ctx.problem, ctx.runtime, ctx.seed)
    return Prepared(
        iteration, certified_stop(ctx, iteration), "averaged", "quadratic, with local solves",
        {"omega": iteration.omega},
    )  # fmt: skip


CROSS_CG = Method(
    "cross-cg",
    "conjugate gradients on the two-channel dual, local Hessian solves, one averaging a step",
    frozenset({"smooth", "strongly convex", "quadratic"}),
    prepare_cg,
    suggestion="cross-apapc",
)
