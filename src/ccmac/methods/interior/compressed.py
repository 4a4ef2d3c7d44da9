"""Long coupled rows with few columns: the same problem on the range of all A_i.

Where B_i = beta_i I and f_i = g_i(x_i) + (a_i/2)||z||^2 - s_i'z + const, the coupled rows keep z on
the range of (A_1 ... A_n, sum b_i). With an orthonormal basis Q of it, z = Q t and

    sum_i (Q'A_i) x_i + beta_i t = sum_i Q'b_i,     g_i(x_i) + (a_i/2)||t||^2 - (Q's_i)'t

is the same problem with as many rows as there are columns, not as there are samples. A hinge loss
of z becomes one of Q t; where all hold the same share of it, agent 0 works for all. Q is from one
message with the columns of A_i, turned by a rotation that agent i alone knows (drawn by a digest
of A_i): others learn A_i A_i' and nothing of its columns. What is lost by rounding is bounded:

    |F(x) - F_t(x)| <= a (eta T^2 + 2 e T + e^2)/2 + ||s|| e,   e = (delta R + delta_b)/|beta|,

for points of norm R with ||t|| <= T, delta the part of the A_i off the range of Q and
eta = ||Q'Q - I||; of a hinge loss ||s|| is the Lipschitz constant. Where a > 0, F - F* <= G puts
the solution's t within sqrt(2 G / a) of the point's.
Cost: one averaging of m (d_i + 1) floats an agent, d_i its columns; then that of a small problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ccmac.certificates.stopping import Check
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries
from ccmac.linalg.tolerances import EPS
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.stopping import DualityStop
from ccmac.objectives.base import Function
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.intercept import Intercept
from ccmac.objectives.loss import Hinge, Pinball
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.problem import Agent, Problem
from ccmac.runtime.base import FLOAT_BYTES, Runtime
from ccmac.workspace import Workspace
from ccmac.workspace.declared import CurvatureTable
from ccmac.workspace.dual import FLOATS, Explicit, digest, gathered_rows, norm_bound, rotation
from ccmac.workspace.equations import right_hand_sides

WIDE = 4  # rows for each column up to which a matrix of rows is summed instead
COLUMNS = 500  # of all agents together
HINGE_FLOATS = 28  # kept by the agent that works for all, times rows times columns (as measured)
ROOM = 2**30  # bytes that it may keep
HINGE = 2.0
ALONE = 3.0


def compressible(work: Workspace) -> int:
    """Bytes kept by the agent that keeps most, where the problem has the form and is worth it; 0
    elsewhere. One reduction where sizes say so, once.
    """
    if work.stack is not None or work.runtime.averaging.hides:
        return 0
    return work.once("compressible", lambda: _compressible(work))


def compressed(work: Workspace) -> tuple[Compressed, Workspace]:
    """The problem on the range, and what follows from it; where it is compressible."""

    def ask() -> tuple[Compressed, Workspace]:
        found = Compressed(work.problem, work.runtime, work.curvature, pooled=_alike(work))
        return found, Workspace(found.problem, work.runtime)

    return work.once("compressed", ask)


def alone(work: Workspace) -> Explicit | None:
    """Where moreover all know the one loss with kinks, next to quadratics with a strong convexity:
    everybody minimises alone (:mod:`ccmac.methods.interior.alone`).
    """
    table = work.curvature
    curved = table.mu_x[table.d > 0].min(initial=math.inf) > 0
    if not (curved and _alike(work)) or "C" in work.problem.present:
        return None
    known = _known(work)
    return Explicit(work.problem, work.runtime, table, known) if known[0, 0] == ALONE else None


def _known(work: Workspace) -> Array:
    """Of all agents (kind, bound on |A_i|, digest of the loss with kinks)."""

    def ask() -> Array:
        return work.runtime.gather(np.array([_digest(a) for a in work.problem.agents.values()]))

    return work.once("kinds", ask)


def _alike(work: Workspace) -> bool:
    """Whether all agents hold the same share of one loss with kinks."""
    known = _known(work)[:, [0, 2, 3, 4]]
    return bool(known[0, 0] >= HINGE and (known == known[0]).all())


def _compressible(work: Workspace) -> int:
    problem = work.problem
    table = work.curvature
    columns = int(table.d.sum())
    vectors = columns + 1
    known = table.multiples is not None and table.separable and table.polyhedral
    own = table.conic or "D" in problem.present or problem.limited
    if not known or own or not math.fsum(table.multiple):
        return 0
    few = WIDE * vectors < problem.m and columns <= COLUMNS
    if not few or problem.m * vectors * work.runtime.n > FLOATS:
        return 0
    kinds = _known(work)[:, 0]
    entries = HINGE_FLOATS if (kinds == HINGE).any() else 1
    kept = FLOAT_BYTES * entries * problem.m * max(columns, 1)
    return kept if kinds.all() and (entries == 1 or kept <= ROOM) else 0


def _kind(agent: Agent) -> float:
    """Which of the forms the agent's objective has, if its A_i has entries; 0: none."""
    f = agent.objective
    if not isinstance(f, Separable) or not (agent.A is None or has_entries(agent.A)):
        return 0.0
    hinge = _hinge(f.z_part)
    if hinge is not None:
        if hinge.M is not None:
            return 0.0
        quadratic = f.x_part is not None and "quadratic" in f.x_part.capabilities
        return ALONE if quadratic and not hinge.ridge else HINGE
    return 1.0 if f.z_part is None or f.z_part.isotropic() is not None else 0.0


