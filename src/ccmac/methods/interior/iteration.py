"""Predictor and corrector on the homogeneous form of a conic program, summed over agents.

With tau, kappa >= 0 and all right-hand sides times tau, the optimality conditions and

    u'P u / tau + c'u + h'v + b'lambda + kappa = 0

always have a solution that says what the problem is: tau > 0 gives u/tau with its multipliers,
kappa > 0 a certificate that there is none. A step solves one Newton system twice (Mehrotra's
predictor and corrector with Nesterov-Todd scaling) and goes 0.99 to 0.9999 of
the way to the boundary.
Cost of a step: 1 local factorization and 3 averagings: the summed matrix with the right-hand sides;
the corrector's second order, with the predictor's length and what it leaves of the common equations
(a refinement that costs no message of its own); the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.gap import Goal
from ccmac.certificates.stopping import over
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Iteration, State, known, rows
from ccmac.methods.interior.active import guess, settled
from ccmac.methods.interior.equilibration import Units
from ccmac.methods.interior.local import Elimination, LocalSystem, Point, Shared
from ccmac.methods.interior.system import CommonSystem, announced
from ccmac.objectives.polyhedral import Polyhedral
from ccmac.runtime.base import Piggyback
from ccmac.workspace import Workspace
from ccmac.workspace.conic import StandardForm

FACTS = 4  # ||r_y||^2, ||r_v||^2, s'v, objective
STEPS = 200
NEAR = 0.99  # of the way to the boundary,
CLOSE = 0.9999  # at most: more where the predictor goes far
ROOM = 1e-4  # of slacks and multipliers after a warm start in vain, in equilibrated units
DOUBT = 32  # one row in so many may be in doubt after it for the solution to be near
TINY = 1e-200  # tau that is none
STUCK = 1e-9  # a step this short gains nothing
TRUST = 0.1  # share of the slope's residual, or of mu, that smooth functions may miss models by
DAMPED = 1e-3  # of their largest curvature in the models at first; less as the residual shrinks


@dataclass(frozen=True)
class InteriorState(State):
    """The agents' (y, s, v), padded to one width, everybody's (z, lambda), and how far they are.

    In equilibrated units and divided by tau: ``primal`` and ``dual`` are norms of residuals,
    ``gap`` is that between the objectives; ``value`` is the objective where the step began.
    """

    own: Array = rows()
    common: Array = known()
    before: Array = rows()  # ``own`` of the point before; s = v = e where there is none
    tau: float = 1.0
    kappa: float = 1.0
    primal: float = np.inf
    dual: float = np.inf
    gap: float = np.inf
    value: float = 0.0
    length: float = 1.0
    count: int = 0
    warm: int = 0  # 1 where the active rows are guessed from a solution, 2 where that ended
    changed: int = 0  # active rows that were in doubt when that ended


class Interior(Iteration[InteriorState]):
    """Interior-point steps on equilibrated models."""

    far = True

    def __init__(
        self,
        work: Workspace,
        forms: list[Polyhedral],
        models: list[StandardForm],
        units: list[Units],
        name: str = "interior",
    ) -> None:
        self.work = work
        self.space = work.space
        self.runtime = work.runtime
        self.forms = forms
        self.units = units
        self.q = work.problem.q
        self.m = work.problem.m
        self.models = models
        self.name = name
        self.agents = [LocalSystem(p) for p in models]
        self.system = CommonSystem(self.agents, self._announcements(), self.q, self.m)
        self.over = False  # proofs no longer gain anything

    def _announcements(self) -> Array:
        """Every agent's, gathered once for all runs on a workspace."""
        known = self.work.agreed
        if self.name not in known:
            mine = announced(self.agents, self.q + self.m)
            known[self.name] = self.runtime.gather(mine)
        table: Array = known[self.name]
        return table

    # -- the state ---------------------------------------------------------------------------------
    def packed(
        self,
        points: list[Point],
        shared: Shared,
        before: Array | None = None,
        **numbers: float | int,
    ) -> InteriorState:
        """The state at a point."""
        common = np.concatenate([shared.z, shared.dual])[None]
        before = self._rows(self.units_of_cones) if before is None else before
        own = self._rows(points)
        return InteriorState(own, common, before, shared.tau, shared.kappa, **numbers)  # type: ignore[arg-type]

    def _rows(self, points: list[Point]) -> Array:
        """A row for each agent, padded."""
        own = np.zeros((len(points), self.system.width_own))
        for row, point in zip(own, points, strict=True):
            flat = np.concatenate(point.flat)
            row[: len(flat)] = flat
        return own

    @property
    def units_of_cones(self) -> list[Point]:
        """y = 0, s = v = e."""
        cones = [agent.model.cone.identity for agent in self.agents]
        return [
            Point(np.zeros(a.model.size), e, e) for a, e in zip(self.agents, cones, strict=True)
        ]

    def points(self, state: InteriorState) -> list[Point]:
        """The agents' unknowns."""
        found = []
        for row, agent in zip(state.own, self.agents, strict=True):
            p = agent.model
            y, s, v, _ = np.split(row, np.cumsum([p.size, p.rows, p.rows]))
            found.append(Point(y, s, v))
        return found

    def shared(self, state: InteriorState) -> Shared:
        """Everybody's unknowns."""
        z, dual = np.split(state.common[0], [self.q])
        return Shared(z, dual, state.tau, state.kappa)

    def _beginning(self) -> InteriorState:
        """Charged to setup, whenever it is."""
        with self.work.ledger.phase("setup"):
            return self._least_squares()

    def _least_squares(self) -> InteriorState:
        """The least-squares point and multipliers, shifted into the cones: two averagings.

        Solves P u + c + G'v + A'lambda = 0, G u - v = h (equations as they are); s = -v.
        """
        origin = Shared(np.zeros(self.q), np.zeros(self.m))
        parts = []
        for agent, point in zip(self.agents, self.units_of_cones, strict=True):
            parts.append(Elimination(agent, point, origin, 1.0))
        shares = np.stack([self.system.share(k, e) for k, e in enumerate(parts)])
        self.work.ledger.charge(argmins=1)
        entries, (column, *_) = self.system.split(self.sum(shares))
        none = np.zeros(self.system.size)
        dc = self.system.solver(entries, none, np.append(none, 1.0))(np.append(-column[:-1], 1.0))
        points = []
        margins = []
        for k, part in enumerate(parts):
            p = part.agent.model
            y, v = np.split(part.solve(-part.charge(self.system.own(k, dc))), [p.size])
            points.append(Point(y, np.where(part.agent.equations, 0.0, -v), v))
            margins.append([p.cone.margin(-v), p.cone.margin(v)])
        least = self.runtime.gather(np.array(margins)).min(axis=0)
        on_s, on_v = np.where(least > 0, 0.0, 1.0 - least)
        inside = []
        for point, agent in zip(points, self.agents, strict=True):
            e = agent.model.cone.identity
            inside.append(Point(point.y, point.s + on_s * e, point.v + on_v * e))
        z, dual, _ = np.split(dc, [self.q, self.q + self.m])
        return self.packed(inside, Shared(z, dual))

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> InteriorState:
        """Inside the cones, whatever the user's point; with its multipliers, at its active rows."""
        if dual is None or multiplier is None or self.system.turned:
            return self._beginning()
        own = self.units[0]
        points = []
        for k, (p, mine) in enumerate(zip(self.models, self.units, strict=True)):
            along = self.space.x_of(self.space.x(dual), k)
            at = self.space.x_of(x, k), z[0]
            points.append(guess(self.forms[k], p, mine, at, along))
        z_own = z[0] / (own.far * own.z)
        common = multiplier * own.cost / own.coupled
        return self.packed(points, Shared(z_own, common, 1.0, 0.0), warm=1)

    def _inside(self, state: InteriorState) -> InteriorState:
        """From where a warm start ended, a little inside; cold where many rows were in doubt."""
        if DOUBT * state.changed > self.system.degree:
            return replace(self._beginning(), count=state.count)
        points = []
        for agent, point in zip(self.agents, self.points(state), strict=True):
            room = ROOM * agent.model.cone.identity
            points.append(Point(point.y, point.s + room, point.v + room))
        shared = replace(self.shared(state), kappa=ROOM)
        return self.packed(points, shared, count=state.count)

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: InteriorState) -> InteriorState:
        """Predictor, corrector, one step; first of a warm start, what its active rows tell."""
        if state.warm == 1:
            found = settled(self, state)
            ended = state if found.changed else found
            return replace(ended, count=state.count + 1, warm=2, changed=found.changed)
        if state.warm:
            state = self._inside(state)
        shared = self.shared(state)
        points = self.points(state)
        tau = shared.tau
        if not tau > TINY:
            return replace(state, length=0.0, count=state.count + 1)
        kappa = shared.kappa
        self.work.ledger.charge(argmins=1)
        damped = DAMPED * min(1.0, state.dual)
        parts = [
            Elimination(a, p, shared, damped) for a, p in zip(self.agents, points, strict=True)
        ]
        shares = [
            np.concatenate([self.system.share(k, e), e.residual, _facts(e)])
            for k, e in enumerate(parts)
        ]
        total = self.sum(np.stack(shares))
        entries, vectors = self.system.split(total[: self.system.width])
        residual, facts = np.split(total[self.system.width :], [self.system.size + 1])
        column, row, fall, affine, centre = vectors
        row[-1] -= kappa / tau
        fall[-1] -= kappa
        affine[-1] += kappa
        centre[-1] -= 1.0 / tau
        solve = self.system.solver(entries, column[:-1], row)
        mu = float(facts[2] + tau * kappa) / self.system.degree

        dc = solve(fall + affine)
        first = [
            e.step(e.rights[0] + e.rights[1], self.system.own(k, dc), -e.point.s)
            for k, e in enumerate(parts)
        ]
        dtau = float(dc[-1])
        dkappa = -kappa - kappa * dtau / tau
        seconds = [e.second(step) for e, step in zip(parts, first, strict=True)]
        asked = [e.asked(target) for e, target in zip(parts, seconds, strict=True)]
        owing = [e.owing(step) for e, step in zip(parts, first, strict=True)]
        shares = []
        for k, (e, right, owed, step) in enumerate(zip(parts, asked, owing, first, strict=True)):
            bent, back = (self.system.spread(k, e.eliminated_of(v)) for v in (right, owed))
            bent[-1] -= e.bending(step, dc)
            shares.append(np.append(bent, e.lacking(step, dc) - back))
        lengths = self._lengths(parts, first)
        bent, lacking = np.split(self.sum(np.stack(shares)), 2)
        reach = min(1.0, _length(shared, dtau, dkappa), float(lengths.value.min()))
        lacking[-1] -= kappa / tau * dtau
        cross = -dtau * dkappa
        bent[-1] -= cross / tau

        sigma = (1.0 - reach) ** 3
        m = min(1.0, 0.5 + reach)  # the second order counts less where the first goes nowhere
        kept = 1.0 - sigma
        dc = solve(kept * fall + affine + sigma * mu * centre + m * bent - lacking)
        last = []
        for k, (e, right, owed) in enumerate(zip(parts, asked, owing, strict=True)):
            whole = kept * e.rights[0] + e.rights[1] + sigma * mu * e.rights[2] + m * right
            whole += owed
            target = -(e.rights[1] + sigma * mu * e.rights[2] + m * right)[e.agent.model.size :]
            last.append(e.step(whole, self.system.own(k, dc), target))
        dtau = float(dc[-1])
        dkappa = (-tau * kappa + sigma * mu + m * cross - kappa * dtau) / tau
        on_z, on_rows, _ = np.split(residual, [self.q, self.q + self.m])
        dual = float(np.sqrt(facts[0] + on_z @ on_z))
        trusted = [
            e.trusted(s, dc, TRUST * max(dual, mu)) for e, s in zip(parts, last, strict=True)
        ]
        ends = self._lengths(parts, last, trusted)
        longest = float(ends.value.min())
        most = float(np.clip(1.0 - sigma, NEAR, CLOSE))
        alpha = min(1.0, most * min(longest, _length(shared, dtau, dkappa)))
        if not (alpha > 0.0 and np.isfinite(dc).all()):
            return replace(state, length=0.0, count=state.count + 1)
        z, multiplier, _ = np.split(dc, [self.q, self.q + self.m])
        new = Shared(
            shared.z + alpha * z,
            shared.dual + alpha * multiplier,
            tau + alpha * dtau,
            kappa + alpha * dkappa,
        )
        left = 1.0 - alpha * kept
        return self.packed(
            [p.moved(s, alpha) for p, s in zip(points, last, strict=True)],
            new,
            state.own,
            primal=left * float(np.sqrt(facts[1] + on_rows @ on_rows)) / new.tau,
            dual=left * dual / new.tau,
            gap=max(
                abs(left * float(residual[-1] + kappa) - new.kappa) / new.tau,
                left * mu * self.system.degree / new.tau**2,
            ),
            value=float(facts[3]),
            length=alpha,
            count=state.count + 1,
        )

    def sum(self, shares: Array) -> Array:
        """Over all agents: one averaging."""
        total: Array = self.runtime.average(shares)[0] * self.runtime.n
        return total

    def _lengths(
        self, parts: list[Elimination], steps: list[Point], most: list[float] | None = None
    ) -> Piggyback:
        """Everybody's longest step, at most as far as is said, with the next message."""
        ends = [e.length(step) for e, step in zip(parts, steps, strict=True)]
        own = np.minimum(ends, np.inf if most is None else most)[:, None]
        return self.runtime.piggyback(np.array(own), whole=True)

    def finished(self, state: InteriorState) -> bool:
        """No step gains anything any more."""
        return self.over or state.count >= STEPS or state.length < STUCK

    @property
    def cost(self) -> Cost:
        """1 local factorization and three averagings."""
        runtime = self.runtime
        k = self.system.size + 1
        messages = runtime.average_cost(self.system.width + k + FACTS)
        messages += runtime.average_cost(2 * k, shown=[1])
        return Cost(argmins=1) + messages + runtime.gather_cost(1)

    # -- in the user's units -----------------------------------------------------------------------
    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """(flat x, z copies)."""
        x = []
        for point, agent, own in zip(self.points(state), self.agents, self.units, strict=True):
            y = own.far * own.y * point.y / state.tau
            x.append(y[: agent.model.d])
        own = self.units[0]
        z = own.far * own.z * self.shared(state).z / state.tau
        copies = np.broadcast_to(z, (len(self.agents), self.q))
        return np.concatenate([np.zeros(0), *x]), np.array(copies)

    def direction(self, state: InteriorState) -> tuple[Array, Array]:
        """(flat x, z) of the models, without the division by tau."""
        x, z = Interior.point(self, state)
        return state.tau * x, state.tau * z[0] if len(z) else np.zeros(0)

    def multipliers(self, state: InteriorState) -> tuple[Array, list[Array]]:
        """(lambda, the agents' v) that belong to :meth:`point`."""
        own = self.units[0]
        dual = own.coupled * self.shared(state).dual / (own.cost * state.tau)
        rows = [
            own.rows * point.v / (own.cost * state.tau)
            for point, own in zip(self.points(state), self.units, strict=True)
        ]
        return dual, rows

    def estimate(self, state: InteriorState, goal: Goal) -> tuple[float, float, float]:
        """(gap; relative gap and residuals; the same over what is asked), from the step."""
        own = self.units[0]
        unit = own.far / own.cost
        gap = unit * state.gap
        value = unit * state.value
        far = max(state.primal * own.far, state.dual)
        asked = max(over(gap, goal.epsilon(value)), over(far, goal.tol))
        return gap, max(gap / max(1.0, abs(value)), far), asked


def _facts(e: Elimination) -> list[float]:
    """As FACTS."""
    return [float(e.r_y @ e.r_y), float(e.r_v @ e.r_v), float(e.point.s @ e.point.v), e.value]


def _length(shared: Shared, dtau: float, dkappa: float) -> float:
    """The longest step that keeps tau and kappa positive."""
    ends = [
        -value / step for value, step in ((shared.tau, dtau), (shared.kappa, dkappa)) if step < 0
    ]
    return min(ends, default=np.inf)
