"""Cross-APAPC: accelerated primal-dual steps with a Chebyshev correction.

Algorithm alg:cross-apapc.

    w_g   = tau w + (1 - tau) w_f
    w_1/2 = [w - eta (grad Phi(w_g) - mu w_g + p)] / (1 + eta mu)
    r     = theta [w_1/2 - Cheb_N(w_1/2)],   p += r,   w+ = w_1/2 - eta/(1 + eta mu) r
    w_f   = w_g + 2 tau/(2 - tau) (w+ - w)

Needs Phi smooth and strongly convex. The step rule ``paper`` takes tau, eta, theta for the
correction's spectrum [11/15, 19/15]; ``interval`` takes them from the interval of the polynomial
that is really applied, so that every degree is safe. Cost: 1 gradient, 2N affine calls. The energy
contracts by (1 + min(1/sqrt(kappa chi), 1/chi)/4)^{-1}, chi the ratio of the correction's interval.

joint-apapc (in ccmac.paper) is the same iteration on another normalization of the constraints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.bound import Dual
from ccmac.certificates.stopping import FIRST_CHECK, Stop, Stopping
from ccmac.certificates.structure import DualBound, DualJudge
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import chebyshev_correction, correction_interval, outer_degree
from ccmac.methods.base import Prepared, Request, State, known, vector
from ccmac.methods.realized import RealizedIteration, RealizedMethod
from ccmac.realizations.base import Realized, apapc_steps
from ccmac.workspace import Workspace

PAPER = (11 / 15, 19 / 15)  # spectrum of the paper's correction
WIDEN_LIMIT = 8


@dataclass(frozen=True)
class ApapcState(State):
    """w, w_f, the dual p = K'lambda and lambda's coupled part."""

    w: Array = vector()
    w_f: Array = vector()
    p: Array = vector()
    multiplier: Array = known()


class Apapc(RealizedIteration[ApapcState]):
    """The iteration on a realized problem, with its outer degree and step rule."""

    def __init__(self, realized: Realized) -> None:
        super().__init__(realized)
        self.degree = realized.degree
        self.rule = realized.steps

    @property
    def correction(self) -> tuple[float, float]:
        """Where the spectrum of the correction lies."""
        if self.system.empty:
            return 1.0, 1.0
        if self.rule == "paper":
            return PAPER
        interval = self.system.interval
        return correction_interval(interval.low, interval.high, self.degree)

    def parameters(self) -> tuple[float, float, float]:
        """(tau, eta, theta)."""
        mu = self.objective.mu
        L = self.objective.L
        if self.system.empty:
            tau = min(1.0, 0.5 * math.sqrt(mu / L))
            return tau, 1.0 / (4 * tau * L), 0.0
        if self.rule == "paper":
            tau = min(1.0, 0.5 * math.sqrt(PAPER[1] * mu / L))
            eta = 1.0 / (4.0 * tau * L)
            return tau, eta, 1.0 / (PAPER[1] * eta)
        return apapc_steps(mu, L, *self.correction)

    def begin(self, w: Array, p: Array, multiplier: Array) -> ApapcState:
        """w = w_f."""
        return ApapcState(w, w.copy(), p, multiplier)

    def step(self, state: ApapcState) -> ApapcState:
        """One iteration; the arrays of the old state are used up."""
        tau, eta, theta = self.parameters()
        mu = self.objective.mu
        system = self.system
        w = state.w
        w_g = state.w_f
        p = state.p
        multiplier = state.multiplier
        w_g *= 1.0 - tau
        w_g += tau * w
        half = self.objective.gradient(w_g)
        half += p
        half *= -eta
        half += w
        half += (eta * mu) * w_g
        half *= 1.0 / (1.0 + eta * mu)
        if not system.empty:
            interval = system.interval
            moved, change = chebyshev_correction(
                system.residual, half, interval.low, interval.high, self.degree
            )
            moved *= theta
            p += moved
            multiplier = multiplier + theta * change
            moved *= eta / (1.0 + eta * mu)
            half -= moved
        # w_f+ = w_g + 2 tau/(2 - tau) (w+ - w); the array of w becomes free.
        w *= -1.0
        w += half
        w *= 2.0 * tau / (2.0 - tau)
        w_g += w
        return type(state)(half, w_g, p, multiplier)

    def dual(self, state: ApapcState, realized: Realized) -> Dual | None:
        """p and its multiplier."""
        return Dual(state.p, state.multiplier) if realized is self.realized else None

    def multiplier(self, state: ApapcState) -> Array:
        """The coupled multiplier, for a bound from multipliers alone."""
        return np.asarray(self.system.common_multiplier(state.multiplier)[0])

    @property
    def cost(self) -> Cost:
        """1 gradient and N residuals."""
        return self.objective.cost + self.degree * self.residual_cost

    def horizon(self, radius: float, tol: float) -> int:
        """T with (contraction)^T R_E^2 <= tol^2: the a-priori horizon of Theorem thm:algorithm."""
        low, high = self.correction
        chi = high / low
        kappa = self.objective.L / self.objective.mu
        rate = 0.25 * min(1 / math.sqrt(kappa * chi), 1 / chi)
        return max(1, math.ceil(2 * math.log(max(radius / tol, math.e)) / math.log1p(rate)))


def prepared(
    realized: Realized,
    request: Request,
    why: str,
    radius: float | None = None,
    widened: int = 0,
    rule: Stopping | None = None,
) -> Prepared:
    """APAPC on a realized problem, judged there; over at the horizon of an energy ``radius``.

    ``rule`` proves from multipliers alone and takes the certificate's place.
    """
    iteration = Apapc(realized)
    interval = realized.system.interval
    found = {
        "interval": [interval.low, interval.high],
        "source": interval.source,
        "mu": realized.objective.mu,
        "L": realized.objective.L,
        "widened": widened,
    }
    horizon = None
    if radius is not None:
        horizon = found["horizon"] = iteration.horizon(radius, request.tol)

    def widen() -> Prepared:
        realized.system.widen()
        interval = realized.system.interval
        # The paper's steps hold for the degree that belongs to the interval.
        paper = realized.steps == "paper"
        degree = outer_degree(interval.low, interval.high) if paper else realized.degree
        wider = replace(realized, degree=degree)
        return prepared(wider, request, why, radius, widened + 1, rule)

    return Prepared(
        iteration,
        rule,
        realized.realization,
        why,
        dict(realized.details),
        realized.predicted,
        found,
        judge=realized,
        horizon=horizon,
        notes=realized.notes,
        widen=widen if widened < WIDEN_LIMIT else None,
        proves=rule is not None,
    )


@dataclass(frozen=True)
class CrossApapc(RealizedMethod):
    """Accelerated primal-dual steps after separate channel normalization: the paper's method.

    Parameters
    ----------
    realization : {"averaged", "canonical", "certified", "stack"}
        How the constraints are executed (default averaged).
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale (averaged only).
    inner : int, optional
        Size of the normalizer: vectors, or polynomial degree (averaged, canonical,
        certified only).
    outer : int, optional
        Degree of the Chebyshev correction over both channels (averaged only).
    rule : {"paper", "tight", "exact"}, optional
        Degree of the normalizers (canonical, stack only).
    delta : float, optional
        Accuracy 1 -+ delta of the normalizers (0.5) (canonical, certified, stack only).
    interval : str, optional
        One of "certificate", "certificate-delta", "certificate-spread", "tight", "minimal":
        where the spectrum of the stack is taken from (canonical, stack only).
    model : {"channel-2", "paper-6"}, optional
        Which calls are charged modelled rounds (canonical only).
    materialise : bool, optional
        Multiply small channels out, at an unchanged charge (canonical, certified only).
    spectra : list, optional
        Intervals (low, high) that hold spec^+(M_j M_j') (stack only).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossApapc(inner=2)).status
    'optimal'
    """

    name = "cross-apapc"
    summary = "accelerated primal-dual steps after separate channel normalization"
    needs = frozenset({"smooth", "strongly convex"})

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """On the realization asked for (averaged by default)."""
        proves = not request.reference and self.certificates is None
        parts = work.eliminated if proves and self.realization == "averaged" else None
        realized = self.realize(work, request, parts is not None)
        why = {
            "averaged": "smooth and strongly convex",
            "canonical": "the theorem's oracle",
            "certified": "the paper's certified lift",
            "stack": "J channels",
        }
        radius = None if self.certificates is None else self.certificates.energy_radius
        rule = None
        if parts is not None and realized.block is not None:
            bound = DualBound.from_block(parts, realized.block)
            warm = bool(request.x0.any() or request.z0.any())
            planned = realized.predicted or math.inf
            first = 1 if warm else FIRST_CHECK
            rate = 0.0
            if math.isfinite(planned):
                rate = math.log(1.0 / min(request.tol, 0.5)) / planned
                first = first if warm else max(FIRST_CHECK, round(0.7 * planned))
            judge = DualJudge(bound, request.tol, parts.slope())
            rule = Stop(judge, first=first, rate=rate)
        return prepared(realized, request, why[realized.realization], radius, rule=rule)
