"""The accelerated method for mixed constraints without coupling through z (Yarmoshik et al. 2026).

For B = 0 the equations on (x, y) and on z have orthogonal row spaces,

    L1 = [A, a W~; b P_C, 0],   L2 = [D; g W~],   a^2 = 12 h, b^2 = 6 h, g^2 = 8 d_D,

W~ a graph filter with spectrum in [1/2, 3/2] and h = max ||A_i||^2, d_D = max ||D_i||^2, so that
one APAPC iteration corrects both by Chebyshev polynomials of their own degrees N_j =
ceil((b_j/a_j)^{1/2}) on [mu_HC/4, 37 h] and [mu_D/2, 19 d_D], adding the displacements. Objective
F + (r/2) ||A x + a W~ y - b||^2, r = mu_f/(2h), with L = L_f + 14 mu_f, mu = mu_f/2.
With B != 0 only a reduction that does without copies of z (R2, R3) helps; then L2 is absent.
Cost: 1 gradient, 2 N_1 + 2 products with A, 2 N_2 with D, 2 nu (N_1 + N_2 + 1) rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.baselines.coupled import graph_degree
from ccmac.baselines.reductions import CoupledForm
from ccmac.baselines.spectra import largest_norm, least_eigenvalue
from ccmac.errors import MethodRefused
from ccmac.ledger import Cost
from ccmac.operators.filters import chebyshev_correction, outer_degree
from ccmac.operators.leaves import LocalFamily
from ccmac.pipeline.local import LocalEquations
from ccmac.pipeline.shared import SharedEquations
from ccmac.solvers.base import State
from ccmac.solvers.borrowed import BorrowingIteration, certified_stop
from ccmac.solvers.method import Context, Method, Prepared

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """The numbers of the module text (d_D = mu_D = 0: no equations on z)."""

    h: float
    mu_HC: float
    d_D: float
    mu_D: float
    mu_f: float
    L_f: float
    graph_degree: int

    @property
    def first(self) -> tuple[float, float]:
        """Interval of L1'L1."""
        return self.mu_HC / 4, 37 * self.h

    @property
    def second(self) -> tuple[float, float]:
        """Interval of L2'L2: without D that of W~^2."""
        return (self.mu_D / 2, 19 * self.d_D) if self.d_D else (0.25, 2.25)

    @property
    def g(self) -> float:
        """Weight of W~ in L2."""
        return math.sqrt(8 * self.d_D) if self.d_D else 1.0


class MixedIteration(BorrowingIteration):
    """State: (x, z), its extrapolation and the dual p (vectors), and the same for y (rows)."""

    name = "mixed-yarmoshik"

    def __init__(
        self,
        form: CoupledForm,
        local: LocalEquations,
        shared: SharedEquations,
        constants: Constants,
    ) -> None:
        self.form, self.space, self.constants = form, form.space, constants
        self.local, self.shared = local, shared
        self.alpha, self.beta = math.sqrt(12 * constants.h), math.sqrt(6 * constants.h)
        self.graph = form.runtime.network.extremes if form.runtime.n > 1 else (1.0, 1.0)
        self.copied = form.name == "none"
        self.family: LocalFamily = shared.family

    def _filter(self, rows: Array) -> Array:
        """W~ rows: nu rounds."""
        runtime = self.form.runtime
        if runtime.n == 1 or rows.shape[1] == 0:
            return np.zeros_like(rows)

        def laplacian(v: Array) -> tuple[Array, Array]:
            return runtime.mix(v), v[:0]

        degree = self.constants.graph_degree
        return chebyshev_correction(laplacian, rows, *self.graph, degree)[0]

    def _parts(self, v: Array) -> tuple[Array, Array]:
        size = self.space.size
        return v[:size], v[size:].reshape(self.form.right.shape)

    def _coupled(self, v: Array) -> Array:
        """[A, a W~]'([A, a W~] v - b)."""
        u, y = self._parts(v)
        misfit = self.form.forward(u) + self.alpha * self._filter(y) - self.form.right
        dual = self.alpha * self._filter(misfit).ravel()
        return np.concatenate([self.form.adjoint(misfit), dual])

    def _first(self, v: Array) -> tuple[Array, Array]:
        """L1'(L1 v - right)."""
        image = self._coupled(v)
        if not self.local.empty:
            x = self.space.x(v)
            image[: self.space.x_size] += self.beta**2 * (self.local.project(x) - self.local.point)
        return image, v[:0]

    def _second(self, v: Array) -> tuple[Array, Array]:
        """L2'(L2 v - right) on z; zero elsewhere."""
        image, z = np.zeros_like(v), self.space.z(v)
        out = self.space.z(image)
        out[...] = self.constants.g**2 * self._filter(self._filter(z))
        if not self.shared.empty:
            out += self.family.adjoint(self.family.forward(z) - self.shared.right).reshape(z.shape)
        return image, v[:0]

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """(x, z) at the user's point; y and the dual start at zero."""
        u, zero = self.form.start(x, z), np.zeros_like(self.form.right)
        return State(
            {"u": u, "u_f": u.copy(), "p": np.zeros_like(u)},
            {"u": zero, "u_f": zero.copy(), "p": zero.copy()},
        )

    def step(self, state: State) -> State:
        """One iteration of APAPC with two corrections."""
        v, v_f, p = (
            np.concatenate([state.vectors[name], state.rows[name].ravel()])
            for name in ("u", "u_f", "p")
        )
        c = self.constants
        mu, L, r = c.mu_f / 2, c.L_f + 14 * c.mu_f, c.mu_f / (2 * c.h)
        tau = min(1.0, 0.5 * math.sqrt(19 / 15 * mu / L))
        eta = 1.0 / (4 * tau * L)
        ahead = tau * v + (1 - tau) * v_f
        gradient = r * self._coupled(ahead) - mu * ahead
        gradient[: self.space.size] += self.form.gradient(self._parts(ahead)[0])
        half = (v - eta * (gradient + p)) / (1 + eta * mu)
        moved = chebyshev_correction(self._first, half, *c.first, outer_degree(*c.first))[0]
        if self.copied:
            degree = outer_degree(*c.second)
            moved = moved + chebyshev_correction(self._second, half, *c.second, degree)[0]
        p = p + 15 / (19 * eta) * moved
        new = (v - eta * (gradient + p)) / (1 + eta * mu)
        v_f = ahead + 2 * tau / (2 - tau) * (new - v)
        for name, value in (("u", new), ("u_f", v_f), ("p", p)):
            state.vectors[name], state.rows[name] = self._parts(value)
        return state

    def point(self, state: State) -> tuple[Array, Array]:
        """Through the reduction, if there is one."""
        return self.form.point(state.vectors["u"])

    @property
    def cost(self) -> Cost:
        """1 gradient, N_1 + 1 coupled residuals, N_2 residuals on z."""
        runtime, nu, c = self.form.runtime, self.constants.graph_degree, self.constants

        def filtered(width: int) -> Cost:
            return nu * runtime.mix_cost(width) if runtime.n > 1 and width else Cost()

        N_1, N_2 = outer_degree(*c.first), outer_degree(*c.second)
        coupled = 2 * self.form.product_cost + 2 * filtered(self.form.width)
        total = Cost(gradients=1) + (N_1 + 1) * coupled + N_1 * self.local.cost
        if self.copied:
            on_z = 2 * filtered(self.space.q)
            total = total + N_2 * (on_z + 2 * self.family.cost)
        return total


