"""DPMM and Tracking-ADMM: local argmins on a coupled form, one round an iteration.

DPMM, the decentralized proximal method of multipliers (Gong and Zhang 2023), equality case, with
penalty gamma, proximal weight 1/alpha, L the graph Laplacian:

    y~ = y - gamma Lam
    u+ = argmin f'(u) + <y~, A'u - b'> + (gamma/2) ||A'u - b'||^2 + ||u - u_i||^2 / (2 alpha)
    y^ = y~ + gamma (A'u+ - b'),   Lam+ = Lam + beta L y^,   y+ = y^ + gamma (Lam - Lam+)

converges for every gamma, alpha > 0 and 0 < beta < 1/(gamma lambda_max(L)); beta is 0.99 of that.
Cost: 1 argmin, 2 products with A', 1 round of m' floats.

Tracking-ADMM (Falsone, Notarnicola, Notarstefano, Prandini 2020): agents track the mean violation d
of the coupled equation and agree on its multiplier lam by mixing with a doubly stochastic M
(Metropolis weights; mixing with a Laplacian diverges):

    (dl, el) = M (d, lam)
    u+  = argmin f'(u) + <el, A'u> + (c/2) ||A'u - A'u_i + dl||^2
    d+  = dl + A'u+ - A'u,     lam+ = el + c d+

d starts at A'u - b', or the tracking is biased. Converges for every c > 0 on convex objectives; no
rate is known, linear convergence is seen. Cost: 1 argmin, 2 products, 1 round of 2m' floats.

``penalty`` is gamma or c in units of :func:`balanced_penalty`; ``tune="grid"`` lets
:data:`PENALTIES` race. Both together are refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Prepared, Request, option, rows
from ccmac.methods.realized import JudgedMethod
from ccmac.paper.comparators.local_argmin import LocalArgmin
from ccmac.paper.comparators.reductions import (
    REDUCTIONS,
    Carried,
    CoupledForm,
    CoupledState,
    FormIteration,
    typical,
)
from ccmac.paper.comparators.tuning import TUNE, refuse_both, tuned
from ccmac.workspace import Workspace

PENALTIES = (1.0, 0.03, 0.1, 0.3, 3.0, 10.0)


def balanced_penalty(form: CoupledForm) -> float:
    """The unit of penalties (1 when there is nothing to balance): two reductions, in setup.

    The dual Hessian of a coupled problem is sum_i A'_i H_i^{-1} A'_i'; a penalty near the inverse
    of its typical eigenvalue balances primal and dual progress:

        m' / sum_i [ ||A'_i,x||_F^2 / h_x + ||A'_i,z||_F^2 / h_z ],   h = (L mu)^{1/2} per block

    (h = L where mu = 0). It knows neither the extremes of the spectrum nor the graph: the best
    penalty on large sets is 0.05 to 0.5 of it, which ``tune="grid"`` finds.
    """
    shares = []
    for k, f in enumerate(form.objectives):
        d = form.space.d[k]
        c = f.curvature(d, form.space.q if form.held[k].any() else 0)
        squares = form.local_matrix(k).power(2).sum(axis=0)
        on_x = float(np.sum(squares[:d]))
        on_z = float(np.sum(squares[d:]))
        shares.append([on_x / typical(c.L_x, c.mu_x) + on_z / typical(c.L_z, c.mu_z)])
    total = float(form.runtime.total(np.array(shares))[0])
    return form.width / total if total > 0 else 1.0


# -- iterations ------------------------------------------------------------------------------------
class PenaltyIteration(FormIteration[Carried]):
    """An iteration with one local argmin; ``settings`` go into the plan."""

    argmin: LocalArgmin
    settings: dict[str, Any]
    message: Cost

    @property
    def cost(self) -> Cost:
        """1 argmin, 2 products, 1 round."""
        return Cost(argmins=1) + 2 * self.form.product_cost + self.message


@dataclass(frozen=True)
class DpmmState(CoupledState):
    """The multipliers y and their disagreement Lam, one row of m' floats per agent."""

    y: Array = rows()
    Lam: Array = rows()


class DpmmIteration(PenaltyIteration[DpmmState]):
    """Penalty ``gamma``, proximal ``weight`` 1/alpha."""

    def __init__(self, form: CoupledForm, gamma: float, weight: float) -> None:
        super().__init__(form)
        self.gamma, self.argmin = gamma, LocalArgmin(form, gamma, weight)
        top = form.runtime.network.extremes[1] if form.runtime.n > 1 else 1.0
        self.beta, self.message = 0.99 / (gamma * top), form.runtime.mix_cost(form.width)
        self.settings = {
            "message floats": form.width,
            "gamma": gamma,
            "beta": self.beta,
            "1/alpha": weight,
        }

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> DpmmState:
        """u at the user's point, multipliers zero (a warm dual has no place here)."""
        zero = np.zeros_like(self.form.right)
        return DpmmState(self.form.start(x, z), zero, zero.copy())

    def step(self, state: DpmmState) -> DpmmState:
        """One iteration."""
        form = self.form
        gamma = self.gamma
        ahead = state.y - gamma * state.Lam
        u = self.argmin(form.adjoint(ahead - gamma * form.right), state.u)
        hat = ahead + gamma * (form.forward(u) - form.right)
        moved = self.beta * form.runtime.mix(hat) if form.runtime.n > 1 else np.zeros_like(hat)
        return DpmmState(u, hat - gamma * moved, state.Lam + moved)


