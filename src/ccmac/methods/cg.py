"""cross-cg: conjugate gradients on the two-channel dual of a quadratic problem.

With T_i the local inverse under C_i and D_i, lambda the coupled multiplier and nu_i (sum zero) the
consensus multipliers, the dual system is

    sum_i [A_i B_i] T_i h_i = r_lambda,   (I - Pi)(T_i h_i)_z = r_nu,   h_i = (A_i'l, B_i'l + n_i)

preconditioned by diag(I, omega I), omega = [tr sum_i K_i T_i K_i' / m] / [mean_i tr (T_i)_zz / q],
which brings both channels to one scale (traces by random probes). In the one-reduction form of CG
both inner products are known from vectors that exist before the averaging, so they travel with it:

    y = (r_l, omega r_n),  t_i = T_i h_i(y),  AVERAGE (K_i t_i, (t_i)_z, <y, r>, <h, t>)
    beta = g/g_old,  alpha = g/(d - beta g/alpha_old),  s = q + beta s,  r -= alpha s,
    t~ = t + beta t~,  u -= alpha t~

so that u_i stays the exact local minimiser at the current multipliers. The first iteration computes
u at the starting multipliers and its residual. Needs quadratic, strongly convex objectives whose
Hessians may be factorized. Cost: 1 argmin (a local solve), 2 A, 2 B, one averaging, one piggybacked
reduction.

Where z follows from the coupled multiplier (:mod:`ccmac.workspace.dual`) the dual is S l = r(0)
without consensus multipliers, preconditioned by M = B B' + c I from one averaging of a block of
vectors (:mod:`ccmac.linalg.nystrom`):

    y = M^{-1} r,  p = y + (g/g_old) p,  AVERAGE (A_i t_i), t_i = H_i^{-1} A_i'p,  q = S p,
    alpha = g / p'q,  l += alpha p,  x -= alpha t,  r -= alpha q,  g = r'M^{-1}r

Every vector of that dual is known to all, so that inner products cost nothing and the row that
travels has m floats. Cost: 1 argmin, 2 A, one averaging of m floats.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.bound import Dual
from ccmac.certificates.stopping import Stop
from ccmac.certificates.structure import DualBound, DualJudge
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.nystrom import Shifted
from ccmac.linalg.tolerances import SETTLED, SWELLED
from ccmac.methods.base import Iteration, Prepared, Request, S, State, known, option, rows, vector
from ccmac.methods.local import LocalMinimisers, channel_curvatures
from ccmac.methods.realized import JudgedMethod
from ccmac.realizations.base import Realized
from ccmac.runtime.space import row_dots
from ccmac.workspace import Workspace
from ccmac.workspace.dual import DualForm, planned_size
from ccmac.workspace.equations import right_hand_sides


@dataclass(frozen=True)
class CgState(State):
    """u and its direction t~; residuals, multiplier and directions of both channels; CG's scalars.

    Before the first step ``t`` holds the starting multipliers K'lambda.
    """

    u: Array = vector()
    t: Array = vector()
    r_l: Array = known()
    r_n: Array = rows()
    s_l: Array = known()
    s_n: Array = rows()
    d_l: Array = known()
    multiplier: Array = known()
    g: float = 0.0
    alpha: float = 0.0
    first: float = 0.0
    least: float = np.inf
    count: int = 0
    over: bool = False


class TwoChannelDual(Iteration[S]):
    """The dual of coupled rows and copies of z, met by local minimisations; its state has ``u``."""

    def __init__(self, work: Workspace, seed: int = 0) -> None:
        self.problem = work.problem
        self.runtime = work.runtime
        self.space = work.space
        self.coupling = work.coupling
        self.local = LocalMinimisers(work)
        self._right = right_hand_sides(work.problem).b[:, : self.coupling.width]
        curvatures = channel_curvatures(work, self._energies, seed)
        self.curvature, shared = (self._scale(c) for c in curvatures)
        self.omega = self.curvature / shared

    def _scale(self, curvature: float) -> float:
        """A curvature as the method takes it."""
        return curvature

    @abstractmethod
    def _energies(self, h: Array) -> Array:
        """<h_i, T_i h_i>, a number an agent."""

    def _warm(self, dual: Array | None, multiplier: Array | None) -> tuple[Array, Array]:
        """(h, lambda) of a warm start, which enter the first iteration."""
        h = self.space.zeros() if dual is None else dual[: self.space.z_end].copy()
        known = np.zeros((1, self.coupling.width))
        if multiplier is not None:
            known[...] = multiplier[: self.coupling.width]
        return h, known

    def _adjoint(self, l: Array, n: Array) -> Array:
        """h_i = (A_i'l, B_i'l + n_i)."""
        h = self.space.zeros()
        if not self.coupling.empty:
            h = self.space.joined(*self.coupling.adjoint(l))
        self.space.z(h)[...] += n
        return h

    def point(self, state: S) -> tuple[Array, Array]:
        """The local minimisers at the multipliers taken last."""
        u = state.u  # type: ignore[attr-defined]
        return self.space.x(u), self.space.z(u)

    def finished(self, state: S) -> bool:
        """Nothing is left to gain, or rounding (or equations in conflict) forbid it."""
        return state.over  # type: ignore[attr-defined,no-any-return]

    def cost_with(self, scalars: int) -> Cost:
        """An argmin, products there and back, an averaging with so many scalars."""
        message = self.runtime.average_cost(self.coupling.width + self.space.q, scalars)
        return Cost(argmins=1) + 2 * self.coupling.product_cost() + message


class DualConjugateGradients(TwoChannelDual[CgState]):
    """The iteration of the module text."""

    def _energies(self, h: Array) -> Array:
        return self.space.partial_dots(h, self.local.inverse(h))[:, 0]

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> CgState:
        """The user's point."""
        first, known = self._warm(dual, multiplier)
        r_l, s_l, d_l = np.zeros((3, *known.shape))
        r_n, s_n = np.zeros((2, self.space.count, self.space.q))
        return CgState(self.space.joined(x, z), first, r_l, r_n, s_l, s_n, d_l, known)

    def step(self, state: CgState) -> CgState:
        """The local minimisers first, then one step of CG."""
        if state.count:
            return replace(self._conjugate(state), count=state.count + 1)
        u = self.local.minimise(state.t, state.u)[0]
        r_l, r_n = self._image(u, self._right)
        return replace(state, u=u, t=self.space.zeros(), r_l=r_l, r_n=r_n, count=1)

    def _image(self, u: Array, right: Array | None = None) -> tuple[Array, Array]:
        """(sum_i K_i u_i - b_i, z_i - mean z): one averaging."""
        z = self.space.z(u)
        coupled, copies = self.coupling.contributions(self.space.x(u), z, with_z=True)
        if right is not None:
            coupled = coupled - right
        mean, mean_z = self.runtime.combine([coupled, copies])
        return mean * self.problem.n, z - mean_z

    def _conjugate(self, state: CgState) -> CgState:
        r_l = state.r_l
        r_n = state.r_n
        h = self._adjoint(r_l, self.omega * r_n)
        t = self.local.inverse(h)
        products = self.runtime.piggyback(self._products(r_l, r_n, h, t))
        q_l, q_n = self._image(t)
        g, d = (float(v) for v in products.value)
        least = min(state.least, g)
        first = state.first or g
        # g never exceeds kappa times an earlier g, but for rounding or equations in conflict.
        beta = g / state.g if state.g else 0.0
        # Curvature along the new direction: it vanishes where equations in conflict pull.
        curvature = d - beta * g / state.alpha if beta else d
        settled = g <= SETTLED * first or curvature <= SETTLED * d
        if settled or g > SWELLED * least:
            return replace(state, least=least, first=first, over=True)
        alpha = g / curvature
        s_l = q_l + beta * state.s_l
        s_n = q_n + beta * state.s_n
        d_l = r_l + beta * state.d_l
        direction = t + beta * state.t
        u = state.u
        u -= alpha * direction
        return replace(
            state,
            u=u,
            t=direction,
            s_l=s_l,
            s_n=s_n,
            d_l=d_l,
            multiplier=state.multiplier + alpha * d_l,
            r_l=r_l - alpha * s_l,
            r_n=r_n - alpha * s_n,
            g=g,
            alpha=alpha,
            least=least,
            first=first,
        )

    def _products(self, r_l: Array, r_n: Array, h: Array, t: Array) -> Array:
        """Per agent <y, r> (its share of the common part) and <h, t>."""
        share = float(r_l[0] @ r_l[0]) / self.problem.n
        own = share + self.omega * row_dots(r_n, r_n)
        return np.stack([own, self.space.partial_dots(h, t)[:, 0]], axis=1)

    def dual(self, state: CgState, realized: Realized) -> Dual | None:
        """u minimises the Lagrangian: its gradient is -K'lambda, unless curvature was shifted."""
        return None if self.local.shifted else Dual(None, state.multiplier)

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has no adjoint products and no reduction)."""
        return self.cost_with(2)


@dataclass(frozen=True)
class SketchedState(State):
    """x; multiplier, its residual r, M^{-1} r and direction, the sum of the g_i; CG's scalars."""

    x: Array = vector()
    multiplier: Array = known()
    r: Array = known()
    y: Array = known()
    p: Array = known()
    slope: Array = known()
    slopes: float = 0.0
    g: float = 0.0
    g_old: float = 0.0
    first: float = 0.0
    least: float = np.inf
    count: int = 0
    over: bool = False


