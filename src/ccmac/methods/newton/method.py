"""cross-newton: smooth objectives with second derivatives, few sums.

Where the coupled rows give z, Newton's method that everybody runs alone on columns that were turned
(:mod:`ccmac.methods.newton.compressed`), or on a growing span of multipliers
(:mod:`ccmac.methods.newton.eliminated`). Else, where all may know the equations, one sum a Newton
step:

A step moves every (x_i, z) to the minimum of the sum of the quadratic models under all equations:
each agent eliminates its own variables, the sum of what is left is the KKT system in (z, mu)
(:mod:`ccmac.methods.direct`), solved by everybody alike. The message that sums it looks ahead: it
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

from ccmac.certificates.gap import Goal
from ccmac.certificates.stopping import Stop
from ccmac.certificates.structure import ExplicitBound, ExplicitJudge
from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, Method, Prepared, Request, State, known, option, vector
from ccmac.methods.direct import Whitened
from ccmac.methods.interior.alone import Alone, AloneJudge
from ccmac.methods.newton.compressed import RangeNewton, has_range
from ccmac.methods.newton.eliminated import ALIKE, EliminatedNewton
from ccmac.objectives.concomitant import ConcomitantHuber
from ccmac.plans import SKETCH, SUM
from ccmac.workspace import Workspace
from ccmac.workspace.dual import Explicit, planned_size
from ccmac.workspace.equations import Constraints
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


STEEP = 1e-2  # least scale over the labels' deviation: Newton's steps lose their digits
REVEAL = "range: columns may be sent once, turned (A_i H_i^-1 A_i'); sketch: single images of them"
USUAL = 7  # iterations of the summed form, as counted on random problems (6 to 9)


def summable(work: Workspace) -> Constraints | None:
    """The equations, where all may know them and every objective has a Hessian."""
    able = {"smooth", "strongly convex"} <= work.capabilities
    return work.gather_constraints() if able and work.curvature.has_hessian.all() else None


@dataclass(frozen=True)
class CrossNewton(Method):
    """Newton steps on what one averaging each can sum.

    Parameters
    ----------
    sketch : int, optional
        Random vectors that open the span of multipliers, in one averaging.
    reveal : {"range", "sketch"}, optional
        "range": columns may be sent once, turned; "sketch": single images of them.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((30, 6))
    >>> problem = ccmac.vfl.problem(X, np.sign(X[:, 0]), 3, loss="logistic")
    >>> ccmac.solve(problem, "ring", ccmac.methods.CrossNewton()).status
    'optimal'
    """

    name = "cross-newton"
    summary = "Newton's method for smooth losses, one averaging a step"
    needs = frozenset({"smooth"})
    reveals = "A_i (g_i'')^-1 A_i' w for multipliers w that all know, or eliminated Hessians"

    sketch: int | None = option(
        None, int, "random vectors that open the span of multipliers, in one averaging"
    )

    reveal: str | None = option(None, str, REVEAL, choices=("range", "sketch"))

    def prepare(self, work: Workspace, request: Request) -> Prepared:
        """The form that fits the problem."""
        if (explicit := work.gather_explicit()) is not None:
            if self.takes_range(work, request):
                return self._range(work, explicit, request)
            return self._eliminated(work, explicit, request)
        reduced = summable(work)
        if reduced is not None:
            return Prepared(
                SummedNewton(work, reduced),
                None,
                "summed",
                "few coupled and shared variables",
                {"rows": reduced.rank},
                USUAL,
                first_check=4,
            )
        curved = "strongly convex" in work.capabilities
        raise MethodRefused(
            "method cross-newton needs coupled rows that give z (every B_i a sparse multiple of "
            "the identity, no D; quadratic and strongly convex in x, smooth and entry by entry in "
            "z), or strongly convex objectives with Hessians and equations small enough to be "
            f"known to all (m = {work.problem.m}, q = {work.problem.q}); use "
            f"{'cross-apapc' if curved else 'cross-sliding'}"
        )

    def takes_range(self, work: Workspace, request: Request) -> bool:
        """Whether the columns are sent, turned: if asked for, or where cheaper and nobody hides.

        Everybody minimises alone then, to rounding.
        """
        explicit = work.gather_explicit()
        if self.reveal == "sketch" or self.sketch is not None or explicit is None:
            return False
        if not has_range(work, explicit):
            return False
        hidden = work.runtime.averaging.hides or work.runtime.apart
        if self.reveal == "range" or hidden:
            return self.reveal == "range"
        bills = [request.costs.bill(cost) for cost in self._ways(work, explicit, request)]
        return bills[0] <= bills[1]

    def sent(self, work: Workspace, request: Request) -> tuple[str, Cost]:
        """(regime, what is averaged) of the form that is taken."""
        if (explicit := work.gather_explicit()) is None:
            k = work.problem.m + work.problem.q
            return SUM, USUAL * work.runtime.average_cost(k * (k + 1) // 2 + k)
        columns, sketch = self._ways(work, explicit, request)
        ranged = self.takes_range(work, request)
        return (SUM, columns) if ranged else (SKETCH, sketch)

    def _ways(self, work: Workspace, explicit: Explicit, request: Request) -> tuple[Cost, Cost]:
        """All columns once, each proof refining the point; a block of vectors, then one a step, of
        the directions left as many as their condition asks for if all were alike.
        """
        m = work.problem.m
        average = work.runtime.average_cost
        d = work.curvature.d.astype(int)
        columns = work.runtime.vectors_cost([m * int(k) for k in d])
        columns = columns + 3 * average(m) + average(int(d.sum()))
        table = work.curvature
        bent = float(table.L_z.sum()) * float(np.sum(explicit.norms**2)) / explicit.beta**2
        mu = float(table.mu_x[table.d > 0].min(initial=math.inf))
        condition = 1.0 + bent / (mu * max(explicit.rank, 1))
        needed = math.sqrt(condition) * math.log(2.0 / min(request.plan_tol, 1.0)) / 2
        size = self._size(work, explicit, request)
        steps = max(2, min(explicit.rank - size, math.ceil(min(needed, 1e9))))
        return columns, average(m * (1 + size)) + (steps + 5) * average(m)

    def _size(self, work: Workspace, explicit: Explicit, request: Request) -> int:
        """Vectors that open the span."""
        planned = planned_size(work.runtime, work.problem.m, request.costs)
        return min(planned if self.sketch is None else self.sketch, explicit.rank)

    def _range(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        h = explicit.parts[0]
        if isinstance(h, ConcomitantHuber):
            small = h.least < STEEP * float(np.std(h.y))
            kind = Alone if small else RangeNewton
            iteration = kind(work, explicit)
            start = request.x0, request.z0
            return iteration.prepared(AloneJudge(iteration, Goal(request.tol), start), request)
        iteration = RangeNewton(work, explicit)
        bound = ExplicitBound(work, explicit, iteration.convexity)
        judge = ExplicitJudge(bound, request.tol, iteration.refined)
        return iteration.prepared(judge, request)

    def _eliminated(self, work: Workspace, explicit: Explicit, request: Request) -> Prepared:
        size = self._size(work, explicit, request)
        iteration = EliminatedNewton(work, explicit, size, request.seed)
        stopping = None
        if not request.reference:
            bound = ExplicitBound(work, explicit)
            judge = ExplicitJudge(bound, request.tol, iteration.refined)
            stopping = Stop(judge, every=True)
        settings = {
            "sketch": size,
            "span": iteration.capacity,
            "shared losses": "the same at all agents" if explicit.common else "summed",
        }
        return Prepared(
            iteration, stopping, "eliminated", "the coupled rows give z", settings, proves=True
        )