def prepare_mixed(ctx: Context) -> Prepared:
    """Directly when B = 0, else on R2 or R3."""
    problem, runtime = ctx.problem, ctx.runtime
    rows = [[float(b is not None and _nonzero(b))] for b in problem.blocks("B")]
    coupled_z = bool(runtime.gather(np.array(rows)).any())
    if coupled_z and ctx.reduction not in ("R2", "R3"):
        raise MethodRefused(
            "method mixed-yarmoshik needs B = 0: its channels must not meet in z; use cross-apapc, "
            "or reduction='R2' or 'R3' if z may be pooled"
        )
    form = CoupledForm(problem, runtime, ctx.reduction or "none")
    local = LocalEquations(problem, runtime, "factor")
    shared = SharedEquations(problem, runtime, "factor")
    mu_f, L_f = form.curvature()
    if mu_f <= 0:
        raise MethodRefused(
            "method mixed-yarmoshik needs every f_i strongly convex; use cross-apapc, which "
            "recovers the curvature of the sum"
        )

    def gram(v: Array) -> Array:
        u = form.adjoint(np.broadcast_to(v, form.right.shape))
        form.space.x(u)[...] -= local.project(form.space.x(u))
        return form.forward(u)

    def shared_gram(v: Array) -> Array:
        images = shared.family.forward(np.tile(v, (form.space.count // len(v), 1)))
        return shared.family.adjoint(images).reshape(form.space.count, -1)

    h = largest_norm(form) or 1.0
    mu_HC = min(least_eigenvalue(runtime, gram, form.width, ctx.seed), h) if form.width else h
    d_D, mu_D = 0.0, 0.0
    if not shared.empty and form.name == "none":
        d_D = 1.0  # orthonormal rows
        mu_D = least_eigenvalue(runtime, shared_gram, problem.q, ctx.seed)
    constants = Constants(h, mu_HC, d_D, mu_D, mu_f, L_f, graph_degree(ctx))
    iteration = MixedIteration(form, local, shared, constants)
    settings = {
        "reduction": form.name, "h": h, "mu_HC": mu_HC, "mu_D": mu_D,
        "degrees": (outer_degree(*constants.first), outer_degree(*constants.second)),
        "graph degree": constants.graph_degree,
    }  # fmt: skip
    return Prepared(
        iteration, certified_stop(ctx, iteration), f"coupled {form.name}",
        "mixed constraints without coupling through z", settings,
    )  # fmt: skip


def _nonzero(block: object) -> bool:
    """Whether a block has an entry; an operator counts as one that has."""
    if isinstance(block, np.ndarray):
        return bool(np.any(block))
    data = getattr(block, "data", None)
    return bool(np.any(data)) if isinstance(data, np.ndarray) else True


MIXED = Method(
    "mixed-yarmoshik",
    "accelerated method for mixed constraints with B = 0 (or reduction R2, R3)",
    frozenset({"smooth", "strongly convex"}),
    prepare_mixed,
    ("coupled none", "coupled R2", "coupled R3"),
    suggestion="cross-continuation (smooth) or cross-sliding (nonsmooth)",
)