def _hinge(loss: Function | None) -> Hinge | Pinball | None:
    """The loss with kinks, also inside an Intercept."""
    inner = loss.loss if isinstance(loss, Intercept) else loss
    return inner if isinstance(inner, Hinge | Pinball) else None


def slope(loss: Function | None, z: Array, multipliers: Array, share: float) -> Array:
    """A subgradient of the loss at z: of a hinge the one that the multipliers of its rows give."""
    if loss is None or not share:
        return np.zeros_like(z)
    hinge = _hinge(loss)
    if hinge is not None:
        one = sp.eye_array(len(z), format="csr")
        term = hinge.epigraph(one, share, intercept=hinge is not loss)
        return np.asarray(share * hinge.ridge * z + term.R.T @ term.steady(multipliers))
    return loss.gradient_at(z)


class Compressed:
    """Q and the small ``problem``; ``offset`` is F less its objective."""

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, *, pooled: bool
    ) -> None:
        self.n = problem.n
        self.m = problem.m
        self.q = problem.q
        self.runtime = runtime
        self.beta = math.fsum(table.multiple)
        self._sizes = [int(d) for d in table.d]
        self.Q = self._range(problem)
        uneven = self._inner(self.Q) - np.eye(self.rank)
        self._uneven = float(runtime.common(np.array([_length(uneven)]))[0])
        self.pooled = pooled
        self.shares = {i: problem.n * (i == 0) if self.pooled else 1 for i in problem.agents}
        agents = {}
        scalars = []
        for i, agent in problem.agents.items():
            agents[i], numbers = self._own(
                agent, problem.d[i], float(table.multiple[i]), self.shares[i]
            )
            scalars.append(numbers)
        self.problem = Problem(
            agents, n=problem.n, q=self.rank, m=self.rank, present=problem.present
        )
        self._numbers = runtime.piggyback(np.array(scalars), whole=True)

    @property
    def rank(self) -> int:
        """Rows of the small problem."""
        return int(self.Q.shape[1])

    def _range(self, problem: Problem) -> Array:
        """An orthonormal basis, the same at all agents: one averaging."""
        widths = [d + 1 for d in self._sizes]
        columns = gathered_rows(self.runtime, list(self._turned(problem)), widths, self.m)
        last = np.cumsum([d + 1 for d in self._sizes]) - 1
        side = columns[last].sum(axis=0)
        Y = np.delete(columns, last, axis=0).T
        typical = float(np.linalg.norm(Y)) / math.sqrt(max(Y.shape[1], 1))
        length = float(np.linalg.norm(side))
        if length > 0 and typical > 0:
            Y = np.column_stack([Y, side * (typical / length)])
        Q, R = np.linalg.qr(Y)
        U, sigma, _ = np.linalg.svd(R)
        sigma = self.runtime.common(sigma)
        rank = int(np.count_nonzero(sigma > 8 * EPS * max(Y.shape) * sigma[0])) if typical else 0
        return np.ascontiguousarray(Q @ U[:, :rank])

    def _turned(self, problem: Problem) -> Iterator[Array]:
        """Agent by agent the columns of A_i, turned, then b_i."""
        sides = right_hand_sides(problem).b
        for (i, agent), b in zip(problem.agents.items(), sides, strict=True):
            d = self._sizes[i]
            turned = np.zeros((self.m, d)) if agent.A is None else agent.A @ rotation(agent.A, d)
            yield np.column_stack([np.asarray(turned), b])

    def _inner(self, M: Array) -> Array:
        """Q'M, with at most 2 sqrt(m) + 2 roundings of an entry one after the other."""
        size = math.isqrt(self.m) + 1
        starts = range(0, self.m, size)
        pieces = [self.Q[k : k + size].T @ M[k : k + size] for k in starts]
        return np.asarray(np.sum(pieces, axis=0))

    def _own(self, agent: Agent, d: int, beta: float, share: int) -> tuple[Agent, list[float]]:
        """One agent's part, and [delta_i, a_i, |s_i|, constant, |b_i|]."""
        Q = self.Q
        f = agent.objective
        assert isinstance(f, Separable)
        A = np.zeros((self.m, d)) if agent.A is None else dense(agent.A)
        z_part, a, steep, constant = self._loss(f.z_part, share)
        small = self._inner(A)
        b = None if agent.b is None else self._inner(agent.b)
        changed = Agent(
            Separable(x=f.x_part, z=z_part),
            A=small,
            B=beta * np.eye(self.rank),
            b=b,
            C=agent.C,
            c=agent.c,
        )
        # Of the product only, whose sums have as many terms as Q has columns.
        rounding = (self.rank + 4) * EPS * _length(np.abs(Q) @ np.abs(small))
        off = _length(A - Q @ small) + rounding + EPS * _length(A)
        return changed, [off, a, steep, constant, 0.0 if agent.b is None else _length(agent.b)]

    def _loss(self, loss: Function | None, share: int) -> tuple[Function, float, float, float]:
        """(``share`` times the loss of t, its curvature, |s| or Lipschitz constant, constant)."""
        r = self.rank
        if loss is None or not share:
            return SquaredDistance(0.0), 0.0, 0.0, 0.0
        hinge = _hinge(loss)
        if hinge is not None:
            weight = share * np.broadcast_to(hinge.weight, self.m)
            whole = hinge.over(self.Q, share)
            changed = whole if hinge is loss else Intercept(whole)
            return changed, share * hinge.ridge, _length(weight), 0.0
        known = loss.isotropic()
        assert known is not None
        a = known[0]
        s = np.zeros(self.m) if known[1] is None else known[1]
        constant = float(loss.value_at(np.zeros(self.q)))
        return Quadratic(np.full(r, a), self._inner(s)), a, _length(s), constant

    # -- what rounding lost ------------------------------------------------------------------------
    @property
    def offset(self) -> float:
        """F less the objective of the small problem."""
        return math.fsum(self._numbers.value[:, 3])

    @property
    def curvature(self) -> float:
        """a, of F in z."""
        return math.fsum(self._numbers.value[:, 1])

    def slack(self, radius: float, reach: float) -> float:
        """|F(x) - F_t(x)| at most, for points of that norm with ||t|| <= ``reach``."""
        numbers = self._numbers.value
        # of ||Q'Q - I||, and of sums
        room = self._uneven + 4 * EPS * (2 * math.sqrt(self.m) + 2 + self.rank)
        s = math.fsum(numbers[:, 2])
        sides = 2 * room * math.fsum(numbers[:, 4])  # their sum is one of the columns of Q
        off = (_length(numbers[:, 0]) * radius + sides) / abs(self.beta)
        bent = self.curvature * (room * reach**2 + 2 * off * reach * (1 + room) + off**2) / 2
        return bent + s * (off + room * reach) + EPS * abs(self.offset)


