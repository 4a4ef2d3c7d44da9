"""cross-newton where all columns together are fewer than the rows: everybody minimises alone.

On :mod:`ccmac.workspace.dual` with an h that all know. Agent i, g_i(x) = x'H_i x/2 - s_i'x,
H_i = L_i L_i', turns its own unknowns by an orthogonal matrix O_i that nobody else knows,

    x_i = H_i^{-1} s_i + R_i c_i,    R_i = L_i'^{-1} O_i,    E_i = -A_i R_i,

and one averaging brings all E_i together. Then everybody knows the whole problem,

    F = F_0 + |c|^2/2 + h(z(c)),    z(c) = (sum_i E_i c_i - a)/beta,

and Newton's method needs no message. Others learn E_i E_i' = A_i H_i^{-1} A_i', not the columns.
Strong convexity is 1 in c, so that |grad F(c)| bounds |x - x*| in the norm of the H_i.
Cost: 1 argmin a step. Setup: an averaging in which an agent's row has m floats for each of its own
columns, and one of m floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from ccmac.certificates.bound import Proved
from ccmac.certificates.stopping import Judge, Stop
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.blocks import dense
from ccmac.linalg.extended import product
from ccmac.linalg.tolerances import EPS
from ccmac.methods.base import Iteration, Prepared, Request, State, known, vector
from ccmac.methods.newton.eliminated import Reduced
from ccmac.workspace import Workspace
from ccmac.workspace.dual import Explicit, gathered_rows, rotation
from ccmac.workspace.equations import right_hand_sides

FLOATS = 2**26  # of all E_i, which every agent keeps
FALLING = 1e-9  # share of F: a step that gains as much goes on, whatever the gradient does


def has_range(work: Workspace, explicit: Explicit) -> bool:
    """Whether the columns are few, all know h, and no agent has equations of its own."""
    columns = int(work.curvature.d.sum())
    # of all agents together
    few = 0 < columns < work.problem.m and columns <= 1000
    small = columns * work.problem.m <= FLOATS
    return few and small and explicit.common and "C" not in work.problem.present


class Turned:
    """All E_i as rows (columns x m), the R_i of the agents here, x at c = 0, and a."""

    def __init__(self, work: Workspace, explicit: Explicit) -> None:
        self.problem = work.problem
        self.space = work.space
        self.runtime = work.runtime
        sizes = work.curvature.d.astype(int)
        starts = np.cumsum([0, *sizes])
        self.places = [slice(starts[i], starts[i + 1]) for i in self.problem.agents]
        self.x_parts = explicit.x_parts
        self.R, self.E = work.once("range", lambda: self._gathered(sizes))
        lengths = [float(np.linalg.norm(R, 2)) if R.size else 0.0 for R in self.R]
        self.lengths = self.runtime.piggyback(np.array(lengths)[:, None], whole=True)
        self.x0 = np.zeros_like(self.space.x(self.space.zeros()))
        images = -right_hand_sides(self.problem).b
        for k, (part, agent) in enumerate(
            zip(self.x_parts, self.problem.agents.values(), strict=True)
        ):
            H, s, _ = part.quadratic_at(self.space.d[k])
            if s.any():
                own = np.linalg.solve(dense(H), s)
                self.space.x_of(self.x0, k)[...] = own
                if agent.A is not None:
                    images[k] += agent.A @ own
        self.a = self.runtime.average(images)[0] * self.problem.n

    def _gathered(self, sizes: Any) -> tuple[list[Array], Array]:
        agents = self.problem.agents.values()
        m = self.problem.m
        R = [
            _turned(part.quadratic_at(d)[0], agent.A, d)
            for part, agent, d in zip(self.x_parts, agents, self.space.d, strict=True)
        ]
        blocks = [
            np.zeros((m, turn.shape[1])) if agent.A is None else -np.asarray(agent.A @ turn)
            for agent, turn in zip(agents, R, strict=True)
        ]
        return R, gathered_rows(self.runtime, blocks, [int(d) for d in sizes], m)

    def unturned(self, c: Array) -> Array:
        """R_i c_i, flat."""
        out = np.zeros_like(self.x0)
        for k, (R, place) in enumerate(zip(self.R, self.places, strict=True)):
            self.space.x_of(out, k)[...] = R @ c[place]
        return out

    def placed(self, c: Array, z: Array) -> Array:
        """(x, copies of z) at c."""
        u = self.space.zeros()
        self.space.x(u)[...] = self.x0 + self.unturned(c)
        self.space.z(u)[...] = z
        return u


def _turned(H: Any, A: Any, d: int) -> Array:
    """R with R'HR = I, by a random rotation that only who has A can draw again."""
    L = np.linalg.cholesky(dense(H))
    return np.asarray(scipy.linalg.solve_triangular(L, rotation(A, d), lower=True, trans="T"))


