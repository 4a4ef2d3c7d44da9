"""cross-direct: a quadratic problem with few coupled rows and shared variables in one sum.

Each agent eliminates its own variables (:mod:`ccmac.methods.summed`); one averaging sums the
systems, everybody solves alike. Each further step removes what rounding left (iterative
refinement), one averaging of q + rank floats.
Needs quadratic objectives, definite on ker C_i, and equations that all may know.
Cost: setup one averaging of (q + rank)(q + rank + 1)/2 floats; a step 1 argmin and one averaging.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, rows, vector
from ccmac.methods.summed import LocalModel, Solve, Whitened, residuals
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

STEPS = 4  # the solve and three refinements


@dataclass(frozen=True)
class DirectState(State):
    """The point u = (x, copies of z), and the multipliers of the whitened rows."""

    u: Array = vector()
    mu: Array = rows()
    count: int = 0


class Direct(Iteration[DirectState]):
    """The first step solves; each further one refines."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
        self.work, self.reduced = work, reduced
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.whitened = Whitened(self.problem, reduced)
        self.agents: list[LocalModel] = []
        for k, (i, agent) in enumerate(self.problem.agents.items()):
            H, g, _ = agent.objective.quadratic(self.problem.d[i], self.problem.q)
            dense = H.toarray() if hasattr(H, "toarray") else np.asarray(H)
            kernel, A_hat = reduced.kernels[k], self.whitened.A[k]
            try:
                self.agents.append(LocalModel(dense, np.asarray(g), kernel, A_hat))
            except np.linalg.LinAlgError:
                raise MethodRefused(
                    f"method cross-direct, agent {i}: the Hessian is not definite on the kernel "
                    "of C; use cross-apapc"
                ) from None
        work.ledger.charge(argmins=1, A=reduced.rank if "A" in self.problem.present else 0)
        self.solve = self._summed()

    def _summed(self) -> Solve | None:
        """The agents' parts (triangles of symmetric matrices): one averaging."""
        if not self.whitened.size:
            return None
        parts = np.stack([self.whitened.triangle(local.schur()) for local in self.agents])
        return self.whitened.factorized(self.runtime.average(parts)[0] * self.problem.n)

    def start(
        self, x: Array, z: Array, dual: Array | None = None, price: Array | None = None
    ) -> DirectState:
        """The user's point (the first step does not depend on it)."""
        u = self.space.zeros()
        self.space.x(u)[...], self.space.z(u)[...] = x, z
        return DirectState(u, np.zeros((1, self.reduced.rank)))

    def step(self, state: DirectState) -> DirectState:
        """Solve for what the equations lack; the first time that is everything."""
        q, n = self.problem.q, self.problem.n
        z, mu = np.array(self.space.z(state.u)[0]), np.array(state.mu[0])
        self.work.ledger.charge(argmins=1)
        if self.solve is not None:
            total = self.runtime.average(residuals(self.agents, z, mu))[0] * n
            change = self.solve(self.whitened.lacking(total, z, mu))
            z, mu = z + change[:q], mu + change[q:]
        u = self.space.zeros()
        for k, local in enumerate(self.agents):
            self.space.x_of(u, k)[...] = local.x(z, mu)
        self.space.z(u)[...] = z
        return DirectState(u, mu[None], state.count + 1)

    def point(self, state: DirectState) -> tuple[Array, Array]:
        """The minimisers at the current (z, mu)."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: DirectState) -> bool:
        """Refinements beyond the third gain nothing in this precision."""
        return state.count >= STEPS

    @property
    def cost(self) -> Cost:
        """1 argmin and one averaging."""
        return Cost(argmins=1) + self.runtime.average_cost(self.problem.q + self.reduced.rank)


@dataclass(frozen=True)
class CrossDirect(Method):
    """Local elimination, one sum, a dense solve by everybody."""

    name = "cross-direct"
    summary = "quadratics with few coupled rows and shared variables: one sum, solved by all alike"
    needs = frozenset({"smooth", "strongly convex", "quadratic"})
    reveals = "the equations, and eliminated Hessians A_i H_i^-1 A_i'"

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """Gather the equations, sum the eliminated Hessians."""
        reduced = work.reduced
        if reduced is None:
            raise MethodRefused(
                "method cross-direct needs equations small enough to be known to all "
                f"(m = {work.problem.m}, q = {work.problem.q}); use cross-cg"
            )
        settings = {"rows": reduced.rank, "condition": reduced.condition}
        return Prepared(
            Direct(work, reduced), None, "summed", "few coupled rows and shared variables",
            settings, first_check=1,
        )  # fmt: skip
