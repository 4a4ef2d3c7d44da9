"""APAPC on (u, y), which the methods for coupled and for mixed constraints share.

Every agent keeps its own row of the coupled equation, with a vector that the graph cancels:
B(u, y) = A'u + g W'y = b'. W' is a Chebyshev filter of W with nu rounds, so that sum_i W'y_i = 0
and B(u, y) = b' for some y says sum_i A'_i u_i = sum_i b'_i. With v = (u, y) and
G = F + (r/2) ||B v - b'||^2,

    v_g = tau v + (1 - tau) v_f,   s = grad G(v_g) - mu v_g
    v_h = (v - eta (s + p))/(1 + eta mu),   p += 15/(19 eta) c(v_h)
    v+  = (v - eta (s + p))/(1 + eta mu),   v_f = v_g + 2 tau/(2 - tau) (v+ - v)

where c is a Chebyshev correction towards the equations with spectrum in [11/15, 19/15]. Needs F
smooth and strongly convex.
Cost: 1 gradient, one misfit and adjoint of B, one correction.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import outer_degree
from ccmac.methods.base import rows, vector
from ccmac.paper.comparators.reductions import CoupledForm, CoupledState, FormIteration
from ccmac.paper.realizations.channels import FilteredGraph

LOW = 11 / 15
HIGH = 19 / 15


# -- equations -------------------------------------------------------------------------------------
class GraphRows:
    """B of the module text with ``weight`` g; vectors (u, y) are flat, u first."""

    def __init__(self, form: CoupledForm, weight: float) -> None:
        self.form = form
        self.weight = weight
        ends = form.runtime.network.extremes if form.runtime.n > 1 else (1.0, 1.0)
        self.filter = FilteredGraph(form.runtime, *ends, degree=outer_degree(*ends))

    def parts(self, v: Array) -> tuple[Array, Array]:
        """(u, y), y with one row per agent."""
        size = self.form.space.size
        return v[:size], v[size:].reshape(self.form.right.shape)

    def misfit(self, v: Array) -> Array:
        """B v - b'. Cost: 1 product with A', nu rounds."""
        u, y = self.parts(v)
        rows = self.filter(y)
        rows *= self.weight
        rows += self.form.forward(u)
        rows -= self.form.right
        return rows

    def adjoint(self, rows: Array) -> Array:
        """B'rows. Cost: as the misfit."""
        y = self.filter(rows)
        y *= self.weight
        return np.concatenate([self.form.adjoint(rows), y.ravel()])

    def residual(self, v: Array) -> tuple[Array, Array]:
        """B'(B v - b'), as corrections take it."""
        return self.adjoint(self.misfit(v)), v[:0]

    @property
    def cost(self) -> Cost:
        """One misfit or adjoint."""
        return self.form.product_cost + self.filter.cost(self.form.width)


# -- iteration -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Penalized:
    """G: ``r`` and the curvature [mu, L]; ``ratio`` is what tau takes for the correction's."""

    r: float
    mu: float
    L: float
    ratio: float

    @property
    def tau(self) -> float:
        """min{1, (ratio mu/L)^{1/2}/2}."""
        return min(1.0, 0.5 * math.sqrt(self.ratio * self.mu / self.L))

    @property
    def eta(self) -> float:
        """1/(4 tau L)."""
        return 1.0 / (4 * self.tau * self.L)


@dataclass(frozen=True)
class AcceleratedState(CoupledState):
    """u, u_f and the dual p, and the same for y, one row per agent."""

    u_f: Array = vector()
    p: Array = vector()
    y: Array = rows()
    y_f: Array = rows()
    p_y: Array = rows()


class AcceleratedIteration(FormIteration[AcceleratedState]):
    """The iteration of the module text; methods add their correction."""

    def __init__(self, coupled: GraphRows, objective: Penalized) -> None:
        super().__init__(coupled.form)
        self.coupled = coupled
        self.objective = objective

    @abstractmethod
    def correction(self, v: Array) -> Array:
        """c(v)."""

    @property
    @abstractmethod
    def correction_cost(self) -> Cost:
        """Static cost of one correction."""

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> AcceleratedState:
        """u at the user's point; y and the dual start at zero."""
        u = self.form.start(x, z)
        zero = np.zeros_like(self.form.right)
        return AcceleratedState(u, u.copy(), np.zeros_like(u), zero, zero.copy(), zero.copy())

    def step(self, state: AcceleratedState) -> AcceleratedState:
        """One iteration."""
        pairs = (state.u, state.y), (state.u_f, state.y_f), (state.p, state.p_y)
        v, v_f, p = (np.concatenate([on_u, on_y.ravel()]) for on_u, on_y in pairs)
        tau = self.objective.tau
        eta = self.objective.eta
        mu = self.objective.mu
        ahead = tau * v + (1 - tau) * v_f
        slope, _ = self.coupled.residual(ahead)
        slope *= self.objective.r
        slope[: self.space.size] += self.form.gradient(self.coupled.parts(ahead)[0])
        slope -= mu * ahead
        p += self.correction((v - eta * (slope + p)) / (1 + eta * mu)) / (HIGH * eta)
        new = (v - eta * (slope + p)) / (1 + eta * mu)
        v_f = ahead + 2 * tau / (2 - tau) * (new - v)
        on_u, on_y = zip(*(self.coupled.parts(value) for value in (new, v_f, p)), strict=True)
        return AcceleratedState(*on_u, *on_y)

    @property
    def cost(self) -> Cost:
        """1 gradient, 1 misfit, 1 adjoint, 1 correction."""
        return Cost(gradients=1) + 2 * self.coupled.cost + self.correction_cost
