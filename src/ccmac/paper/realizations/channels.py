"""The two channels of the constraints: exact in one process, or lifted and along the edges.

    K_1 = [E_m A  E_m B]       K_2 = [0  D               ]       canonical, on (x, z)
          [C      0    ]             [0  g (I - Pi) (x) I]

    L_1 = [A  B  alpha W~_m]   L_2 = [0  D           0]          lifted, on (x, z, y)
          [beta C_*  0   0 ]         [0  gamma W~_q  0]

K_2 uses the projector I - Pi in the place of W: the row space, hence the geometry, is the same
(Proposition prop:lift-invariance), and its cost in rounds is modelled anyway. In the balanced
executable lift (Lemma lem:structured-normalization), W~ = P_W(W) and C_* = p_C(CC')C. Every product
with W is one neighbor round, so one action of either channel is nu = deg P_W rounds; nothing global
is ever formed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import LocalFamily
from ccmac.paper.polynomials import graph_filter, graph_filter_degree
from ccmac.paper.realizations.inverse_root import InverseRoot
from ccmac.paper.realizations.normalized import Channel
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.runtime.space import Space
from ccmac.workspace import Workspace
from ccmac.workspace.equations import block_families, right_hand_sides


# -- the parts -----------------------------------------------------------------------------------
class FilteredGraph:
    """W~ = P_W(W) in nu rounds, by default with positive spectrum in [1/2, 3/2].

    Equation eq:graph-cheb-filter. Zero for one agent. A fused simulation multiplies by W~ as one
    n x n matrix and charges the rounds of the execution along the edges.
    """

    def __init__(
        self, runtime: Runtime, low: float, high: float, *, degree: int | None = None
    ) -> None:
        self.runtime = runtime
        self.low = low
        self.high = high
        self.degree = graph_filter_degree(high / low) if degree is None else degree

    def __call__(self, block: Array) -> Array:
        """(W~ (x) I) block."""
        runtime = self.runtime
        runtime.mind_the_time()  # a step may be thousands of these
        if runtime.n == 1 or block.shape[1] == 0:
            return np.zeros_like(block)
        if runtime.fused and runtime.n <= 64:
            runtime.ledger.charge_cost(self.cost(block.shape[1]))
            return np.asarray(self._matrix @ block)
        return graph_filter(runtime.mix, block, self.low, self.high, self.degree)

    @cached_property
    def _matrix(self) -> Array:
        W = self.runtime.network.weights
        every = np.eye(self.runtime.n)
        return graph_filter(lambda v: W @ v, every, self.low, self.high, self.degree)

    def cost(self, width: int) -> Cost:
        """nu rounds of ``width`` floats."""
        if self.runtime.n == 1 or width == 0:
            return Cost()
        return self.degree * self.runtime.mix_cost(width)


class Graph(Protocol):
    """A matrix over the agents, applied to blocks of rows, one for each."""

    def __call__(self, block: Array, /) -> Array:
        """Its product with the block."""

    def cost(self, width: int, /) -> Cost:
        """Of a product with rows of ``width`` floats."""


class Disagreement:
    """I - Pi at once, where all copies are in one process; its rounds are the oracle's."""

    def __call__(self, block: Array) -> Array:
        """(I - Pi) block."""
        return np.asarray(block - block.mean(axis=0))

    def cost(self, width: int) -> Cost:
        return Cost()


class NormalizedLocal:
    """C_* = p_C(CC') C: spectrum of C_*'C_* in [1/2, 3/2]; C itself without a polynomial.

    Cost of an action: 2 deg p_C + 1 products with C.
    """

    def __init__(self, family: LocalFamily, polynomial: InverseRoot | None = None) -> None:
        self.family = family
        self.polynomial = polynomial
        self.cost = (1 if polynomial is None else 2 * polynomial.degree + 1) * family.cost

    def smooth(self, rows: Array) -> Array:
        """p_C(CC') rows."""
        if self.polynomial is None:
            return rows
        return self.polynomial.apply(lambda v: self.family.forward(self.family.adjoint(v)), rows)

    def forward(self, x: Array) -> Array:
        """C_* x."""
        return self.smooth(self.family.forward(x))

    def adjoint(self, rows: Array) -> Array:
        """C_*' rows."""
        return self.family.adjoint(self.smooth(rows))


