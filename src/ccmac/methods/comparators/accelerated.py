"""APAPC on (u, y), which the methods for coupled and for mixed constraints share.

With B = [A', g W'] of :mod:`graph_rows` and G = F + (r/2) ||B v - b'||^2, v = (u, y),

    v_g = tau v + (1 - tau) v_f,   s = grad G(v_g) - mu v_g
    v_h = (v - eta (s + p))/(1 + eta mu),   p += 15/(19 eta) c(v_h)
    v+  = (v - eta (s + p))/(1 + eta mu),   v_f = v_g + 2 tau/(2 - tau) (v+ - v)

where c is a Chebyshev correction towards the equations with spectrum in [11/15, 19/15]. Corrections
run in the space of the rows, c = B's(BB')(B v - b'): the same polynomial, products and rounds as on
(u, y), on smaller arrays. Needs F smooth and strongly convex.
Cost: 1 gradient, one misfit and adjoint of B, one correction.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.filters import chebyshev_correction, outer_degree
from ccmac.methods.base import State
from ccmac.methods.borrowed import BorrowingIteration
from ccmac.methods.comparators.graph_rows import GraphRows
from ccmac.methods.method import Context

Array = NDArray[np.float64]
LOW, HIGH = 11 / 15, 19 / 15
PARTS = ("u", "u_f", "p")


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


class AcceleratedIteration(BorrowingIteration):
    """State: u, u_f and the dual p (vectors), and the same for y (rows)."""

    def __init__(self, coupled: GraphRows, objective: Penalized) -> None:
        self.coupled, self.objective = coupled, objective
        self.form, self.space = coupled.form, coupled.form.space

    @abstractmethod
    def correction(self, v: Array) -> Array:
        """c(v)."""

    @property
    @abstractmethod
    def correction_cost(self) -> Cost:
        """Static cost of one correction."""

    def coupled_correction(self, v: Array, interval: tuple[float, float], degree: int) -> Array:
        """Towards B v = b' alone. Cost: ``degree`` misfits and adjoints of B."""
        rows = row_correction(self.coupled.gram, self.coupled.misfit(v), interval, degree)
        return self.coupled.adjoint(rows)

    def start(self, x: Array, z: Array, dual: Array | None = None) -> State:
        """u at the user's point; y and the dual start at zero."""
        u, zero = self.form.start(x, z), np.zeros_like(self.form.right)
        return State(
            {"u": u, "u_f": u.copy(), "p": np.zeros_like(u)},
            {"u": zero, "u_f": zero.copy(), "p": zero.copy()},
        )

    def step(self, state: State) -> State:
        """One iteration."""
        v, v_f, p = (np.concatenate([state.vectors[k], state.rows[k].ravel()]) for k in PARTS)
        tau, eta, mu = self.objective.tau, self.objective.eta, self.objective.mu
        ahead = tau * v + (1 - tau) * v_f
        slope = self.coupled.adjoint(self.coupled.misfit(ahead))
        slope *= self.objective.r
        slope[: self.space.size] += self.form.gradient(self.coupled.parts(ahead)[0])
        slope -= mu * ahead
        p += self.correction((v - eta * (slope + p)) / (1 + eta * mu)) / (HIGH * eta)
        new = (v - eta * (slope + p)) / (1 + eta * mu)
        v_f = ahead + 2 * tau / (2 - tau) * (new - v)
        for name, value in zip(PARTS, (new, v_f, p), strict=True):
            state.vectors[name], state.rows[name] = self.coupled.parts(value)
        return state

    def point(self, state: State) -> tuple[Array, Array]:
        """Through the reduction, if there is one."""
        return self.form.point(state.vectors["u"])

    @property
    def cost(self) -> Cost:
        """1 gradient, 1 misfit, 1 adjoint, 1 correction."""
        return Cost(gradients=1) + 2 * self.coupled.cost + self.correction_cost


def graph_degree(ctx: Context) -> int:
    """ceil(kappa_W^{1/2}): the degree of the filter W'."""
    return outer_degree(*ctx.runtime.network.extremes) if ctx.runtime.n > 1 else 0


def row_correction(
    gram: Callable[[Array], Array], misfit: Array, interval: tuple[float, float], degree: int
) -> Array:
    """t with B't = v - Cheb_N(v), from B v - b' (overwritten) and ``degree`` - 1 products BB'."""
    right = misfit.copy()

    def residual(rows: Array) -> tuple[Array, Array]:
        image = gram(rows)
        image += right
        return image, rows[:0]

    none = misfit[:0]
    return chebyshev_correction(
        residual, np.zeros_like(right), *interval, degree, first=(misfit, none)
    )[0]
