"""cross-lbfgs: quasi-Newton steps on the two-channel dual of a smooth strongly convex problem.

With lambda the coupled multiplier and nu_i (sum zero) the consensus multipliers, u_i = (x_i, z_i)
the local minimiser under C_i and D_i at h_i = (A_i'l, B_i'l + nu_i), the negative dual

    phi(l, nu) = -sum_i [min_u f_i(u) + <h_i, u>] + <l, sum_i b_i>

has the gradient -(sum_i A_i x_i + B_i z_i - b_i,  z_i - mean z). nu is measured in units of
sqrt(omega), which brings both channels to one scale (channel_curvatures, learnt at the start). The
direction is that of L-BFGS. For directions v with sum_i v_i = 0,

    sum_i <z_i - mean z, v_i> = sum_i <z_i, v_i>

is known before the averaging, and squares follow from sum_i ||z_i||^2 and the mean, with z shifted
by the last mean against cancellation. So every inner product travels with the vectors:

    d = -H g,  u_i = u_i(h + alpha K'd),  AVERAGE (K_i u_i - b_i, z_i, products, value)

A trial is taken when phi falls enough (Armijo); where rounding hides that, when the slope along d
falls enough. Taken or not, it shows the curvature between two points and joins the history; after
the second refusal in a row steps are shortened as well. Cost of a trial: 1 argmin, 2 A, 2 B, one
averaging, one piggybacked reduction.

The history is known through the Gram matrix of its vectors s_1..s_M (steps), y_1..y_M (changes of
the gradient) and g (the gradient): the two-loop recursion needs no more, and -H g comes out as
coefficients in them. Pairs are kept in a ring: pair number p sits in place p mod M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.bound import Dual
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.tolerances import SETTLED, SWELLED
from ccmac.methods.base import Prepared, Request, State, known, rows, vector
from ccmac.methods.cg import TwoChannelDual
from ccmac.methods.local import ARMIJO
from ccmac.methods.realized import JudgedMethod
from ccmac.realizations.base import Realized
from ccmac.workspace import Workspace

MEMORY = 20
SIZE = 2 * MEMORY + 1
GRADIENT = 2 * MEMORY


@dataclass(frozen=True)
class LbfgsState(State):
    """u and h = K'lambda; multiplier, mean z, the history with Gram matrix; scalars of the search.

    ``inner`` counts the gradients spent inside the local minimisations.
    """

    u: Array = vector()
    h: Array = vector()
    multiplier: Array = known()
    mean: Array = known()
    basis_l: Array = rows()
    basis_n: Array = rows()
    gram: Array = known()
    inner: Array = rows()
    count: int = 0
    pairs: int = 0
    alpha: float = 1.0
    value: float = 0.0
    first: float = 0.0
    least: float = np.inf
    rejected: int = 0
    over: bool = False


class DualLbfgs(TwoChannelDual[LbfgsState]):
    """The iteration of the module text."""

    def __init__(self, work: Workspace, seed: int = 0) -> None:
        # displacement of the minimisers when curvature is probed, at most
        table = work.curvature
        known = [float(table.mu_x.min()), float(table.mu_z.mean()), float(table.mu.min())]
        self._probe = 1e-4 * min(value for value in known if 0 < value < math.inf)
        self._rest: Array | None = None
        super().__init__(work, seed)
        self._root = math.sqrt(self.omega)

    def _scale(self, curvature: float) -> float:
        """To ten bits: the same from differences of minimisers that round differently."""
        mantissa, exponent = math.frexp(curvature)
        return math.ldexp(round(mantissa * 1024), exponent - 10)

    def _energies(self, h: Array) -> Array:
        """<h, T h> by a difference of minimisers: T h = -(u(eps h) - u(0))/eps."""
        if self._rest is None:
            origin = self.space.zeros()
            self._rest, _ = self.local.minimise(origin, origin)
        u, _ = self.local.minimise(self._probe * h, self._rest)
        return self.space.partial_dots(h, (self._rest - u) / self._probe)[:, 0]

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> LbfgsState:
        """The user's point."""
        h, known = self._warm(dual, multiplier)
        count = self.space.count
        q = self.space.q
        return LbfgsState(
            self.space.joined(x, z),
            h,
            known,
            np.zeros((1, q)),
            np.zeros((1, SIZE, known.shape[1])),
            np.zeros((count, SIZE, q)),
            np.zeros((1, SIZE, SIZE)),
            np.zeros((count, 1)),
        )

    def step(self, state: LbfgsState) -> LbfgsState:
        """The local minimisers at the first multipliers, then one trial a step."""
        if state.count:
            return replace(self._search(state), count=state.count + 1)
        zero = np.zeros_like(state.multiplier), np.zeros_like(self.space.z(state.u))
        trial = self._trial(state, state.h, *zero, 0.0)
        learnt, _ = self._learn(state, trial, 0.0, take=True)
        return replace(learnt, first=float(trial.squares[2, 2]), count=1)

    def _search(self, state: LbfgsState) -> LbfgsState:
        gram = state.gram[0]
        alpha = state.alpha
        c = _direction(gram, state.pairs, 1.0 / self.curvature)
        if float(c @ gram[GRADIENT]) >= 0.0:  # rounding: the history no longer gives descent
            state = replace(state, pairs=0)
            c = _direction(gram, 0, 1.0 / self.curvature)
        d_l = np.stack([c @ basis for basis in state.basis_l])
        d_n = np.stack([c @ basis for basis in state.basis_n])
        h = self._adjoint(d_l, self._root * d_n)
        trial = self._trial(state, state.h + alpha * h, d_l, d_n, alpha)
        before = float(trial.products[GRADIENT, 0])
        after = float(trial.squares[2, 0])
        rise = trial.value - state.value
        # values closer than this (relative) do not decide
        flatter = rise <= 1e-10 * trial.size and after <= 0.8 * abs(before)
        taken = bool(rise <= ARMIJO * alpha * before or flatter)
        state, curved = self._learn(state, trial, alpha, take=taken)
        rejected = 0 if taken else state.rejected + 1
        square = float(state.gram[0, GRADIENT, GRADIENT])
        least = min(state.least, square)
        # While phi falls to a minimum, ||g||^2 stays below condition times any earlier one.
        over = square <= SETTLED * state.first or square > SWELLED * least
        return replace(
            state,
            rejected=rejected,
            alpha=0.5 ** max(rejected - 1, 0),
            least=least,
            # rejected in a row: nothing is left to gain
            over=bool(over or not curved or rejected >= 20),
        )

    def _trial(self, state: LbfgsState, h: Array, d_l: Array, d_n: Array, alpha: float) -> _Trial:
        """Minimisers, gradient, value and inner products at multipliers h: one averaging."""
        space = self.space
        n = self.problem.n
        u, spent = self.local.minimise(h, state.u)
        z = space.z(u)
        multipliers = state.multiplier + alpha * d_l
        coupled, copies = self.coupling.contributions(space.x(u), z, with_z=True)
        # New vectors (d, y, g), those of the consensus channel without the mean's shift.
        shifted = -self._root * (z - state.mean)
        old_l = state.basis_l[:, GRADIENT]
        old_n = state.basis_n[:, GRADIENT]
        new_n = np.stack([d_n, shifted - old_n, shifted], axis=1)
        values = self.local.values(h, u) - self._value_of_right(multipliers)
        reduction = self.runtime.piggyback(
            np.hstack([_products(state.basis_n, new_n), values, np.abs(values)])
        )
        mean, mean_z = self.runtime.combine([coupled - self._right, copies])
        total = reduction.value
        g_l = -n * mean
        new_l = np.stack([d_l, g_l - old_l, g_l], axis=1)
        drift = -self._root * (mean_z - state.mean)
        common = _products(state.basis_l, new_l)[0]
        agreed = self.runtime.common(np.append(common, n * np.sum(drift**2)))
        table = (total[:-2] + agreed[:-1]).reshape(SIZE + 3, 3)
        squares = table[SIZE:]
        squares[1:, 1:] -= agreed[-1]
        new_n[:, 1:] -= drift[:, None, :]
        return _Trial(
            u,
            h,
            multipliers,
            mean_z,
            new_l,
            new_n,
            table[:SIZE],
            squares,
            float(-total[-2]),
            float(total[-1]),
            spent,
        )

    def _value_of_right(self, multipliers: Array) -> Array:
        wide = np.broadcast_to(multipliers, self._right.shape)
        return np.array([[float(l @ b)] for l, b in zip(wide, self._right, strict=True)])

    def _learn(
        self, state: LbfgsState, trial: _Trial, alpha: float, *, take: bool
    ) -> tuple[LbfgsState, bool]:
        """Step and change of the gradient join the history, if curved; ``take``: go there."""
        scale = np.array([alpha, 1.0, 1.0])
        products = trial.products * scale
        squares = trial.squares * np.outer(scale, scale)
        # <s, y> below this share of |s||y|: condition 1e16, the dual has no curvature
        curved = bool(squares[0, 1] > 1e-8 * math.sqrt(abs(squares[0, 0] * squares[1, 1])))
        pair = state.pairs if curved else None
        gram = _replaced(state.gram[0], products, squares, pair=pair, gradient=take)
        for basis, new in ((state.basis_l, trial.new_l), (state.basis_n, trial.new_n)):
            if pair is not None:
                basis[:, pair % MEMORY] = alpha * new[:, 0]
                basis[:, MEMORY + pair % MEMORY] = new[:, 1]
            if take:
                basis[:, GRADIENT] = new[:, 2]
        learnt = replace(
            state, gram=gram[None], inner=state.inner + trial.spent, pairs=state.pairs + curved
        )
        if take:
            learnt = replace(
                learnt,
                u=trial.u,
                h=trial.h,
                multiplier=trial.multipliers,
                mean=trial.mean,
                value=trial.value,
            )
        return learnt, curved

    def dual(self, state: LbfgsState, realized: Realized) -> Dual | None:
        """h, which the minimisers cancel where no local equation or shift adds to it."""
        if {"C", "D"} & self.problem.present or self.local.shifted:
            return None
        p = np.zeros(realized.space.size)
        p[: self.space.size] = state.h
        realized.space.z(p)[...] *= realized.s
        return Dual(p, state.multiplier)

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has no adjoint products)."""
        return self.cost_with(3 * (SIZE + 3) + 2)


@dataclass
class _Trial:
    """What one look at new multipliers found."""

    u: Array
    h: Array
    multipliers: Array
    mean: Array
    new_l: Array
    new_n: Array
    products: Array
    squares: Array
    value: float
    size: float
    spent: Array


def _products(basis: Array, new: Array) -> Array:
    """Products of [basis; new] with new, one flat row for each of them."""
    return np.stack(
        [(np.concatenate([b, v]) @ v.T).ravel() for b, v in zip(basis, new, strict=True)]
    )


@dataclass(frozen=True)
class CrossLbfgs(JudgedMethod):
    """Quasi-Newton steps on the two-channel dual, with local minimisations.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossLbfgs()).status
    'optimal'
    """

    name = "cross-lbfgs"
    summary = (
        "quasi-Newton on the two-channel dual, local minimisations, one averaging a trial step"
    )
    needs = frozenset({"smooth", "strongly convex"})

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Probes of the curvature: argmins and one reduction."""
        iteration = DualLbfgs(work, request.seed)
        return Prepared(
            iteration,
            None,
            "averaged",
            "smooth, with local minimisations",
            {"omega": iteration.omega, "pairs kept": MEMORY},
        )


