"""The balanced executable lift (Lemma structured-normalization), on the agents owned here.

    L_1 = [A  B  alpha W~_m]   v_1 = (b, beta c_*)     L_2 = [0  D           0]   v_2 = (e, 0)
          [beta C_*  0   0 ]                                 [0  gamma W~_q  0]

on (x, z, y) with W~ = P_W(W) and C_* = p_C(CC')C. Every product with W is one neighbor round, so
one action of either channel is nu = deg P_W rounds; nothing global is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import clenshaw, graph_filter, graph_filter_degree
from ccmac.linalg.families import LocalFamily
from ccmac.problem import Problem
from ccmac.realizations.normalized import Channel, InverseRoot
from ccmac.realizations.objective import ExecutionObjective
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.workspace.blocks import block_families, right_hand_sides
from ccmac.workspace.curvature import ScaledCurvature

Array = NDArray[np.float64]


class FilteredGraph:
    """W~ = P_W(W), positive spectrum in [1/2, 3/2], in nu rounds (eq. graph-cheb-filter)."""

    def __init__(self, runtime: Runtime, low: float, high: float) -> None:
        self.runtime, self.low, self.high = runtime, low, high
        self.degree = graph_filter_degree(high / low)

    def __call__(self, block: Array) -> Array:
        """(W~ (x) I) block."""
        return graph_filter(self.runtime.mix, block, self.low, self.high, self.degree)

    def cost(self, width: int) -> Cost:
        """nu rounds of ``width`` floats."""
        return self.degree * self.runtime.mix_cost(width)


class NormalizedLocal:
    """C_* = p_C(CC') C: spectrum of C_*'C_* in [1/2, 3/2]. Cost: 2 deg p_C + 1 products with C."""

    def __init__(self, family: LocalFamily, polynomial: InverseRoot) -> None:
        self.family, self.polynomial = family, polynomial

    @property
    def cost(self) -> Cost:
        """One action."""
        return (2 * self.polynomial.degree + 1) * self.family.cost

    def smooth(self, rows: Array) -> Array:
        """p_C(CC') rows."""
        p = self.polynomial
        return clenshaw(
            p.coefficients, p.low, p.high,
            lambda v: self.family.forward(self.family.adjoint(v)), rows,
        )  # fmt: skip

    def forward(self, x: Array) -> Array:
        """C_* x."""
        return self.smooth(self.family.forward(x))

    def adjoint(self, rows: Array) -> Array:
        """C_*' rows."""
        return self.family.adjoint(self.smooth(rows))


class LocalizedCoupling:
    """A x + B z + alpha W~_m y = b, one row block an agent (eq. coupled-localized)."""

    def __init__(
        self, problem: Problem, space: Space, graph: FilteredGraph | None, alpha: float
    ) -> None:
        self.space, self.graph, self.alpha = space, graph, alpha
        leaf = block_families(problem, space.runtime.ledger)
        self.A, self.B, self.m = leaf["A"], leaf["B"], problem.m
        self.right = right_hand_sides(problem).b.ravel()

    @property
    def cost(self) -> Cost:
        """1 A, 1 B, nu rounds of m floats."""
        products = self.A.cost + self.B.cost
        return products if self.graph is None else products + self.graph.cost(self.m)

    def forward(self, w: Array) -> Array:
        """H u + alpha W~ y, flat."""
        space = self.space
        rows = self.A.forward(space.x(w)) + self.B.forward(space.z(w))
        if self.graph is not None:
            rows += self.alpha * self.graph(space.y(w)).ravel()
        return rows

    def add_adjoint(self, rows: Array, out: Array) -> None:
        """out += (A'a, B'a, alpha W~ a)."""
        space = self.space
        space.x(out)[...] += self.A.adjoint(rows)
        space.z(out)[...] += self.B.adjoint(rows).reshape(space.count, space.q)
        if self.graph is not None:
            space.y(out)[...] += self.alpha * self.graph(rows.reshape(space.count, self.m))


class LiftedCoupledLocal(Channel):
    """L_1; either part may be absent."""

    def __init__(
        self,
        space: Space,
        coupling: LocalizedCoupling | None,
        local: NormalizedLocal | None,
        beta: float,
        c: Array,
    ) -> None:
        self.space, self.coupling, self.local, self.beta = space, coupling, local, beta
        parts = [np.zeros(0)] if coupling is None else [coupling.right]
        self.split = len(parts[0])
        if local is not None:
            parts.append(beta * local.smooth(c))
        self.right = np.concatenate(parts)

    @property
    def cost(self) -> Cost:
        """1 A, 1 B, 2 deg p_C + 1 products with C, nu rounds."""
        total = Cost() if self.coupling is None else self.coupling.cost
        return total if self.local is None else total + self.local.cost

    def forward(self, w: Array) -> Array:
        """(H u + alpha W~ y, beta C_* x)."""
        rows = np.empty(len(self.right))
        if self.coupling is not None:
            rows[: self.split] = self.coupling.forward(w)
        if self.local is not None:
            rows[self.split :] = self.beta * self.local.forward(self.space.x(w))
        return rows

    def adjoint(self, rows: Array) -> Array:
        """(A'a + beta C_*'s, B'a, alpha W~ a)."""
        out = self.space.zeros()
        if self.coupling is not None:
            self.coupling.add_adjoint(rows[: self.split], out)
        if self.local is not None:
            self.space.x(out)[...] += self.beta * self.local.adjoint(rows[self.split :])
        return out

    def price(self, rows: Array) -> Array | None:
        """The agents' own multipliers of the coupled equation; they agree at the solution."""
        if self.coupling is None:
            return None
        return rows[: self.split].reshape(self.space.count, self.coupling.m)


class LiftedSharedConsensus(Channel):
    """L_2; the D rows or the graph rows may be absent."""

    def __init__(
        self,
        space: Space,
        family: LocalFamily | None,
        e: Array,
        graph: FilteredGraph | None,
        gamma: float,
    ) -> None:
        self.space, self.D, self.graph, self.gamma = space, family, graph, gamma
        self.split = 0 if family is None else len(e)
        extra = 0 if graph is None else space.count * space.q
        self.right = np.concatenate([e[: self.split], np.zeros(extra)])

    @property
    def cost(self) -> Cost:
        """1 D, nu rounds of q floats."""
        total = Cost() if self.D is None else self.D.cost
        return total if self.graph is None else total + self.graph.cost(self.space.q)

    def forward(self, w: Array) -> Array:
        """(D z, gamma W~ z)."""
        rows, z = np.empty(len(self.right)), self.space.z(w)
        if self.D is not None:
            rows[: self.split] = self.D.forward(z)
        if self.graph is not None:
            rows[self.split :] = self.gamma * self.graph(z).ravel()
        return rows

    def adjoint(self, rows: Array) -> Array:
        """D'r + gamma W~ s on the copies."""
        out = self.space.zeros()
        z = self.space.z(out)
        if self.D is not None:
            z += self.D.adjoint(rows[: self.split]).reshape(z.shape)
        if self.graph is not None:
            z += self.gamma * self.graph(rows[self.split :].reshape(z.shape))
        return out


@dataclass(frozen=True)
class Penalty:
    """(r/2) ||A x + B z + alpha W~ y - b||^2, zero on the feasible set (eq. bridge-penalty)."""

    weight: float
    coupling: LocalizedCoupling


class PenaltyObjective(ExecutionObjective):
    """Phi_loc = F + penalty: mu = mu_f/2 where the y_i sum to zero, L = L_f + 14 mu_f."""

    def __init__(
        self, problem: Problem, space: Space, constants: ScaledCurvature, penalty: Penalty
    ) -> None:
        super().__init__(
            problem, space, augment=constants.augment,
            mu=constants.mu / 2, L=constants.L + 14 * constants.mu,
        )  # fmt: skip
        self.penalty = penalty

    def gradient(self, w: Array, out: Array | None = None) -> Array:
        """grad Phi_loc(w). Cost: 1 gradient, 2 A, 2 B, 2 nu rounds."""
        out = super().gradient(w, out)
        coupling = self.penalty.coupling
        self.space.y(out)[...] = 0.0
        rows = coupling.forward(w)
        rows -= coupling.right
        rows *= self.penalty.weight
        coupling.add_adjoint(rows, out)
        return out

    @property
    def cost(self) -> Cost:
        """Static cost of one gradient."""
        return super().cost + 2 * self.penalty.coupling.cost