@dataclass(frozen=True)
class TrackingState(CoupledState):
    """The image A'u and the pair (d, lam) that travels, one row per agent."""

    image: Array = rows()
    pair: Array = rows()


class TrackingIteration(PenaltyIteration[TrackingState]):
    """Penalty ``c``."""

    def __init__(self, form: CoupledForm, c: float) -> None:
        super().__init__(form)
        self.c, self.argmin = c, LocalArgmin(form, c)
        self.mixing = form.runtime.network.metropolis()
        self.message = form.runtime.mix_cost(2 * form.width, self.mixing)
        self.settings = {"message floats": 2 * form.width, "c": c}

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> TrackingState:
        """u at the user's point; the first image is one product, charged where it is made."""
        u = self.form.start(x, z)
        image = self.form.forward(u)
        pair = np.concatenate([image - self.form.right, np.zeros_like(image)], axis=1)
        return TrackingState(u, image, pair)

    def step(self, state: TrackingState) -> TrackingState:
        """One iteration."""
        form = self.form
        width = self.form.width
        pair = state.pair
        mixed = form.runtime.mix(pair, self.mixing) if form.runtime.n > 1 else pair.copy()
        d = mixed[:, :width]
        lam = mixed[:, width:]
        d -= state.image
        u = self.argmin(form.adjoint(lam + self.c * d), state.u)
        image = form.forward(u)
        d += image
        lam += self.c * d
        return TrackingState(u, image, mixed)


# -- methods ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PenaltyMethod(JudgedMethod):
    """A penalty on a reduction to coupled constraints; see the module text."""

    needs = frozenset({"smooth", "strongly convex"})

    reduction: str = option("R1", str, "how z and consensus are coupled", choices=REDUCTIONS)
    penalty: float | None = option(None, float, "in units of the balanced penalty (1)")
    tune: str | None = option(None, str, f"penalty: {TUNE}", choices=("grid",))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_both(self, "penalty")

    @abstractmethod
    def builder(self, form: CoupledForm) -> Callable[[float], PenaltyIteration[Any]]:
        """The iteration for a penalty in absolute units."""

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """On the reduction asked for; perhaps a race of penalties."""
        form = CoupledForm(work, self.reduction, by_curvature=True)
        unit = balanced_penalty(form)
        build = self.builder(form)
        penalty = self.penalty or 1.0
        if self.tune is not None:
            penalty = tuned(work, request, PENALTIES, lambda value: build(value * unit), "u")
        iteration = build(penalty * unit)
        settings = {"reduction": form.name, "penalty": penalty, **iteration.settings}
        return Prepared(
            iteration,
            None,
            f"coupled {form.name}",
            "local argmins, one round an iteration",
            settings,
        )


@dataclass(frozen=True)
class Dpmm(PenaltyMethod):
    """The decentralized proximal method of multipliers.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    reduction : {"R1", "R2", "R3"}
        How z and consensus are coupled (default R1).
    penalty : float, optional
        In units of the balanced penalty (1).
    tune : {"grid"}, optional
        Penalty: settings of a grid race first, charged to setup.
    proximal : float, optional
        1/alpha in units of mu (0.01).

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.Dpmm()).status
    'optimal'
    """

    name = "dpmm"
    summary = "decentralized proximal method of multipliers: local argmins, one round an iteration"

    proximal: float | None = option(None, float, "1/alpha in units of mu (0.01)")

    def builder(self, form: CoupledForm) -> Callable[[float], DpmmIteration]:
        """One proximal weight for all penalties: mu, or L where mu = 0, times ``proximal``."""
        mu, L = form.curvature()
        weight = (self.proximal or 0.01) * (mu if mu > 0 else L)
        return lambda gamma: DpmmIteration(form, gamma, weight)


@dataclass(frozen=True)
class TrackingAdmm(PenaltyMethod):
    """ADMM with tracked violations.

    Parameters
    ----------
    certificates : Certificates, optional
        Spectral constants you vouch for; the rest is estimated.
    reduction : {"R1", "R2", "R3"}
        How z and consensus are coupled (default R1).
    penalty : float, optional
        In units of the balanced penalty (1).
    tune : {"grid"}, optional
        Penalty: settings of a grid race first, charged to setup.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, X[:, 0], 3)
    >>> ccmac.solve(problem, "ring", ccmac.methods.TrackingAdmm()).status
    'optimal'
    """

    name = "tracking-admm"
    summary = "ADMM with tracked violations: local argmins, one round an iteration"

    def builder(self, form: CoupledForm) -> Callable[[float], TrackingIteration]:
        """Nothing else to choose."""
        return lambda c: TrackingIteration(form, c)
