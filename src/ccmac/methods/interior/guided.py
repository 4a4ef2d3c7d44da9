"""Warm starts: from a point with prices to the solution.

With tau = 1 and the active bounds known the optimality conditions are linear: one sum of a matrix
solves them. From a solution of a problem nearby most bounds are guessed right, and which of the
others are active is decided by all of them together: their prices stay unknowns of the common
system (:mod:`.doubted`), which becomes a small problem with bounds that everybody solves alike
(:mod:`.boxed`). Where a guess comes out wrong (beyond a bound, or with a price of the wrong sign)
the entry is doubtful from then on, so that no guess comes again; all bounds on z are doubtful. A
run that does not get there starts inside.

In a state on this way ``gap`` is the root of the sum of squares of what all conditions lacked
before the last step.
Cost of a step: 1 local factorization, 1 averaging.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.methods.interior.boxed import boxed
from ccmac.methods.interior.common import Common, Solver
from ccmac.methods.interior.doubted import Doubted, Open, Slots, decided, doubtful
from ccmac.methods.interior.settling import Lacking
from ccmac.methods.interior.sides import THETA, Exclusive, Sides, apart
from ccmac.methods.interior.state import Agents, InteriorState

STEPS = 10  # after so many it is tried no longer
FIRST = 16  # doubtful entries of an agent in the first message
MORE = 8  # and room for as many in the next ones, beside twice those it has
MOST = 1_000  # room for so many of all agents
CLOSE = 1e-5  # lacking before a step after which a proof is tried
SETTLED = 1e-9  # lacking at a solution: rounding is all that a step could add


def begun(agents: Agents, x: Array, z: Array, dual: Array, price: Array) -> InteriorState:
    """The state at (x, z) with K'lambda in ``dual`` (user units) and the coupled ``price``."""
    equations = agents.equations
    reduced = agents.reduced
    space = agents.space
    unit = agents.unit
    m = len(reduced.unit)
    n = agents.problem.n
    points = []
    for k, block in enumerate(agents.blocks):
        along = unit * space.x_of(space.x(dual), k)
        points.append(block.near(space.x_of(x, k), z, along))
    rows = np.zeros(len(reduced.U))
    sides = equations.sides
    rows[:m] = unit * price[:m] / reduced.unit
    largest = unit * float(np.abs(price[:m]).max(initial=0.0))
    weight = 1.0 / largest if largest > 0 else 1.0  # makes prices as large as slacks
    common = Common(
        z,
        equations.mu_of(rows),
        np.zeros(len(equations.fixed)),
        sides.slack(z, 1.0),
        np.zeros(sides.count),
        1.0,
        0.0,
    )
    room = np.minimum(min(FIRST, MOST // n), agents.setup.bounded)
    doubt = [
        doubtful(b.sides, p.s, p.v, weight, np.zeros(b.size, dtype=bool), int(room[i]))
        for i, b, p in zip(agents.problem.agents, agents.blocks, points, strict=True)
    ]
    return agents.packed(points, common, doubt, room[None], warm=1, weight=weight)


def guided(agents: Agents, state: InteriorState) -> InteriorState | None:
    """One step; None where this way leads nowhere."""
    if state.warm > STEPS:
        return None
    equations = agents.equations
    common = agents.common(state)
    weight = state.weight
    lam = equations.lam(common.mu)
    doubt = agents.doubt(state)
    parts = [
        Doubted(block, p, common, lam, weight, mask)
        for block, p, mask in zip(agents.blocks, agents.points(state), doubt, strict=True)
    ]
    counts = agents.runtime.piggyback(np.array([[float(mask.sum())] for mask in doubt]), whole=True)
    joint = Joint.of(agents, parts, Slots(state.slots[0], agents.setup.supports), common, weight)
    far = joint.far
    count = state.count + 1
    warm = state.warm + 1
    if far <= SETTLED:
        return replace(state, gap=far, count=count, warm=warm)
    if not np.isfinite(far):
        return None
    dc, prices = joint.solved
    told = equations.told(dc)
    xi = dc[equations.xi]
    points = []
    for i, part, at in zip(agents.problem.agents, parts, agents.flat_of, strict=True):
        points.append(part.moved(prices[i], told, xi[at]))
    room = np.minimum(2.0 * counts.value[:, 0] + MORE, agents.setup.bounded)
    room = np.floor(room * min(1.0, MOST / max(float(room.sum()), 1.0)))
    doubt = [
        doubtful(part.block.sides, p.s, p.v, weight, part.doubt, int(room[i]))
        for i, part, p in zip(agents.problem.agents, parts, points, strict=True)
    ]
    new = joint.moved(dc, prices[-1])
    return agents.packed(
        points, new, doubt, room[None], gap=far, count=count, warm=warm, weight=weight
    )


@dataclass(frozen=True)
class Joint:
    """What everybody knows of the linearized conditions at a point: their sums."""

    agents: Agents
    common: Common
    weight: float
    lacking: Lacking
    wrong: float
    S: Array
    share: Array
    heard: list[Open]

    @classmethod
    def of(
        cls, agents: Agents, parts: list[Doubted], slots: Slots, common: Common, weight: float
    ) -> Joint:
        """One averaging."""
        agents.work.ledger.charge(argmins=1)
        matrices = []
        vectors = []
        k = agents.k + 1
        for i, part in zip(agents.problem.agents, parts, strict=True):
            e = part.parts
            matrices.append(e.block.schur(e.solved[:, :-1]))
            far = [e.square, apart(e.point.s, e.point.v, weight)]
            share = e.eliminated(e.right(0), 0.0) - e.own
            vectors.append(np.concatenate([share, e.own, far, slots.row(i, part)]))
        S, total = agents.summed(matrices, vectors)
        share, own, (square, wrong), tables = np.split(total, np.cumsum([k, k, 2]))
        lacking = Lacking(agents, own, float(square))
        return cls(agents, common, weight, lacking, float(wrong), S, share, slots.heard(tables))

    @property
    def far(self) -> float:
        """The root of the sum of squares of what all conditions lack."""
        c = self.common
        square = self.lacking.far(c) + self.wrong + apart(c.s, c.v, self.weight)
        return float(np.sqrt(square))

    @property
    def newton(self) -> Exclusive:
        """Of the bounds on z, all of them doubtful."""
        c = self.common
        sides = self.agents.equations.sides
        return Exclusive.opened(sides, c.s, c.v, self.weight, sides.bounded)

    @property
    def solved(self) -> tuple[Array, list[Array]]:
        """(the common step, dq by agents and of the bounded entries of z)."""
        equations = self.agents.equations
        c = self.common
        zero = np.zeros(self.agents.k + 1)
        newton = self.newton
        sides = equations.sides
        q = equations.q
        right = equations.right(self.share, newton, newton.shift) - equations.residual(c)
        solver = Solver(equations.matrix(self.S, zero[:-1], zero, newton, c), equations.signs)
        at = np.flatnonzero(sides.bounded)
        columns = np.zeros((sum(h.count for h in self.heard) + len(at), equations.size - 1))
        rows = np.vstack([h.on_common for h in self.heard])
        columns[: len(rows), equations.z] = rows[:, :q]
        columns[: len(rows), equations.mu] = rows[:, q:] @ equations.top
        columns[np.arange(len(rows), len(columns)), at] = -1.0
        along = solver.inner(columns.T)
        moved = solver.inner(right[:-1])
        inner = scipy.linalg.block_diag(*(h.inner for h in self.heard), np.zeros((len(at),) * 2))
        T = columns @ along - inner
        told = np.vstack([h.told for h in self.heard])
        free = np.append(told[:, 0], np.zeros(len(at))) - columns @ moved
        price = np.append(told[:, 3], sides.net(c.v)[at])
        ends = [h.bounds for h in self.heard], (sides.lower - c.z)[at], (sides.upper - c.z)[at]
        low = np.concatenate([*(low for low, _ in ends[0]), ends[1]])
        high = np.concatenate([*(high for _, high in ends[0]), ends[2]])
        T = 0.5 * (T + T.T)
        y, p = boxed(T, free - T @ price, Sides(low, high), THETA)
        dq = p - price + THETA * y
        starts = np.cumsum([h.count for h in self.heard])
        return np.append(moved - along @ dq, 0.0), np.split(dq, starts)

    def moved(self, dc: Array, dq: Array) -> Common:
        """Everybody's unknowns after the step."""
        equations = self.agents.equations
        c = self.common
        newton = self.newton
        sides = equations.sides
        spread = np.zeros(equations.q)
        spread[sides.bounded] = dq
        _, dv = newton.steps(newton.shift + sides.split(spread), dc[equations.z], 0.0, 1.0)
        z = c.z + dc[equations.z]
        z, s, v = decided(sides, z, c.v + dv, sides.bounded, self.weight)
        mu = c.mu + dc[equations.mu]
        phi = c.phi + dc[equations.phi]
        return Common(z, mu, phi, s, v, 1.0, 0.0)
