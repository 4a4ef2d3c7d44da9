"""The accelerated method for coupled constraints of Yarmoshik et al. (2025).

Every agent keeps its share of sum_i (A'_i u_i - b'_i) = 0 with a vector y_i that the graph cancels:
B(u, y) = A'u + gamma W'y = b', W' a Chebyshev filter of W of degree n_W = ceil(kappa_W^{1/2}) with
spectrum in [11/15, 19/15]. With L_A = max ||A'_i||^2, mu_A = lambda_min^+(mean A'_i A'_i'),

    gamma^2 = (mu_A + L_A)/(11/15)^2,  mu_B = mu_A/2,  L_B = L_A + (L_A + mu_A)(19/11)^2,
    G = F + (r/2) ||B(u, y) - b'||^2,  r = mu_f/(2 L_A),  n_B = ceil((L_B/mu_B)^{1/2}),

the iteration is that of APAPC on G with the Chebyshev correction of degree n_B towards
B(u, y) = b'. Local equations become rows of A'. Needs smooth strongly convex f'. ``reduction`` is
R1, R2 or R3.
Cost: 1 gradient, 2 n_B + 2 products with A', 2 n_W (n_B + 1) rounds of m' floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.baselines.reductions import CoupledForm
from ccmac.baselines.spectra import largest_norm, least_eigenvalue
from ccmac.errors import MethodRefused
from ccmac.ledger import Cost
from ccmac.operators.filters import chebyshev_correction, outer_degree
from ccmac.solvers.base import State
from ccmac.solvers.borrowed import BorrowingIteration, certified_stop
from ccmac.solvers.method import Context, Method, Prepared

Array = NDArray[np.float64]
LOW, HIGH = 11 / 15, 19 / 15


@dataclass(frozen=True)
class Constants:
    """The numbers of the module text; ``graph_degree`` is n_W, ``degree`` n_B."""

    mu_A: float
    L_A: float
    mu_f: float
    L_f: float
    graph_degree: int

    @property
    def gamma(self) -> float:
        """Weight of W'."""
        return math.sqrt((self.mu_A + self.L_A) / LOW**2)

    @property
    def interval(self) -> tuple[float, float]:
        """[mu_B, L_B]."""
        return self.mu_A / 2, self.L_A + (self.L_A + self.mu_A) * (HIGH / LOW) ** 2

    @property
    def degree(self) -> int:
        """n_B."""
        return outer_degree(*self.interval)

    @property
    def r(self) -> float:
        """Weight of the penalty in G."""
        return self.mu_f / (2 * self.L_A)

    @property
    def curvature(self) -> tuple[float, float]:
        """(mu_G, L_G)."""
        ratio = (self.mu_A + self.L_A) / self.L_A
        low = self.mu_f * min(0.5, ratio / 4)
        return low, max(self.L_f + self.mu_f, self.mu_f * (HIGH / LOW) ** 2 * ratio)