def _digest(agent: Agent) -> list[float]:
    """The kind of the agent's loss and, of one with kinks, |A_i| and what tells it from others."""
    f = agent.objective
    kind = _kind(agent)
    if kind < HINGE:
        return [kind, 0.0, 0.0, 0.0, 0.0]
    assert isinstance(f, Separable)
    return [kind, norm_bound(agent.A), *digest(f.z_part)]


def _length(v: Array) -> float:
    return float(np.linalg.norm(v))


class Lifted(Interior):
    """Steps on the small problem; points are those of the whole one."""

    lift: Compressed

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> InteriorState:
        """With t = Q'z, and multipliers Q'lambda of the small problem's rows."""
        if dual is None or multiplier is None:
            return super().start(x, z)
        Q = self.lift.Q
        own = np.concatenate([self.space.x(dual), np.zeros(len(z) * self.q)])
        return super().start(x, (Q.T @ z[0])[None], own, Q.T @ multiplier)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """x as it is, z = Q t."""
        x, t = super().point(state)
        z = self.lift.Q @ t[0]
        return x, np.broadcast_to(z, (len(t), len(z)))


class LiftedStop(DualityStop):
    """The gap of the small problem, and what lies between the two; ``whole`` has the objectives."""

    whole: Problem

    def judged(self, iteration: Interior, state: InteriorState) -> Check:
        """The certificate at a state."""
        assert isinstance(iteration, Lifted)
        lift = iteration.lift
        runtime = iteration.runtime
        x, t = Interior.point(iteration, state)
        dual, rows = iteration.multipliers(state)
        z = runtime.common(lift.Q @ t[0])
        slopes = []
        for (i, agent), p, v in zip(
            self.whole.agents.items(), self.duality.models, rows, strict=True
        ):
            own = v[p.parts.get("epigraphs", slice(0, 0))][-len(z) :]
            slopes.append(slope(getattr(agent.objective, "z_part", None), z, own, lift.shares[i]))
        total = runtime.piggyback(
            np.stack(slopes)
        )  # z stays where its rows' multiplier is this / -beta
        found, proved = self.duality.gap(x, t[0], dual, rows)
        asked = self.goal.required(found.travelled)
        far = math.hypot(_length(self.duality.x0), _length(self.duality.z0))
        reach = radius = asked + found.travelled + far
        if lift.curvature:
            gap = max(found.bound(asked) + 2 * lift.slack(radius, radius), 0.0)
            reach = min(radius, _length(t[0]) + math.sqrt(2 * gap / lift.curvature))
        lost = 2 * lift.slack(radius, reach)
        found = replace(found, value=found.value + lift.offset, base=found.base + lost)
        each = np.stack(slopes)
        if lift.pooled:
            each = np.tile(total.value / lift.n, (len(slopes), 1))
        multiplier = -total.value / lift.beta
        proved = replace(proved, z=z, multiplier=multiplier, gradient_z=each, report=None)
        return found.check(self.goal, proved, self.record)