class SketchedConjugateGradients(Iteration[SketchedState]):
    """The iteration of the module text."""

    def __init__(self, parts: DualForm, M: Shifted) -> None:
        self.parts = parts
        self.M = M
        self.runtime = parts.runtime
        self.space = parts.space

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> SketchedState:
        """The user's point; the multiplier of a warm start enters the first iteration."""
        known, r, y, p, slope = np.zeros((5, 1, self.parts.m))
        if multiplier is not None:
            known[0] = multiplier
        if len(z):  # the point before the first step is the user's: z = slope / h
            slope[0] = self.parts.h * z[0] + self.parts.beta * known[0]
        return SketchedState(np.array(x), known, r, y, p, slope)

    def step(self, state: SketchedState) -> SketchedState:
        """The minimisers first, then one step of CG."""
        if state.count:
            return replace(self._conjugate(state), count=state.count + 1)
        parts = self.parts
        x = parts.minimisers(state.multiplier[0])
        coupled, slope, slopes = parts.residual(x)
        r = coupled + parts.beta * parts.shared(state.multiplier[0], slope)
        y, g = self._preconditioned(r)
        return replace(
            state,
            x=x,
            r=r[None],
            y=y[None],
            slope=slope[None],
            slopes=slopes,
            g=g,
            first=g,
            least=g,
            count=1,
            over=g == 0.0,
        )

    def _preconditioned(self, r: Array) -> tuple[Array, float]:
        """(M^{-1} r, r'M^{-1}r)."""
        y = self.M.solve(r)
        known = self.runtime.common(np.append(y, r @ y))
        return known[:-1], float(known[-1])

    def _conjugate(self, state: SketchedState) -> SketchedState:
        r = state.r[0]
        g = state.g
        p = state.y[0]
        if state.g_old:
            p = p + (g / state.g_old) * state.p[0]
        q, change = self.parts.apply(p)
        curvature = float(self.runtime.common(p @ q))
        if curvature <= 0:
            return replace(state, over=True)
        alpha = g / curvature
        x = state.x
        x -= alpha * change
        r = r - alpha * q
        y, after = self._preconditioned(r)
        least = min(state.least, after)
        over = after <= SETTLED * state.first or after > SWELLED * least
        return replace(
            state,
            x=x,
            multiplier=state.multiplier + alpha * p,
            r=r[None],
            y=y[None],
            p=p[None],
            g=after,
            g_old=g,
            least=least,
            over=over,
        )

    def point(self, state: SketchedState) -> tuple[Array, Array]:
        """The minimisers at the current multiplier."""
        z = self.parts.shared(state.multiplier[0], state.slope[0])
        return self.space.x(state.x), np.broadcast_to(z, (self.space.count, len(z)))

    def finished(self, state: SketchedState) -> bool:
        """Nothing is left to reduce, or the residual grows: rounding."""
        return state.over

    def multipliers(self, state: SketchedState) -> tuple[Array, Array, float]:
        """For the bound."""
        return state.multiplier[0], state.slope[0], state.slopes

    def energy(self, state: SketchedState) -> float:
        """For the bound."""
        return state.g if state.count else math.inf

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has 1 argmin, 2 A and one averaging of 2 m + 1).

        While the sketches of a prepared problem grow, their vectors come on top.
        """
        return self.parts.cost


@dataclass(frozen=True)
class CrossCg(JudgedMethod):
    """Conjugate gradients on the two-channel dual of a quadratic problem.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    sketch : int, optional
        Vectors of the sketch that preconditions, where z follows from the multiplier.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossCg(sketch=4)).status
    'optimal'
    """

    name = "cross-cg"
    summary = (
        "conjugate gradients on the two-channel dual, local Hessian solves, one averaging a step"
    )
    needs = frozenset({"smooth", "strongly convex", "quadratic"})
    reveals = "A_i H_i^-1 A_i' w for multipliers w that all know, and copies of z"

    sketch: int | None = option(
        None, int, "vectors of the sketch that preconditions, where z follows from the multiplier"
    )

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """A sketch where z is eliminated; else omega."""
        if work.eliminated is not None:
            return self._sketched(work, work.eliminated, request)
        iteration = DualConjugateGradients(work, request.seed)
        return Prepared(
            iteration, None, "averaged", "quadratic, with local solves", {"omega": iteration.omega}
        )

    def _sketched(self, work: Workspace, parts: DualForm, request: Request) -> Prepared:
        """One averaging of a block; the bound needs nothing else."""
        again = parts.rank if work.recycles else 0
        size = self.sketch or planned_size(parts.runtime, parts.m, request.costs, again=again)
        M = parts.sketch(min(size, parts.m), request.seed).plus(parts.c)
        stopping = None
        if not request.reference:
            stopping = Stop(DualJudge(DualBound(parts, M), request.tol), every=True)
        return Prepared(
            SketchedConjugateGradients(parts, M),
            stopping,
            "eliminated",
            "quadratic, and z follows from the coupled multiplier",
            {"sketch": M.B.shape[1]},
            certificates={"lower_end": parts.c, "sketch_share": M.share},
            proves=True,
        )
