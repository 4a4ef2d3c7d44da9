"""The classical primal-dual methods, on the stack without normalizers.

K = [(2/(a+b))^{1/2} Pi H P_kerC; P_C; I - Pi; ...] of the averaged realization: the coupled row is
only divided by a number, so every residual costs one averaging. The block scale of z is the one the
planner finds best at this normalization (``scale`` fixes it). The methods need K only through
K'(K w - v), and keep p = K'y instead of the dual variable y:

    condat-vu  w+ = w - tau (grad Phi(w) + p),       p+ = p + sigma K'(K (2 w+ - w) - v)
    pdhg       w+ = prox_{tau Phi}(w - tau p),       p+ = p + sigma K'(K (2 w+ - w) - v)
    papc       h  = w - tau grad Phi(w),  p+ = p + sigma K'(K (h - tau p) - v),  w+ = h - tau p+

``balance`` multiplies the rule that splits the steps; ``tune="grid"`` lets :data:`BALANCES` race.
Both together are refused. Cost: 1 gradient (pdhg: 1 prox), 1 residual (2 affine calls, one
averaging).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Method, Prepared, Request, State, option, vector
from ccmac.methods.realized import CERTIFICATES, RealizedIteration
from ccmac.paper.comparators.tuning import TUNE, refuse_both, tuned
from ccmac.realizations.averaged.rule import Wanted, averaged
from ccmac.realizations.base import Certificates, Realized, proximal
from ccmac.workspace import Workspace

BALANCES = (1.0, 0.1, 0.3, 3.0, 10.0)
WIDEN_LIMIT = 8


# -- iterations ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PrimalDualState(State):
    """w and the dual p = K'y."""

    w: Array = vector()
    p: Array = vector()


class PrimalDualIteration(RealizedIteration[PrimalDualState]):
    """Primal step ``tau``, dual step ``sigma``."""

    def __init__(self, realized: Realized, tau: float, sigma: float) -> None:
        super().__init__(realized)
        self.tau = tau
        self.sigma = sigma

    def begin(self, w: Array, p: Array, multiplier: Array) -> PrimalDualState:
        """Without the multiplier: only p is kept."""
        return PrimalDualState(w, p)

    def ascend(self, p: Array, w: Array) -> None:
        """p += sigma K'(K w - v). Cost: 1 residual."""
        if not self.system.empty:
            p += self.sigma * self.system.residual(w)[0]

    @property
    def cost(self) -> Cost:
        """1 gradient and 1 residual."""
        return self.objective.cost + self.residual_cost


class CondatVuIteration(PrimalDualIteration):
    """Gradient step, extrapolated dual step; converges when 1/tau - sigma ||K||^2 >= L/2."""

    def step(self, state: PrimalDualState) -> PrimalDualState:
        """One iteration; p is used up."""
        w = state.w
        p = state.p
        ahead = w - self.tau * (self.objective.gradient(w) + p)
        self.ascend(p, 2.0 * ahead - w)
        return PrimalDualState(ahead, p)


class PdhgIteration(PrimalDualIteration):
    """Proximal step, extrapolated dual step; converges when tau sigma ||K||^2 <= 1.

    The prox is that of sum_i f_i: a consensus augmentation plays no part in it.
    """

    def step(self, state: PrimalDualState) -> PrimalDualState:
        """One iteration; p is used up."""
        w = state.w
        p = state.p
        ahead = proximal(self.objective, w - self.tau * p, 1.0 / self.tau)
        self.ascend(p, 2.0 * ahead - w)
        return PrimalDualState(ahead, p)

    @property
    def cost(self) -> Cost:
        """1 prox and 1 residual."""
        return Cost(proxes=1) + self.residual_cost


class PapcIteration(PrimalDualIteration):
    """Gradient step, projection by one dual step; needs tau < 2/L and sigma tau ||K||^2 <= 1."""

    def step(self, state: PrimalDualState) -> PrimalDualState:
        """One iteration; p is used up."""
        w = state.w
        p = state.p
        descent = w - self.tau * self.objective.gradient(w)
        self.ascend(p, descent - self.tau * p)
        return PrimalDualState(descent - self.tau * p, p)


