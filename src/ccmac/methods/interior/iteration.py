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

from dataclasses import replace

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration
from ccmac.methods.interior.common import Common, Solver
from ccmac.methods.interior.elimination import PARTS, Elimination
from ccmac.methods.interior.guided import begun, guided
from ccmac.methods.interior.own import OwnPoint
from ccmac.methods.interior.sides import Newton, longest
from ccmac.methods.interior.state import Agents, InteriorState
from ccmac.methods.interior.steps import Iterate, Second, Step
from ccmac.runtime.base import Piggyback

FRACTION = 0.99
FACTS = 6  # sums of squares and products beside the residuals' shares
STEPS = 100
STUCK = 1e-9  # a step this short gains nothing
GONE = 1e-20  # tau over kappa: a ray to the last digit, which is proved by now or never


class Interior(Agents, Iteration[InteriorState]):
    """Interior-point steps on the agents' blocks."""

    far = True
    over = False  # proofs no longer gain anything

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> InteriorState:
        """Inside the bounds; at a point that comes with prices it is tried to settle first."""
        if dual is None or multiplier is None:
            return self.inside()
        units = self.setup.units
        if units is not None:
            S = np.concatenate(units.x)
            x = x / S
            z = z / units.z
            dual = S * self.space.x(dual)
        return begun(self, x, z[0], dual, multiplier)

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: InteriorState) -> InteriorState:
        """Predictor, corrector, one step; another kind of step where a warm start is tried."""
        if state.warm:
            found = guided(self, state)
            if found is not None:
                return found
            state = replace(self.inside(), count=state.count)
        equations = self.equations
        common = self.common(state)
        points = self.points(state)
        self.work.ledger.charge(argmins=1)
        lam = equations.lam(common.mu)
        parts = [
            Elimination(block, p, common.z, lam, common.tau, rho=common.rho)
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
        last = at.step(np.array([1.0 - sigma, 1.0, sigma * mu]), second)
        alpha = min(1.0, FRACTION * self._length(common, last, self._lengths(points, last)))
        if not alpha > 0.0:
            return replace(state, length=0.0, count=state.count + 1)
        left = 1.0 - alpha * (1.0 - sigma)
        tau = common.tau + alpha * last.dtau
        off = equations.top.T @ facts[FACTS + equations.q : -1]
        off += equations.residual(common)[equations.mu]
        return self.packed(
            [p.moved(s, alpha) for p, s in zip(points, last.own, strict=True)],
            last.moved(common, equations, alpha),
            primal=left * float(np.sqrt(facts[1] + off @ off)),
            gap=mu * left * sides / tau**2,
            value=0.5 * float(facts[2]) / common.tau**2 - float(facts[3]) / common.tau,
            length=float(alpha),
            count=state.count + 1,
        )

    def _summed(
        self, parts: list[Elimination], newton: Newton, common: Common
    ) -> tuple[Solver, list[Array], Array]:
        """The common system, its right-hand sides and the facts: one averaging."""
        equations = self.equations
        k = self.k
        matrices = [e.block.schur(e.solved[:, :-1]) for e in parts]
        vectors = [np.concatenate([*e.vectors(), e.facts()]) for e in parts]
        S, rest = self.summed(matrices, vectors)
        column, row, *shares, facts = np.split(rest, np.cumsum([k, *[k + 1] * (1 + PARTS)]))
        solver = Solver(equations.matrix(S, column, row, newton, common), equations.signs)
        rights = [
            equations.right(share, newton, a) for share, a in zip(shares, newton.parts, strict=True)
        ]
        rights[0] -= equations.residual(common)
        rights[1][-1] += common.kappa
        rights[2][-1] -= 1.0 / common.tau
        return solver, rights, facts

    def _second(self, at: Iterate, points: list[OwnPoint], first: Step) -> tuple[float, Second]:
        """(the predictor's length, what it says of the second order): one averaging."""
        newton = at.newton
        own = []
        shares = []
        dz = first.dc[self.equations.z]
        for e, d in zip(at.parts, first.own, strict=True):
            a = e.newton.second(d.s, d.v)
            on_y, on_tau = e.newton.right(a)
            on_tau -= e.curved(d.y, dz, first.dtau)
            own.append(a)
            shares.append(e.eliminated(np.append(on_y, np.zeros(len(e.r_E))), on_tau))
        lengths = self._lengths(points, first)
        total = self.runtime.average(np.stack(shares))[0]
        total *= self.problem.n
        reach = min(1.0, self._length(at.common, first, lengths))
        on_z = newton.second(first.ds, first.dv)
        cross = -first.dtau * first.dkappa
        right = self.equations.right(total, newton, on_z)
        right[-1] -= cross / at.common.tau
        return reach, Second(reach * right, [reach * a for a in own], reach * on_z, reach * cross)

    def _lengths(self, points: list[OwnPoint], step: Step) -> Piggyback:
        """Everybody's longest step, with the next message."""
        own = [
            [min(longest(p.s, d.s), longest(p.v, d.v)) if d.finite else 0.0]
            for p, d in zip(points, step.own, strict=True)
        ]
        return self.runtime.piggyback(np.array(own), whole=True)

    def _length(self, common: Common, step: Step, everybody: Piggyback) -> float:
        """The longest step that stays inside (0: there is none)."""
        pair = np.array([common.tau, common.kappa]), np.array([step.dtau, step.dkappa])
        shared = min(longest(common.s, step.ds), longest(common.v, step.dv), longest(*pair))
        return min(float(everybody.value.min()), shared) if np.isfinite(step.dc).all() else 0.0

    def finished(self, state: InteriorState) -> bool:
        """No step gains anything any more."""
        gone = state.tau < GONE * state.kappa
        return self.over or state.count >= STEPS or state.length < STUCK or gone

    @property
    def cost(self) -> Cost:
        """1 local factorization and three averagings."""
        runtime = self.runtime
        k = self.k
        width = len(self.entries[0]) + k + (2 + PARTS) * (k + 1) + FACTS
        messages = runtime.average_cost(width)
        messages += runtime.average_cost(k + 1, shown=[1])
        return Cost(argmins=1) + messages + runtime.gather_cost(1)