def _places(pairs: int) -> list[tuple[int, int]]:
    """Where (s, y) of the kept pairs sit, oldest first."""
    slots = [p % MEMORY for p in range(max(0, pairs - MEMORY), pairs)]
    return [(slot, MEMORY + slot) for slot in slots]


def _direction(gram: Array, pairs: int, first: float) -> Array:
    """Coefficients of -H g; H starts from <s, y>/<y, y> of the last pair, or from ``first``."""
    kept = _places(pairs)
    c = np.zeros(SIZE)
    c[GRADIENT] = -1.0
    weights = []
    for s, y in reversed(kept):
        weights.append(float(c @ gram[:, s]) / gram[s, y])
        c[y] -= weights[-1]
    if kept:
        s, y = kept[-1]
        first = float(gram[s, y] / gram[y, y])
    c *= first
    for (s, y), weight in zip(kept, reversed(weights), strict=True):
        c[s] += weight - float(c @ gram[:, y]) / gram[s, y]
    return c


def _replaced(
    gram: Array, products: Array, squares: Array, *, pair: int | None, gradient: bool
) -> Array:
    """The Gram matrix after a new pair of number ``pair`` and a new gradient, where there are such.

    ``products`` are those of the kept vectors with the new (s, y, g), ``squares`` those of the new
    ones with each other.
    """
    whole = np.block([[gram, products], [products.T, squares]])
    index = np.arange(SIZE)
    if gradient:
        index[GRADIENT] = SIZE + 2
    if pair is not None:
        index[[pair % MEMORY, MEMORY + pair % MEMORY]] = SIZE, SIZE + 1
    return np.asarray(whole[np.ix_(index, index)])