class CoupledIteration(BorrowingIteration):
    """State: u, u_f and the dual p (vectors), and the same for y (rows)."""

    name = "coupled-yarmoshik"

    def __init__(self, form: CoupledForm, constants: Constants) -> None:
        self.form, self.space, self.constants = form, form.space, constants
        self.graph = form.runtime.network.extremes if form.runtime.n > 1 else (1.0, 1.0)

    def _filter(self, rows: Array) -> Array:
        """W' rows: n_W rounds."""
        runtime = self.form.runtime
        if runtime.n == 1:
            return np.zeros_like(rows)

        def laplacian(v: Array) -> tuple[Array, Array]:
            return runtime.mix(v), v[:0]

        degree = self.constants.graph_degree
        return chebyshev_correction(laplacian, rows, *self.graph, degree)[0]

    def _normal(self, v: Array) -> tuple[Array, Array]:
        """B'(B v - b'): 2 n_W rounds, 2 products."""
        u, y = self._parts(v)
        gamma = self.constants.gamma
        misfit = self.form.forward(u) + gamma * self._filter(y) - self.form.right
        image = np.concatenate([self.form.adjoint(misfit), gamma * self._filter(misfit).ravel()])
        return image, v[:0]

    def _parts(self, v: Array) -> tuple[Array, Array]:
        size = self.space.size
        return v[:size], v[size:].reshape(self.form.right.shape)

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """u at the user's point; y and the dual start at zero."""
        u, zero = self.form.start(x, z), np.zeros_like(self.form.right)
        return State(
            {"u": u, "u_f": u.copy(), "p": np.zeros_like(u)},
            {"u": zero, "u_f": zero.copy(), "p": zero.copy()},
        )

    def step(self, state: State) -> State:
        """One iteration of APAPC on (u, y)."""
        v, v_f, p = (
            np.concatenate([state.vectors[name], state.rows[name].ravel()])
            for name in ("u", "u_f", "p")
        )
        mu, L = self.constants.curvature
        tau = min(1.0, 0.5 * math.sqrt(HIGH / LOW * mu / L))
        eta = 1.0 / (4 * tau * L)
        ahead = tau * v + (1 - tau) * v_f
        gradient = self.constants.r * self._normal(ahead)[0] - mu * ahead
        gradient[: self.space.size] += self.form.gradient(self._parts(ahead)[0])
        half = (v - eta * (gradient + p)) / (1 + eta * mu)
        interval, degree = self.constants.interval, self.constants.degree
        moved = chebyshev_correction(self._normal, half, *interval, degree)[0]
        p = p + moved / (HIGH * eta)
        new = (v - eta * (gradient + p)) / (1 + eta * mu)
        v_f = ahead + 2 * tau / (2 - tau) * (new - v)
        for name, value in (("u", new), ("u_f", v_f), ("p", p)):
            state.vectors[name], state.rows[name] = self._parts(value)
        return state

    def point(self, state: State) -> tuple[Array, Array]:
        """Through the reduction."""
        return self.form.point(state.vectors["u"])

    @property
    def cost(self) -> Cost:
        """1 gradient, n_B + 1 products and adjoints, each pair with 2 n_W rounds."""
        times = 2 * (self.constants.degree + 1)
        one = self.form.product_cost
        if self.form.runtime.n > 1:
            one = one + self.constants.graph_degree * self.form.runtime.mix_cost(self.form.width)
        return Cost(gradients=1) + times * one


def graph_degree(ctx: Context) -> int:
    """n_W = ceil(kappa_W^{1/2})."""
    return outer_degree(*ctx.runtime.network.extremes) if ctx.runtime.n > 1 else 0


def prepare_coupled(ctx: Context) -> Prepared:
    """On the reduction asked for (R1 by default)."""
    runtime = ctx.runtime
    form = CoupledForm(ctx.problem, runtime, ctx.reduction or "R1", rows=True)
    mu_f, L_f = form.curvature()
    if mu_f <= 0:
        raise MethodRefused(
            f"method coupled-yarmoshik needs every f_i strongly convex under reduction {form.name};"
            " use reduction='R2' (pools the losses of z) or cross-apapc"
        )

    def gram(v: Array) -> Array:
        return form.forward(form.adjoint(np.broadcast_to(v, form.right.shape)))

    mu_A = least_eigenvalue(runtime, gram, form.width, ctx.seed)
    constants = Constants(mu_A, max(largest_norm(form), mu_A), mu_f, L_f, graph_degree(ctx))
    iteration = CoupledIteration(form, constants)
    settings = {
        "reduction": form.name, "message floats": form.width, "mu_A": constants.mu_A,
        "L_A": constants.L_A, "gamma": constants.gamma, "degree": constants.degree,
        "graph degree": constants.graph_degree,
    }  # fmt: skip
    return Prepared(
        iteration, certified_stop(ctx, iteration), f"coupled {form.name}",
        "accelerated method for coupled constraints", settings,
    )  # fmt: skip


COUPLED = Method(
    "coupled-yarmoshik",
    "accelerated method for coupled constraints, on a reduction R1, R2 or R3",
    frozenset({"smooth", "strongly convex"}),
    prepare_coupled,
    ("coupled R1", "coupled R2", "coupled R3"),
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
