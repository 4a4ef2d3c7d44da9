"""cross-direct: a quadratic problem with few coupled rows and shared variables in one sum.

On x_i = C_i^+ c_i + N_i y_i with the coupled and shared rows whitened, What (y, z) = v_hat
(:class:`ccmac.workspace.reduced.Reduced`; Ahat_i, Zhat its parts), each agent eliminates y_i from
its quadratic, and the sum over agents of

    [[H_zz, .], [0, 0]] - [H_zx; Ahat_i] (N_i'H_xx N_i)^{-1} [H_xz, Ahat_i']

with Zhat in the corner is the whole KKT system in (z, mu): one averaging, solved by everybody
alike. Each further step removes what rounding left (iterative refinement), one averaging of
q + rank floats.
Needs quadratic objectives, definite on ker C_i, and equations that all may know.
Cost: setup one averaging of (q + rank)(q + rank + 1)/2 floats; a step 1 argmin and one averaging.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, rows, vector
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

STEPS = 4  # the solve and three refinements


@dataclass(frozen=True)
class DirectState(State):
    """The point u = (x, copies of z), and the multipliers of the whitened rows."""

    u: Array = vector()
    mu: Array = rows()
    count: int = 0


class _Local:
    """One agent's quadratic on its kernel: H_xx factorized, the images of (z, mu) eliminated."""

    def __init__(self, H: Array, g: Array, N: Array, point: Array, A_hat: Array) -> None:
        d, q = len(point), len(g) - len(point)
        self.N, self.A_hat, self.point = N, A_hat, point
        self.H_xz, self.H_zz = N.T @ H[:d, d:], H[d:, d:]
        self.factor = scipy.linalg.cho_factor(N.T @ H[:d, :d] @ N) if N.shape[1] else None
        self.g_x, self.g_z = N.T @ (g[:d] - H[:d, :d] @ point), g[d:] - H[d:, :d] @ point
        self.H_xx = N.T @ H[:d, :d] @ N
        self.side = np.hstack([self.H_xz, A_hat.T])
        self.solved = self.solve(self.side)
        self.q = q

    def solve(self, right: Array) -> Array:
        """(N'H_xx N)^{-1} right."""
        if self.factor is None:
            return np.zeros_like(right)
        return np.asarray(scipy.linalg.cho_solve(self.factor, right, check_finite=False))

    def schur(self, size: int) -> Array:
        """This agent's part of the KKT matrix in (z, mu)."""
        part = -self.side.T @ self.solved
        part[: self.q, : self.q] += self.H_zz
        return part[:size, :size]

    def inner(self, z: Array, mu: Array) -> Array:
        """y that minimises at (z, mu)."""
        return self.solve(self.g_x - self.H_xz @ z - self.A_hat.T @ mu)

    def residual(self, y: Array, z: Array, mu: Array) -> Array:
        """This agent's part of what the equations in (z, mu) lack."""
        slope = self.g_z - self.H_zz @ z - self.H_xz.T @ y
        return np.concatenate([slope, -self.A_hat @ y])


class Direct(Iteration[DirectState]):
    """The first step solves; each further one refines."""

    def __init__(self, work: Workspace, reduced: Reduced) -> None:
        self.work, self.reduced = work, reduced
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        q, rank, m = self.problem.q, reduced.rank, self.problem.m
        self.combine = reduced.U / reduced.sigma  # whitened rows = combine' times scaled rows
        top = self.combine[:m].T * reduced.unit
        self.Z_hat = top @ reduced.Bbar.astype(np.float64) + self.combine[m:].T @ reduced.D
        self.v_hat = self.combine.T @ reduced.right
        self.agents: list[_Local] = []
        for k, (i, agent) in enumerate(self.problem.agents.items()):
            H, g, _ = agent.objective.quadratic(self.problem.d[i], q)
            dense = H.toarray() if hasattr(H, "toarray") else np.asarray(H)
            kernel = reduced.kernels[k]
            A_hat = top @ (reduced.A[k] @ kernel.basis)
            try:
                self.agents.append(_Local(dense, np.asarray(g), kernel.basis, kernel.point, A_hat))
            except np.linalg.LinAlgError:
                raise MethodRefused(
                    f"method cross-direct, agent {i}: the Hessian is not definite on the kernel "
                    "of C; use cross-apapc"
                ) from None
        work.ledger.charge(argmins=1, A=rank if "A" in self.problem.present else 0)
        self._factorize(q, rank)

    def _factorize(self, q: int, rank: int) -> None:
        """Sum the agents' parts (the triangle of a symmetric matrix): one averaging."""
        size = q + rank
        upper = np.triu_indices(size)
        parts = np.stack([local.schur(size)[upper] for local in self.agents])
        total = self.runtime.average(parts)[0] * self.problem.n if size else np.zeros(0)
        K = np.zeros((size, size))
        K[upper] = total
        K = K + np.triu(K, 1).T
        K[q:, :q] += self.Z_hat
        K[:q, q:] += self.Z_hat.T
        self.lu = scipy.linalg.lu_factor(K) if size else None

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
        if self.lu is not None:
            lacks = [local.residual(local.inner(z, mu), z, mu) for local in self.agents]
            total = self.runtime.average(np.stack(lacks))[0] * n
            total[:q] -= self.Z_hat.T @ mu
            total[q:] += self.v_hat - self.Z_hat @ z
            change = scipy.linalg.lu_solve(self.lu, total, check_finite=False)
            z, mu = z + change[:q], mu + change[q:]
        u = self.space.zeros()
        for k, local in enumerate(self.agents):
            self.space.x_of(u, k)[...] = local.point + local.N @ local.inner(z, mu)
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