@dataclass(frozen=True)
class RangeState(State):
    """u = (x, copies of z); c, and the length ``gap`` of the gradient there."""

    u: Array = vector()
    c: Array = known()
    gap: float = math.inf
    least: float = math.inf
    waited: int = 0
    over: bool = False


class RangeNewton(Iteration[RangeState]):
    """The iteration of the module text."""

    def __init__(self, work: Workspace, explicit: Explicit) -> None:
        self.work = work
        self.explicit = explicit
        self.space = work.space
        self.runtime = work.runtime
        self.turned = Turned(work, explicit)
        self.E = self.turned.E
        self.reduced = Reduced(explicit, self.turned.a)

    def prepared(self, judge: Judge, request: Request) -> Prepared:
        """A run that asks ``judge`` after every step."""
        stopping = None if request.reference else Stop(judge, every=True)
        settings = {"columns": len(self.E), "reveals": "A_i H_i^-1 A_i'"}
        why = "few columns: all of them once, turned"
        return Prepared(self, stopping, "range", why, settings, proves=True)

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> RangeState:
        """The user's point; Newton's method starts at c = 0, which all know."""
        none = np.zeros((1, len(self.E)))
        return RangeState(self.space.joined(x, z), none)

    def step(self, state: RangeState) -> RangeState:
        """One Newton step with a line search, at everybody."""
        self.work.ledger.charge(argmins=1)
        c, z, value, fall = self.reduced.stepped(self.E, state.c[0])
        gradient = self.reduced.gradient(self.E, c, self.explicit.slope(z))
        gap = float(np.linalg.norm(gradient))
        falls = gap < state.least or fall > FALLING * abs(value)
        waited = 0 if falls else state.waited + 1
        return replace(
            state,
            u=self.turned.placed(c, z),
            c=c[None],
            gap=gap,
            least=min(gap, state.least),
            waited=waited,
            # of |c|^2: a decrement that is rounding
            # steps without a smaller gradient: nothing is left to gain
            over=bool(fall <= 1e-26 * float(c @ c)) or waited >= 5,
        )

    def convexity(self, z: Array, r: float) -> float:
        """Strong convexity of F in x between the point with this z and the solution; r >= |grad F|.

        Terms with |third derivative| <= k (second) let F'' change by at most exp(k t) on a way
        along which no score moves by more than t. With nu = |grad F| in the norm of F''^{-1} and
        s_j that of the score e_j'c + b, 2 k nu max s_j <= log 2 keeps F''/2 up to the solution,
        which is then not farther than 2 nu.
        """
        h = self.explicit
        k = h.parts[0].concordance
        if k is None and h.parts[0].convex:
            return 0.0
        hessian = h.gram(z, self.E) / h.beta**2
        hessian[np.diag_indices_from(hessian)] += 1.0
        values, basis = np.linalg.eigh(hessian)
        rounding = EPS * sum(self.E.shape) * float(values[-1])
        least = float((values[0] - rounding) / self.turned.lengths.value.max() ** 2)
        if least <= 0 or not k:
            return max(0.0, least if k == 0 else 0.5 * least)  # half: an estimate, if not convex
        means, total = h.parts[0].mean_weights(z)
        turned = (basis / np.sqrt(values)).T @ self.E
        turned -= (turned @ means)[:, None]
        moves = float(np.max(np.einsum("kj,kj->j", turned, turned))) / h.beta**2
        moves += 1.0 / (self.work.problem.n * total) if total else 0.0
        near = 2.0 * k * (r / math.sqrt(least)) * math.sqrt(moves) <= math.log(2.0)
        return 0.5 * float(least) if near else 0.0

    # -- what others ask ---------------------------------------------------------------------------
    def refined(self, state: RangeState, found: Proved) -> Array:
        """x after one more Newton step, from a gradient in the long format at a point judged.

        Cost: 1 A, one averaging of a float a column.
        """
        self.work.ledger.charge_cost(self.work.coupling.A.cost)
        own = np.zeros((self.space.count, len(self.E)))
        agents = self.work.problem.agents.values()
        for k, (agent, R, place) in enumerate(
            zip(agents, self.turned.R, self.turned.places, strict=True)
        ):
            left: Any = self.space.x_of(found.gradient_x, k)
            if agent.A is not None:
                left = left + product(agent.A.T, found.multiplier)
            own[k, place] = R.T @ left.astype(np.float64)
        gradient = self.runtime.average(own)[0] * self.work.problem.n
        gram = self.explicit.gram(self.reduced.shared(state.c[0] @ self.E), self.E)
        step = self.reduced.descent(gradient, gram)
        return found.x + self.turned.unturned(self.runtime.common(step))

    def point(self, state: RangeState) -> tuple[Array, Array]:
        """x and the z that follows."""
        return self.space.x(state.u), self.space.z(state.u)

    def finished(self, state: RangeState) -> bool:
        """Steps no longer descend."""
        return state.over

    @property
    def cost(self) -> Cost:
        """Of every step."""
        return Cost(argmins=1)
