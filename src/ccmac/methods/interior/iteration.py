"""Predictor and corrector on the homogeneous form of a quadratic problem with bounds.

With tau, kappa >= 0 and all right-hand sides times tau, the optimality conditions and

    w'Hw/tau - g'w + (prices times right-hand sides) + kappa = 0

always have a solution that tells what the problem is: tau > 0 gives w/tau with its prices,
kappa > 0 a proof that there is none. A step solves one Newton system twice (Mehrotra's predictor
and corrector, its second order weighed by the predictor's length) and goes 0.99 of the way to the
boundary.
Cost of a step: 1 local factorization and 3 averagings: the summed matrix with its right-hand sides;
the corrector's right-hand side with the predictor's length; the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.certificates.duality import Prices
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, State, rows
from ccmac.methods.interior.block import PARTS, Block, Elimination, OwnPoint
from ccmac.methods.interior.common import Common, Equations, Solver
from ccmac.methods.interior.sides import Newton, longest
from ccmac.methods.interior.steps import Iterate, Second, Step
from ccmac.runtime.base import Rider
from ccmac.workspace import Workspace
from ccmac.workspace.reduced import Reduced

FRACTION = 0.99
FACTS = 6  # sums of squares and products beside the residuals' shares
VANISHED = 1e-6  # tau over kappa below which there is no point to show
STEPS = 100
STUCK = 1e-9  # a step this short gains nothing


@dataclass(frozen=True)
class InteriorState(State):
    """The agents' unknowns (padded to one width), everybody's, and how far they are.

    ``primal`` is the norm of the equations' residuals and ``gap`` the duality gap expected after
    the step (cost scaled), ``value`` the cost before it, ``length`` the step's.
    """

    own: Array = rows()
    common: Array = rows()
    tau: float = 1.0
    kappa: float = 1.0
    primal: float = np.inf
    gap: float = np.inf
    value: float = 0.0
    length: float = 1.0
    count: int = 0


@dataclass(frozen=True)
class Setup:
    """What agents told each other: bounds on z, all supports, flat directions, widest state."""

    lower: Array
    upper: Array
    supports: Array
    flats: list[tuple[Array, Array]]
    width: int


class Interior(Iteration[InteriorState]):
    """Interior-point steps on the agents' blocks."""

    def __init__(
        self, work: Workspace, reduced: Reduced, blocks: list[Block], setup: Setup
    ) -> None:
        self.work, self.reduced, self.blocks, self.setup = work, reduced, blocks, setup
        self.space, self.runtime, self.problem = work.space, work.runtime, work.problem
        self.unit, self.k = blocks[0].unit, self.problem.q + self.problem.m
        self.equations = Equations(reduced, setup.lower, setup.upper, setup.flats)
        self.reach = float(np.linalg.norm((reduced.U.T @ reduced.right) / reduced.sigma))
        ends = np.cumsum([0, *(len(gamma) for _, gamma in setup.flats)])
        self.flat_of = [slice(ends[i], ends[i + 1]) for i in self.problem.agents]
        # Entries of the summed matrix that some agent fills, and where each agent's go.
        seen = np.triu(setup.supports.T @ setup.supports > 0)
        self.entries = np.nonzero(seen)
        place = np.full((self.k, self.k), -1)
        place[self.entries] = np.arange(len(self.entries[0]))
        self.places = []
        for block in blocks:
            upper = np.triu_indices(len(block.support))
            at = place[block.support[upper[0]], block.support[upper[1]]]
            self.places.append((upper, at))

    # -- the state ---------------------------------------------------------------------------------
    def start(
        self, x: Array, z: Array, dual: Array | None = None, price: Array | None = None
    ) -> InteriorState:
        """In the middle of the bounds, whatever the user's point: interior points start inside."""
        points = []
        for block in self.blocks:
            y = block.sides.middle()
            s = block.sides.slack(y, 1.0)
            points.append(OwnPoint(y, np.zeros(len(block.f)), s, 1.0 / s))
        equations = self.equations
        mid = equations.sides.middle()
        s = equations.sides.slack(mid, 1.0)
        mu, phi = np.zeros(equations.rank), np.zeros(len(equations.fixed))
        return self._packed(points, Common(mid, mu, phi, s, 1.0 / s, 1.0, 1.0))

    def _packed(self, points: list[OwnPoint], common: Common, **numbers: Any) -> InteriorState:
        own = np.zeros((len(points), self.setup.width))
        for row, p in zip(own, points, strict=True):
            flat = np.concatenate([p.y, p.nu, p.s, p.v])
            row[: len(flat)] = flat
        shared = np.concatenate([common.z, common.mu, common.phi, common.s, common.v])
        return InteriorState(own, shared[None], common.tau, common.kappa, **numbers)

    def points(self, state: InteriorState) -> list[OwnPoint]:
        """The agents' unknowns."""
        found = []
        for row, block in zip(state.own, self.blocks, strict=True):
            sizes = [block.size, len(block.f), block.sides.count, block.sides.count]
            found.append(OwnPoint(*np.split(row, np.cumsum(sizes))[:4]))
        return found

    def common(self, state: InteriorState) -> Common:
        """Everybody's unknowns."""
        equations = self.equations
        sizes = [equations.q, equations.rank, len(equations.fixed), equations.sides.count]
        z, mu, phi, s, v = np.split(state.common[0], np.cumsum(sizes))
        return Common(z, mu, phi, s, v, state.tau, state.kappa)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """w / tau, put on the bounds it lies beyond; w / kappa where tau tells of no solution."""
        scale = state.tau if state.tau > VANISHED * state.kappa else state.kappa
        x, z = self.direction(state)
        lower = [block.form.lower[: block.d] for block in self.blocks]
        upper = [block.form.upper[: block.d] for block in self.blocks]
        x = np.clip(x / scale, np.concatenate(lower), np.concatenate(upper))
        z = np.clip(z / scale, self.setup.lower, self.setup.upper)
        return x, np.broadcast_to(z, (len(self.blocks), len(z)))

    def direction(self, state: InteriorState) -> tuple[Array, Array]:
        """(flat x, z) as they are, not over tau."""
        pieces = [p.y[: b.d] for b, p in zip(self.blocks, self.points(state), strict=True)]
        return np.concatenate(pieces), self.common(state).z

    def prices(self, state: InteriorState, scale: float) -> Prices:
        """In the user's rows and cost, over ``scale``."""
        common, size, reduced = self.common(state), scale * self.unit, self.reduced
        coupled, shared = reduced.prices(self.equations.combine @ (common.mu / size))
        local, terms = [], []
        for k, (block, p) in enumerate(zip(self.blocks, self.points(state), strict=True)):
            space, nu = reduced.kernels[k].space, p.nu / size
            inside = nu[: space.rank] - space.basis.T @ (reduced.A[k].T @ coupled)
            local.append(space.multipliers(inside))
            terms.append(nu[space.rank : len(nu) - len(block.fixed)])
        return Prices(coupled, shared, local, terms)

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: InteriorState) -> InteriorState:
        """Predictor, corrector, one step."""
        equations, common, points = self.equations, self.common(state), self.points(state)
        self.work.ledger.charge(argmins=1)
        lam = equations.lam(common.mu)
        parts = [
            Elimination(block, p, common.z, lam, common.tau)
            for block, p in zip(self.blocks, points, strict=True)
        ]
        newton = Newton.at(equations.sides, common.z, common.s, common.v, common.tau)
        solver, rights, facts = self._summed(parts, newton, common)
        sides = float(facts[5]) + equations.sides.count + 1
        mu = float(facts[4] + common.s @ common.v + common.tau * common.kappa) / sides
        at = Iterate(equations, parts, newton, common, solver, rights, self.flat_of)
        first = at.step(np.array([1.0, 1.0, 0.0]), at.none)
        reach, second = self._second(at, points, first)
        sigma = (1.0 - reach) ** 3
        found = at.step(np.array([1.0 - sigma, 1.0, sigma * mu]), second)
        alpha = min(1.0, FRACTION * self._length(common, found, self._lengths(points, found)))
        if not alpha > 0.0:
            return replace(state, length=0.0, count=state.count + 1)
        left, tau = 1.0 - alpha * (1.0 - sigma), common.tau + alpha * found.dtau
        off = equations.top.T @ facts[FACTS + equations.q : -1]
        off += equations.residual(common)[equations.mu]
        return self._packed(
            [p.moved(s, alpha) for p, s in zip(points, found.own, strict=True)],
            found.moved(common, equations, alpha),
            primal=left * float(np.sqrt(facts[1] + off @ off)), gap=mu * left * sides / tau**2,
            value=0.5 * float(facts[2]) / common.tau**2 - float(facts[3]) / common.tau,
            length=float(alpha), count=state.count + 1,
        )  # fmt: skip

    def _summed(
        self, parts: list[Elimination], newton: Newton, common: Common
    ) -> tuple[Solver, list[Array], Array]:
        """The common system, its right-hand sides and the facts: one averaging."""
        equations, k = self.equations, self.k
        S, rest = self.summed(
            [e.block.schur(e.solved[:, :-1]) for e in parts],
            [np.concatenate([*e.vectors(), e.facts()]) for e in parts],
        )
        column, row, *shares, facts = np.split(rest, np.cumsum([k, *[k + 1] * (1 + PARTS)]))
        solver = Solver(equations.matrix(S, column, row, newton, common), equations.signs)
        rights = [
            equations.right(share, newton, a) for share, a in zip(shares, newton.parts, strict=True)
        ]
        rights[0] -= equations.residual(common)
        rights[1][-1] += common.kappa
        rights[2][-1] -= 1.0 / common.tau
        return solver, rights, facts

    def summed(self, matrices: list[Array], vectors: list[Array]) -> tuple[Array, Array]:
        """The sums of the agents' matrices between their supports, and of vectors with them."""
        messages = []
        for S, (upper, at), vector in zip(matrices, self.places, vectors, strict=True):
            entries = np.zeros(len(self.entries[0]))
            entries[at] = S[upper]
            messages.append(np.concatenate([entries, vector]))
        total = self.runtime.average(np.stack(messages))[0] * self.problem.n
        whole = np.zeros((self.k, self.k))
        whole[self.entries] = total[: len(self.entries[0])]
        return whole + np.triu(whole, 1).T, total[len(self.entries[0]) :]

    def _second(self, at: Iterate, points: list[OwnPoint], first: Step) -> tuple[float, Second]:
        """(the predictor's length, what it says of the second order): one averaging."""
        newton, own, shares = at.newton, [], []
        dz = first.dc[self.equations.z]
        for e, d in zip(at.parts, first.own, strict=True):
            a = e.newton.second(d.s, d.v)
            on_y, on_tau = e.newton.right(a)
            on_tau -= e.curved(d.y, dz, first.dtau)
            own.append(a)
            shares.append(e.eliminated(np.append(on_y, np.zeros(len(e.r_E))), on_tau))
        lengths = self._lengths(points, first)
        total = self.runtime.average(np.stack(shares))[0] * self.problem.n
        reach = min(1.0, self._length(at.common, first, lengths))
        on_z, cross = newton.second(first.ds, first.dv), -first.dtau * first.dkappa
        right = self.equations.right(total, newton, on_z)
        right[-1] -= cross / at.common.tau
        return reach, Second(reach * right, [reach * a for a in own], reach * on_z, reach * cross)

    def _lengths(self, points: list[OwnPoint], step: Step) -> Rider:
        """Everybody's longest step, with the next message."""
        own = [
            [min(longest(p.s, d.s), longest(p.v, d.v)) if d.finite else 0.0]
            for p, d in zip(points, step.own, strict=True)
        ]
        return self.runtime.ride(np.array(own), whole=True)

    def _length(self, common: Common, step: Step, everybody: Rider) -> float:
        """The longest step that stays inside (0: there is none)."""
        pair = np.array([common.tau, common.kappa]), np.array([step.dtau, step.dkappa])
        shared = min(longest(common.s, step.ds), longest(common.v, step.dv), longest(*pair))
        return min(float(everybody.value.min()), shared) if np.isfinite(step.dc).all() else 0.0

    def finished(self, state: InteriorState) -> bool:
        """No step gains anything any more."""
        return state.count >= STEPS or state.length < STUCK

    @property
    def cost(self) -> Cost:
        """1 local factorization and three averagings."""
        runtime, k = self.runtime, self.k
        width = len(self.entries[0]) + k + (2 + PARTS) * (k + 1) + FACTS
        room = 1 if runtime.averaging.rows_known else self.problem.n
        messages = runtime.average_cost(width) + runtime.average_cost(k + 1, room)
        return Cost(argmins=1) + messages + runtime.gather_cost(1)
