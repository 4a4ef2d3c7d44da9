"""cross-lbfgs: quasi-Newton steps on the two-channel dual of a smooth strongly convex problem.

With lambda the coupled price and nu_i (sum zero) the consensus prices, u_i = (x_i, z_i) the local
minimiser under C_i and D_i at h_i = (A_i'l, B_i'l + nu_i), the negative dual

    phi(l, nu) = -sum_i [min_u f_i(u) + <h_i, u>] + <l, sum_i b_i>

has the gradient -(sum_i A_i x_i + B_i z_i - b_i,  z_i - mean z). nu is measured in units of
sqrt(omega), which brings both channels to one scale (dual_channels, learnt at the start). The
direction is that of L-BFGS. For directions v with sum_i v_i = 0,

    sum_i <z_i - mean z, v_i> = sum_i <z_i, v_i>

is known before the averaging, and squares follow from sum_i ||z_i||^2 and the mean, with z shifted
by the last mean against cancellation. So every inner product travels with the vectors:

    d = -H g,  u_i = u_i(h + alpha K'd),  AVERAGE (K_i u_i - b_i, z_i, products, value)

A trial is taken when phi falls enough (Armijo); where rounding hides that, when the slope along d
falls enough. Taken or not, it shows the curvature between two points and joins the history; after
the second refusal in a row steps are shortened as well. Cost of a trial: 1 argmin, 2 A, 2 B, one
averaging, two riding reductions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.error_bound import Dual
from ccmac.ledger import Cost
from ccmac.methods.base import State
from ccmac.methods.borrowed import BorrowingIteration, certified_stop
from ccmac.methods.dual_channels import channel_curvatures, split_vector
from ccmac.methods.history import GRADIENT, MEMORY, SIZE, direction, replaced
from ccmac.methods.local.minimum import LocalMinimisers
from ccmac.methods.method import Context, Method, Prepared
from ccmac.problem import Problem
from ccmac.realizations.base import Realized
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.workspace.blocks import right_hand_sides
from ccmac.workspace.coupling import Coupling
from ccmac.workspace.curvature import CurvatureTable

Array = NDArray[np.float64]
PROBE = 1e-4  # displacement of the minimisers when curvature is probed, at most
ARMIJO = 1e-4
ROUNDING = 1e-10  # values closer than this (relative) do not decide
CURVATURE = 1e-8  # <s, y> below this share of |s||y|: condition 1e16, the dual has no curvature
TRIALS = 20  # rejected in a row: nothing is left to gain
SETTLED = 1e-30
GROWTH = 1e8
FLATTER = 0.8


class DualLbfgs(BorrowingIteration):
    """State: u and h (vectors), price, mean z, the history and its Gram matrix (rows), scalars."""

    name = "cross-lbfgs"

    def __init__(self, problem: Problem, runtime: Runtime, seed: int = 0) -> None:
        self.problem, self.runtime = problem, runtime
        self.space = Space(runtime, list(problem.d.values()), problem.q)
        self.coupling = Coupling(problem, runtime)
        table = CurvatureTable(problem, runtime)
        self.local = LocalMinimisers(problem, self.space, table)
        self._right = right_hand_sides(problem).b[:, : self.coupling.width]
        self._probe = PROBE * self._strong_convexity(table)
        origin = self.space.zeros()
        self._rest, _ = self.local.minimise(origin, origin)
        coupled, shared = channel_curvatures(self.space, self.coupling, self._energies, seed)
        self.omega, self.curvature = coupled / shared, coupled
        self._root = math.sqrt(self.omega)

    @staticmethod
    def _strong_convexity(table: CurvatureTable) -> float:
        known = [table.block(1, "min"), float(np.mean(table.rows[:, 3])), table.block(5, "min")]
        return min(value for value in known if 0 < value < math.inf)

    def _energies(self, h: Array) -> Array:
        """<h, T h> by a difference of minimisers: T h = -(u(eps h) - u(0))/eps."""
        u, _ = self.local.minimise(self._probe * h, self._rest)
        return self.space.partial_dots(h, (self._rest - u) / self._probe)[:, 0]

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """The user's point; the prices of a warm start enter the first iteration."""
        space, count = self.space, self.space.count
        h = space.zeros() if dual is None else dual[: space.z_end].copy()
        width, q = self.coupling.width, space.q
        return State(
            {"u": split_vector(space, x, z), "h": h},
            {
                "price": np.zeros((1, width)), "mean": np.zeros((1, q)),
                "basis_l": np.zeros((1, SIZE, width)), "basis_n": np.zeros((count, SIZE, q)),
                "gram": np.zeros((1, SIZE, SIZE)), "inner": np.zeros((count, 1)),
            },
            {
                "count": 0.0, "pairs": 0.0, "alpha": 1.0, "value": 0.0, "first": 0.0,
                "least": np.inf, "rejected": 0.0, "over": 0.0,
            },
        )  # fmt: skip

    def step(self, state: State) -> State:
        """The local minimisers at the first prices, then one trial a step."""
        scalars = state.scalars
        if scalars["count"] == 0.0:
            zero = (
                np.zeros_like(state.rows["price"]),
                np.zeros_like(self.space.z(state.vectors["u"])),
            )
            trial = self._trial(state, state.vectors["h"], *zero, 0.0)
            self._learn(state, trial, 0.0, take=True)
            scalars["first"] = float(trial.squares[2, 2])
        else:
            self._search(state)
        scalars["count"] += 1.0
        return state

    def _search(self, state: State) -> None:
        rows, scalars = state.rows, state.scalars
        gram, pairs, alpha = rows["gram"][0], int(scalars["pairs"]), scalars["alpha"]
        c = direction(gram, pairs, 1.0 / self.curvature)
        if float(c @ gram[GRADIENT]) >= 0.0:  # rounding: the history no longer gives descent
            scalars["pairs"] = pairs = 0
            c = direction(gram, pairs, 1.0 / self.curvature)
        d_l = np.stack([c @ basis for basis in rows["basis_l"]])
        d_n = np.stack([c @ basis for basis in rows["basis_n"]])
        h = self.space.zeros()
        if not self.coupling.empty:
            h = split_vector(self.space, *self.coupling.adjoint(d_l))
        self.space.z(h)[...] += self._root * d_n
        trial = self._trial(state, state.vectors["h"] + alpha * h, d_l, d_n, alpha)
        before, after = float(trial.products[GRADIENT, 0]), float(trial.squares[2, 0])
        rise = trial.value - scalars["value"]
        flatter = rise <= ROUNDING * trial.size and after <= FLATTER * abs(before)
        taken = rise <= ARMIJO * alpha * before or flatter
        curved = self._learn(state, trial, alpha, take=taken)
        scalars["rejected"] = 0.0 if taken else scalars["rejected"] + 1.0
        scalars["alpha"] = 0.5 ** max(scalars["rejected"] - 1.0, 0.0)
        square = float(rows["gram"][0, GRADIENT, GRADIENT])
        scalars["least"] = min(scalars["least"], square)
        # While phi falls to a minimum, ||g||^2 stays below condition times any earlier one.
        over = square <= SETTLED * scalars["first"] or square > GROWTH * scalars["least"]
        scalars["over"] = float(over or not curved or scalars["rejected"] >= TRIALS)

    def _trial(self, state: State, h: Array, d_l: Array, d_n: Array, alpha: float) -> _Trial:
        """Minimisers, gradient, value and inner products at prices h: one averaging."""
        space, rows, n = self.space, state.rows, self.problem.n
        u, inner = self.local.minimise(h, state.vectors["u"])
        rows["inner"] = rows["inner"] + inner
        z, prices = space.z(u), rows["price"] + alpha * d_l
        coupled, copies = self.coupling.contributions(space.x(u), z, with_z=True)
        mean, mean_z = self.runtime.combine([coupled - self._right, copies])
        # New vectors (d, y, g), those of the consensus channel without the mean's shift.
        g_l, shifted = -n * mean, -self._root * (z - rows["mean"])
        old_l, old_n = rows["basis_l"][:, GRADIENT], rows["basis_n"][:, GRADIENT]
        new_l = np.stack([d_l, g_l - old_l, g_l], axis=1)
        new_n = np.stack([d_n, shifted - old_n, shifted], axis=1)
        values = self.local.values(h, u) - self._price_of_right(prices)
        total = self.runtime.total(
            np.hstack([_products(rows["basis_n"], new_n), values, np.abs(values)]), riding=True
        )
        drift = -self._root * (mean_z - rows["mean"])
        common = _products(rows["basis_l"], new_l)[0]
        agreed = self.runtime.agree(np.append(common, n * np.sum(drift**2)))
        table = (total[:-2] + agreed[:-1]).reshape(SIZE + 3, 3)
        squares = table[SIZE:]
        squares[1:, 1:] -= agreed[-1]
        new_n[:, 1:] -= drift[:, None, :]
        return _Trial(
            u, h, prices, mean_z, new_l, new_n, table[:SIZE], squares, -total[-2], total[-1]
        )

    def _price_of_right(self, prices: Array) -> Array:
        wide = np.broadcast_to(prices, self._right.shape)
        return np.array([[float(l @ b)] for l, b in zip(wide, self._right, strict=True)])

    def _learn(self, state: State, trial: _Trial, alpha: float, *, take: bool) -> bool:
        """Step and change of the gradient join the history, if curved; ``take``: go there."""
        rows, scalars = state.rows, state.scalars
        scale = np.array([alpha, 1.0, 1.0])
        products, squares = trial.products * scale, trial.squares * np.outer(scale, scale)
        curved = squares[0, 1] > CURVATURE * math.sqrt(abs(squares[0, 0] * squares[1, 1]))
        pair = int(scalars["pairs"]) if curved else None
        gram = replaced(rows["gram"][0], products, squares, pair=pair, gradient=take)
        rows["gram"] = gram[None]
        for basis, new in ((rows["basis_l"], trial.new_l), (rows["basis_n"], trial.new_n)):
            if pair is not None:
                basis[:, pair % MEMORY] = alpha * new[:, 0]
                basis[:, MEMORY + pair % MEMORY] = new[:, 1]
            if take:
                basis[:, GRADIENT] = new[:, 2]
        scalars["pairs"] += float(curved)
        if take:
            state.vectors = {"u": trial.u, "h": trial.h}
            rows["price"], rows["mean"] = trial.prices, trial.mean
            scalars["value"] = float(trial.value)
        return bool(curved)

    def point(self, state: State) -> tuple[Array, Array]:
        """The local minimisers at the prices taken last."""
        return self.space.x(state.vectors["u"]), self.space.z(state.vectors["u"])

    def dual(self, state: State, realized: Realized) -> Dual | None:
        """h, which the minimisers cancel where no local equation or shift adds to it."""
        if realized is not self.realized or {"C", "D"} & self.problem.present or self.local.shifted:
            return None
        p = np.zeros(realized.space.size)
        p[: self.space.size] = state.vectors["h"]
        realized.space.z(p)[...] *= realized.s
        return Dual(p, state.rows["price"])

    def finished(self, state: State) -> bool:
        """Nothing is left to gain, or rounding (or equations in conflict) forbid it."""
        return state.scalars["over"] > 0

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has no adjoint products)."""
        runtime, table = self.runtime, 3 * (SIZE + 3)
        return (
            Cost(argmins=1)
            + 2 * self.coupling.product_cost()
            + runtime.average_cost(self.coupling.width + self.space.q)
            + runtime.total_cost(table + 2, riding=True)
            + runtime.total_cost(table + 1, riding=True)
        )


@dataclass
class _Trial:
    """What one look at new prices found."""

    u: Array
    h: Array
    prices: Array
    mean: Array
    new_l: Array
    new_n: Array
    products: Array
    squares: Array
    value: float
    size: float


def _products(basis: Array, new: Array) -> Array:
    """Products of [basis; new] with new, one flat row for each of them."""
    return np.stack(
        [(np.concatenate([b, v]) @ v.T).ravel() for b, v in zip(basis, new, strict=True)]
    )


def prepare_lbfgs(ctx: Context) -> Prepared:
    """Probes of the curvature (argmins and one reduction); a realization only for a certificate."""
    iteration = DualLbfgs(ctx.problem, ctx.runtime, ctx.seed)
    return Prepared(
        iteration, certified_stop(ctx, iteration), "averaged", "smooth, with local minimisations",
        {"omega": iteration.omega, "pairs kept": MEMORY},
    )  # fmt: skip


CROSS_LBFGS = Method(
    "cross-lbfgs",
    "quasi-Newton on the two-channel dual, local minimisations, one averaging a trial step",
    frozenset({"smooth", "strongly convex"}),
    prepare_lbfgs,
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