class SummedCoupling:
    """E_m (A x + B z) = E_m b: a sum over the agents is one product."""

    def __init__(self, work: Workspace) -> None:
        problem = work.problem
        self.space = work.space
        self.coupling = work.coupling
        self.root = float(np.sqrt(problem.n))
        self.right = right_hand_sides(problem).b.sum(axis=0) / self.root
        self.cost = self.coupling.product_cost()

    def forward(self, w: Array) -> Array:
        """E_m (A x + B z)."""
        images, _ = self.coupling.contributions(self.space.x(w), self.space.z(w))
        return np.asarray(images.sum(axis=0) / self.root)

    def add_adjoint(self, rows: Array, out: Array) -> None:
        """out += (A' E_m' r, B' E_m' r)."""
        gx, gz = self.coupling.adjoint(rows[None] / self.root)
        self.space.x(out)[...] += gx
        self.space.z(out)[...] += gz

    def multiplier(self, rows: Array) -> Array:
        """n^{-1/2} times the rows, the same for every agent."""
        return rows[None] / self.root


class LocalizedCoupling:
    """A x + B z + alpha W~_m y = b, one block of rows per agent (Equation eq:coupled-localized)."""

    def __init__(
        self, problem: Problem, space: Space, graph: FilteredGraph | None, alpha: float
    ) -> None:
        self.space = space
        self.graph = graph
        self.alpha = alpha
        leaf = block_families(problem, space.runtime.ledger)
        self.A = leaf["A"]
        self.B = leaf["B"]
        self.m = problem.m
        self.right = right_hand_sides(problem).b.ravel()
        products = self.A.cost + self.B.cost
        self.cost = products if graph is None else products + graph.cost(self.m)

    def forward(self, w: Array) -> Array:
        """H u + alpha W~ y."""
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

    def multiplier(self, rows: Array) -> Array:
        """The agents' own multipliers; they agree at the solution."""
        return rows.reshape(self.space.count, self.m)


# -- the channels --------------------------------------------------------------------------------
class CoupledLocal(Channel):
    """K_1 or L_1 with v_1 = (b, beta c); either part may be absent."""

    def __init__(
        self,
        space: Space,
        coupling: SummedCoupling | LocalizedCoupling | None,
        local: NormalizedLocal | None,
        beta: float,
        c: Array,
    ) -> None:
        self.space = space
        self.coupling = coupling
        self.local = local
        self.beta = beta
        parts = [np.zeros(0)] if coupling is None else [coupling.right]
        self.split = len(parts[0])
        if local is not None:
            parts.append(beta * local.smooth(c))
        self.right = np.concatenate(parts)

    @property
    def cost(self) -> Cost:
        """That of the parts: 1 A, 1 B, 2 deg p_C + 1 products with C, nu rounds in the lift."""
        total = Cost() if self.coupling is None else self.coupling.cost
        return total if self.local is None else total + self.local.cost

    def forward(self, w: Array) -> Array:
        """(coupled rows, beta C_* x)."""
        self.space.runtime.mind_the_time()  # polynomials of a million actions are one call
        rows = np.empty(len(self.right))
        if self.coupling is not None:
            rows[: self.split] = self.coupling.forward(w)
        if self.local is not None:
            rows[self.split :] = self.beta * self.local.forward(self.space.x(w))
        return rows

    def adjoint(self, rows: Array) -> Array:
        """The coupled adjoint, plus beta C_*'s on x."""
        out = self.space.zeros()
        if self.coupling is not None:
            self.coupling.add_adjoint(rows[: self.split], out)
        if self.local is not None:
            self.space.x(out)[...] += self.beta * self.local.adjoint(rows[self.split :])
        return out

    def multiplier(self, rows: Array) -> Array | None:
        return None if self.coupling is None else self.coupling.multiplier(rows[: self.split])


class SharedConsensus(Channel):
    """K_2 or L_2 with v_2 = (e, 0); the D rows or the graph rows may be absent."""

    def __init__(
        self, space: Space, D: LocalFamily | None, e: Array, graph: Graph | None, gamma: float
    ) -> None:
        self.space = space
        self.D = D
        self.graph = graph
        self.gamma = gamma
        self.split = 0 if D is None else len(e)
        extra = 0 if graph is None else space.count * space.q
        self.right = np.concatenate([e[: self.split], np.zeros(extra)])

    @property
    def cost(self) -> Cost:
        """1 D, and the graph's rounds of q floats."""
        total = Cost() if self.D is None else self.D.cost
        return total if self.graph is None else total + self.graph.cost(self.space.q)

    def forward(self, w: Array) -> Array:
        """(D z, gamma W~ z)."""
        self.space.runtime.mind_the_time()
        rows = np.empty(len(self.right))
        z = self.space.z(w)
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