# -- methods ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PrimalDualMethod(Method):
    """Steps from the constants and the interval of the plain stack; see the module text."""

    why: ClassVar[str]
    needs = frozenset({"smooth", "strongly convex"})

    certificates: Certificates | None = option(None, Certificates, CERTIFICATES)
    balance: float | None = option(None, float, "factor of the rule that splits the steps (1)")
    scale: float | None = option(None, float, "s^2 of z = s z~ in units of the balanced scale")
    tune: str | None = option(None, str, f"balance: {TUNE}", choices=("grid",))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_both(self, "balance")

    @abstractmethod
    def iteration(self, realized: Realized, balance: float) -> PrimalDualIteration:
        """The iteration with its rule multiplied by ``balance``."""

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The plain averaged stack (one Lanczos run), then perhaps a race."""
        # Without a normalizer the scale has to condition the coupled rows, too.
        plain = self.scale is None and work.curvature.multiples is not None
        wanted = Wanted(
            scale=self.scale,
            floor=0.01 if plain else None,
            inner=0,
            outer=1,
            certificates=self.certificates or Certificates(),
            target=request.target,
            costs=request.costs,
            seed=request.seed,
        )
        realized = averaged(work, wanted)
        balance = self.balance or 1.0
        if self.tune is not None:
            balance = tuned(work, request, BALANCES, partial(self.iteration, realized), "w")
        return self._prepared(realized, balance)

    def _prepared(self, realized: Realized, balance: float, widened: int = 0) -> Prepared:
        """Judged on the stack itself."""
        iteration = self.iteration(realized, balance)
        interval = realized.system.interval
        settings = {
            "scale": realized.s,
            "balance": balance,
            "interval": (interval.low, interval.high),
            "tau": iteration.tau,
            "sigma": iteration.sigma,
        }
        found = {
            "interval": [interval.low, interval.high],
            "source": interval.source,
            "mu": realized.objective.mu,
            "L": realized.objective.L,
            "widened": widened,
        }

        def widen() -> Prepared:
            realized.system.widen()
            return self._prepared(realized, balance, widened + 1)

        return Prepared(
            iteration,
            None,
            "averaged",
            self.why,
            settings,
            certificates=found,
            judge=realized,
            widen=widen if widened < WIDEN_LIMIT else None,
        )


def _even(realized: Realized) -> float:
    """(mu L kappa(K'K))^{1/2}: primal and dual contract alike."""
    mu = realized.objective.mu
    L = realized.objective.L
    interval = realized.system.interval
    return math.sqrt(mu * L * interval.ratio)


@dataclass(frozen=True)
class CondatVu(PrimalDualMethod):
    """Condat (2013), Vu (2013): gradient steps in the primal, extrapolated steps in the dual.

    With s = max(L/2, (mu L kappa(K'K))^{1/2}): sigma = s/||K||^2, tau = 0.999/(L/2 + s).

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    balance : float, optional
        Factor of the rule that splits the steps (1).
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale.
    tune : {"grid"}, optional
        Balance: settings of a grid race first, charged to setup.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.CondatVu()).status
    'optimal'
    """

    name = "condat-vu"
    summary = "Condat-Vu primal-dual gradient steps on the stack without normalization"
    why = "primal-dual steps without normalization"

    def iteration(self, realized: Realized, balance: float) -> CondatVuIteration:
        """``balance`` multiplies s."""
        L = realized.objective.L
        s = balance * max(L / 2, _even(realized))
        return CondatVuIteration(realized, 0.999 / (L / 2 + s), s / realized.system.interval.high)


@dataclass(frozen=True)
class Pdhg(PrimalDualMethod):
    """Chambolle-Pock: proximal maps of the local objectives instead of gradients.

    tau = (mu L kappa(K'K))^{-1/2}, sigma = 1/(tau ||K||^2); linear when Phi is smooth and strongly
    convex.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    balance : float, optional
        Factor of the rule that splits the steps (1).
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale.
    tune : {"grid"}, optional
        Balance: settings of a grid race first, charged to setup.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.Pdhg()).status
    'optimal'
    """

    name = "pdhg"
    summary = "primal-dual hybrid gradients: proximal maps of the local objectives, not normalized"
    needs = frozenset({"smooth", "strongly convex", "prox"})
    why = "proximal maps of the local objectives"

    def iteration(self, realized: Realized, balance: float) -> PdhgIteration:
        """``balance`` divides tau."""
        tau = 1.0 / (balance * _even(realized))
        return PdhgIteration(realized, tau, 1.0 / (tau * realized.system.interval.high))


@dataclass(frozen=True)
class Papc(PrimalDualMethod):
    """A projected gradient step whose projection is one dual step.

    tau = 2/(L + mu), sigma = 1/(tau ||K||^2); linear at max{(1 - tau mu)^2, 1 - lambda_-/lambda_+}
    when Phi is strongly convex.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    balance : float, optional
        Factor of the rule that splits the steps (1).
    scale : float, optional
        S^2 of z = s z~ in units of the balanced scale.
    tune : {"grid"}, optional
        Balance: settings of a grid race first, charged to setup.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.Papc()).status
    'optimal'
    """

    name = "papc"
    summary = "proximal alternating predictor-corrector on the stack without normalization"
    why = "proximal alternating predictor-corrector, not accelerated"

    def iteration(self, realized: Realized, balance: float) -> PapcIteration:
        """``balance`` multiplies tau, which stays below 2/L."""
        mu = realized.objective.mu
        L = realized.objective.L
        tau = min(balance * 2.0 / (L + mu), 1.999 / L)
        return PapcIteration(realized, tau, 1.0 / (tau * realized.system.interval.high))
