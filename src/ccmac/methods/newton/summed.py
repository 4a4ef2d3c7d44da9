"""cross-newton where all may know the equations: one sum a Newton step.

A step moves every (x_i, z) to the minimum of the sum of the quadratic models under all equations:
each agent eliminates its own variables, the sum of what is left is the KKT system in (z, mu)
(:mod:`ccmac.methods.system`), solved by everybody alike. The message that sums it looks ahead: it
carries the system at the end of the step and values along it, so that a step of full length pays
one averaging. A step after which the value is higher is cut to the best length seen, and the next
message carries the system there. The first iteration moves the start onto the equations, and all
others stay there. Needs smooth, strongly convex objectives with Hessians.
Cost: 1 argmin, 1 gradient, one averaging of k(k+1)/2 + k + 8 floats, k = q + rank of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, State, known, vector
from ccmac.methods.newton.subspace import ALIKE
from ccmac.methods.system import Whitened
from ccmac.workspace import Workspace
from ccmac.workspace.constraints import Constraints
from ccmac.workspace.schur import LocalModel, residuals

LENGTHS = np.array([0.5**j for j in range(8)])
TRIALS = 12  # steps in a row that were cut, or gained nothing


@dataclass(frozen=True)
class SummedState(State):
    """u and the end of the step that was tried last (or u); multipliers mu of the whitened rows."""

    u: Array = vector()
    ahead: Array = vector()
    mu: Array = known()
    value: float = math.inf
    cut: int = 0
    count: int = 0
    over: bool = False


class SummedNewton(Iteration[SummedState]):
    """The iteration of the module text."""

    def __init__(self, work: Workspace, reduced: Constraints) -> None:
        self.work, self.whitened = work, Whitened(work.problem, reduced)
        self.space = work.space
        self.runtime = work.runtime
        self.problem = work.problem
        self.objectives = [agent.objective for agent in self.problem.agents.values()]

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> SummedState:
        """The user's point."""
        u = self.space.joined(x, z)
        return SummedState(u, u.copy(), np.zeros((1, self.whitened.rank)))

    def step(self, state: SummedState) -> SummedState:
        """Onto the equations first; then look at the end of the step, take or cut it, plan on."""
        if not state.count:
            u = self._feasible(state.u)
            return replace(state, u=u, ahead=u.copy(), count=1)
        models = self._models(state.ahead)
        z = self.space.z(state.ahead)[0]
        mu = state.mu[0]
        W = self.whitened
        move = state.ahead - state.u
        triangles = np.stack([model.triangle() for model in models])
        own = [triangles, residuals(models, z, mu), self._values(state.u, move)]
        sums = [mean[0] * self.problem.n for mean in self.runtime.combine(own)]
        triangle, total, values = sums
        if not self._enough(state, float(values[0])):
            best = int(np.argmin(values))
            ahead = state.u + LENGTHS[best] * move
            lower = values[best] < state.value
            u = ahead if lower else state.u
            return replace(
                state,
                u=u.copy(),
                ahead=ahead,
                cut=state.cut + 1,
                count=state.count + 1,
                value=math.inf if lower else state.value,
                over=state.cut >= TRIALS,
            )
        change = np.zeros(0)
        if W.size:
            change = W.factorized(triangle)(W.lacking(total, z, mu))
        z = z + change[: W.q]
        mu = mu + change[W.q :]
        ahead = self.space.zeros()
        for k, model in enumerate(models):
            self.space.x_of(ahead, k)[...] = model.x(z, mu)
        self.space.z(ahead)[...] = z
        return self._moved(state, ahead, mu, float(values[0]))

    def _moved(self, state: SummedState, ahead: Array, mu: Array, value: float) -> SummedState:
        """The end of the last step is the point, a new end is planned."""
        fall = state.value - value if math.isfinite(state.value) else math.inf
        idle = fall <= ALIKE * abs(value)
        cut = state.cut + 1 if idle else 0
        return replace(
            state,
            u=state.ahead,
            ahead=ahead,
            mu=mu[None],
            value=value,
            cut=cut,
            count=state.count + 1,
            over=cut >= TRIALS,
        )

    def _enough(self, state: SummedState, value: float) -> bool:
        """Whether the whole step, to this value, is taken: unless it rises."""
        if not math.isfinite(state.value):
            return math.isfinite(value)
        return value - state.value <= ALIKE * abs(state.value)

    # -- the agents' own work ----------------------------------------------------------------------
    def _models(self, u: Array) -> list[LocalModel]:
        """f_i near u: u'Hu/2 - g'u with the gradient of f_i at u. Cost: 1 argmin, 1 gradient."""
        self.work.ledger.charge(argmins=1, gradients=1)
        models = []
        for k, f in enumerate(self.objectives):
            x = self.space.x_of(u, k)
            z = self.space.z(u)[k]
            H = f.hessian(x, z)
            slope = np.concatenate(f.gradient(x, z))
            g = H @ np.concatenate([x, z]) - slope
            try:
                model = LocalModel(H, g, self.whitened.kernels[k], self.whitened.A[k])
            except np.linalg.LinAlgError:
                raise MethodRefused(
                    f"method cross-newton, agent {list(self.problem.agents)[k]}: the Hessian is "
                    "not definite on the kernel of C; use cross-apapc"
                ) from None
            models.append(model)
        return models

    def _values(self, u: Array, move: Array) -> Array:
        """f_i along the step, one row an agent."""
        rows = []
        for k, f in enumerate(self.objectives):
            (x, z), (d_x, d_z) = ((self.space.x_of(v, k), self.space.z(v)[k]) for v in (u, move))
            rows.append([f.value(x + t * d_x, z + t * d_z) for t in LENGTHS])
        return np.array(rows)

    def _feasible(self, u: Array) -> Array:
        """The nearest point on all equations: one averaging."""
        W = self.whitened
        z = self.space.z(u)[0]
        inside = [
            kernel.basis.T @ (self.space.x_of(u, k) - kernel.point)
            for k, kernel in enumerate(W.kernels)
        ]
        lacks = np.zeros(W.rank)
        if W.rank:
            shares = np.stack([A @ y for A, y in zip(W.A, inside, strict=True)])
            lacks = W.v - W.Z @ z - self.runtime.average(shares)[0] * self.problem.n
        out = self.space.zeros()
        for k, (kernel, y) in enumerate(zip(W.kernels, inside, strict=True)):
            moved = y + W.A[k].T @ lacks
            self.space.x_of(out, k)[...] = kernel.point + kernel.basis @ moved
        self.space.z(out)[...] = z + W.Z.T @ lacks
        return out

    # -- what others ask ---------------------------------------------------------------------------
    def point(self, state: SummedState) -> tuple[Array, Array]:
        """The end of the step: where the iteration goes next."""
        return self.space.x(state.ahead), self.space.z(state.ahead)

    def finished(self, state: SummedState) -> bool:
        """Steps no longer descend."""
        return state.over

    @property
    def cost(self) -> Cost:
        """Of every step but the first (which has no gradient)."""
        size = self.whitened.size
        width = size * (size + 1) // 2 + size + len(LENGTHS)
        return Cost(argmins=1, gradients=1) + self.runtime.average_cost(width)
