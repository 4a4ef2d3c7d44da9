"""Predictor and corrector on the homogeneous form of a conic program, summed over agents.

With tau, kappa >= 0 and all right-hand sides times tau, the optimality conditions and

    u'P u / tau + c'u + h'v + b'lambda + kappa = 0

always have a solution that says what the problem is: tau > 0 gives u/tau with its multipliers,
kappa > 0 a certificate that there is none. A step solves one Newton system twice (Mehrotra's
predictor and corrector with Nesterov-Todd scaling) and goes 0.99 of the way to the boundary.
Cost of a step: 1 local factorization and 3 averagings: the summed matrix with the right-hand sides;
the corrector's second order, with the predictor's length and what it leaves of the common equations
(a refinement that costs no message of its own); the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime import Runtime
from conic.agent import Agent, Elimination, Point, Shared
from conic.equilibration import Units
from conic.model import Model
from conic.system import CommonSystem, announced

FRACTION = 0.99
FACTS = 4  # ||r_y||^2, ||r_v||^2, s'v, objective
STEPS = 200
TINY = 1e-200  # tau that is none
STUCK = 1e-9  # a step this short gains nothing


@dataclass(frozen=True)
class InteriorState:
    """The agents' (y, s, v), padded to one width, everybody's (z, lambda), and how far they are.

    In equilibrated units and divided by tau: ``primal`` and ``dual`` are norms of residuals,
    ``gap`` is that between the objectives; ``value`` is the objective where the step began.
    """

    own: Array
    common: Array
    tau: float = 1.0
    kappa: float = 1.0
    primal: float = np.inf
    dual: float = np.inf
    gap: float = np.inf
    value: float = 0.0
    length: float = 1.0
    count: int = 0


class Interior:
    """Interior-point steps on equilibrated models; ``q`` shared variables, ``m`` coupled rows."""

    def __init__(
        self, runtime: Runtime, models: list[Model], units: list[Units], q: int, m: int
    ) -> None:
        self.runtime = runtime
        self.units = units
        self.q = q
        self.m = m
        self.models = models
        self.agents = [Agent(p) for p in models]
        self.system = CommonSystem(self.agents, runtime.gather(announced(self.agents, q + m)), q, m)

    # -- the state ---------------------------------------------------------------------------------
    def packed(self, points: list[Point], shared: Shared, **numbers: float | int) -> InteriorState:
        """The state at a point."""
        own = np.zeros((len(points), self.system.width_own))
        for row, point in zip(own, points, strict=True):
            flat = np.concatenate(point.flat)
            row[: len(flat)] = flat
        common = np.concatenate([shared.z, shared.dual])[None]
        return InteriorState(own, common, shared.tau, shared.kappa, **numbers)  # type: ignore[arg-type]

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

    def start(self) -> InteriorState:
        """The least-squares point and multipliers, shifted into the cones: two averagings.

        Solves P u + c + G'v + A'lambda = 0, G u - v = h (equations as they are); s = -v.
        """
        origin = Shared(np.zeros(self.q), np.zeros(self.m))
        parts = []
        for agent in self.agents:
            e = agent.model.cone.identity
            point = Point(np.zeros(agent.model.size), e, e)
            parts.append(Elimination(agent, point, origin))
        shares = np.stack([self.system.share(k, e) for k, e in enumerate(parts)])
        entries, (column, *_) = self.system.split(self.sum(shares))
        none = np.zeros(self.system.size)
        dc = self.system.solver(entries, none, np.append(none, 1.0))(np.append(-column[:-1], 1.0))
        points = []
        margins = []
        for k, part in enumerate(parts):
            p = part.agent.model
            y, v = np.split(part.solve(-part.columns @ self.system.own(k, dc)), [p.size])
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

    # -- a step ------------------------------------------------------------------------------------
    def step(self, state: InteriorState) -> InteriorState:
        """Predictor, corrector, one step."""
        shared = self.shared(state)
        points = self.points(state)
        tau = shared.tau
        if not tau > TINY:
            return replace(state, length=0.0, count=state.count + 1)
        kappa = shared.kappa
        parts = [Elimination(a, p, shared) for a, p in zip(self.agents, points, strict=True)]
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
        shares = []
        for k, (e, right, step) in enumerate(zip(parts, asked, first, strict=True)):
            own = self.system.spread(k, e.eliminated_of(right))
            shares.append(np.append(own, e.lacking(step, dc)))
        lengths = self._lengths(parts, first)
        bent, lacking = np.split(self.sum(np.stack(shares)), 2)
        reach = min(1.0, _inside(shared, dtau, dkappa), float(lengths.value.min()))
        lacking[-1] -= kappa / tau * dtau
        cross = -dtau * dkappa
        bent[-1] -= cross / tau

        sigma = (1.0 - reach) ** 3
        kept = 1.0 - sigma
        dc = solve(kept * fall + affine + sigma * mu * centre + reach * bent - lacking)
        last = []
        for k, (e, right) in enumerate(zip(parts, asked, strict=True)):
            whole = kept * e.rights[0] + e.rights[1] + sigma * mu * e.rights[2] + reach * right
            target = -(e.rights[1] + sigma * mu * e.rights[2] + reach * right)[e.agent.model.size :]
            last.append(e.step(whole, self.system.own(k, dc), target))
        dtau = float(dc[-1])
        dkappa = (-tau * kappa + sigma * mu + reach * cross - kappa * dtau) / tau
        ends = self._lengths(parts, last)
        longest = float(ends.value.min())
        alpha = min(1.0, FRACTION * min(longest, _inside(shared, dtau, dkappa)))
        if not (alpha > 0.0 and np.isfinite(dc).all()):
            return replace(state, length=0.0, count=state.count + 1)
        z, dual, _ = np.split(dc, [self.q, self.q + self.m])
        new = Shared(
            shared.z + alpha * z,
            shared.dual + alpha * dual,
            tau + alpha * dtau,
            kappa + alpha * dkappa,
        )
        left = 1.0 - alpha * kept
        on_z, on_rows, _ = np.split(residual, [self.q, self.q + self.m])
        return self.packed(
            [p.moved(s, alpha) for p, s in zip(points, last, strict=True)],
            new,
            primal=left * float(np.sqrt(facts[1] + on_rows @ on_rows)) / new.tau,
            dual=left * float(np.sqrt(facts[0] + on_z @ on_z)) / new.tau,
            gap=abs(left * float(residual[-1] + kappa) - new.kappa) / new.tau,
            value=float(facts[3]),
            length=alpha,
            count=state.count + 1,
        )

    def sum(self, shares: Array) -> Array:
        """Over all agents: one averaging."""
        total: Array = self.runtime.average(shares)[0] * self.runtime.n
        return total

    def _lengths(self, parts: list[Elimination], steps: list[Point]) -> Any:
        """Everybody's longest step, with the next message."""
        own = [[e.length(step)] for e, step in zip(parts, steps, strict=True)]
        return self.runtime.piggyback(np.array(own), whole=True)

    def finished(self, state: InteriorState) -> bool:
        """No step gains anything any more."""
        return state.count >= STEPS or state.length < STUCK


def _facts(e: Elimination) -> list[float]:
    """As FACTS."""
    return [float(e.r_y @ e.r_y), float(e.r_v @ e.r_v), float(e.point.s @ e.point.v), e.value]


def _inside(shared: Shared, dtau: float, dkappa: float) -> float:
    """The longest step that keeps tau and kappa positive."""
    ends = [
        -value / step for value, step in ((shared.tau, dtau), (shared.kappa, dkappa)) if step < 0
    ]
    return min(ends, default=np.inf)
