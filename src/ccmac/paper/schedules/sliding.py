"""The certified schedule of primal-dual sliding, for a radius R and a bound M on subgradients.

Theorem thm:nonsmooth-upper, with M of Equation eq:local-lipschitz.

For a mu-strongly convex F phases with R_{s+1} = R_s / 2 and eps_s = mu R_s^2 / 8 end after the
first eps_s <= eps. About 8 chi M R / eps affine calls and 64 (M R / eps)^2 subgradients; a norm
over all agents after each of them, whose rounds are charged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, PointGap, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Prepared, Request
from ccmac.methods.convex import found_in, proved
from ccmac.methods.sliding.subgradient import (
    Phase,
    SlidingState,
    SubgradientIteration,
    balanced_phase,
)
from ccmac.workspace import Workspace

if TYPE_CHECKING:
    from ccmac.methods.sliding.method import CrossSliding


def certified_phases(
    norm: float, sigma: float, lipschitz: float, radius: float, epsilon: float, mu: float
) -> list[Phase]:
    """One phase, or restarts when mu > 0 (the last one asks for eps, no more)."""
    single = [balanced_phase(norm, sigma, lipschitz, radius, epsilon)]
    if not mu > 0:
        return single
    phases = []
    size = radius
    while True:
        target = mu * size * size / 8.0
        phases.append(balanced_phase(norm, sigma, lipschitz, size, max(target, epsilon)))
        if target <= epsilon:
            return phases
        size /= 2.0


class Sliding(SubgradientIteration[SlidingState]):
    """Fixed phases; one driver step is one outer step.

    At the end F - F* + (2M/sigma) ||K w - v|| is at most the accuracy of the schedule.
    """

    def __init__(
        self, certifier: GapCertifier, goal: Goal, feasible: Array, phases: tuple[Phase, ...]
    ) -> None:
        super().__init__(certifier, goal, feasible)
        self.phases = phases

    def begin(self, w: Array, p: Array, multiplier: Array) -> SlidingState:
        """At the start of the first phase, without a dual."""
        zeros = self.space.zeros
        return SlidingState(
            w=w,
            last=w.copy(),
            x=w.copy(),
            x_before=w.copy(),
            hat=w.copy(),
            centre=w.copy(),
            mean=zeros(),
            dual=zeros(),
            p=zeros(),
        )

    def step(self, state: SlidingState) -> SlidingState:
        """One outer step; the average of a finished phase is the next one's centre."""
        phase = self.phases[state.phase]
        state = self.outer_step(state, phase)
        w = state.mean / state.outer
        if state.outer < phase.outer:
            return replace(state, w=w)
        if state.phase + 1 == len(self.phases):
            return replace(state, w=w, phase=state.phase + 1)
        return replace(self.renewed(state, w), w=w, dual=np.zeros_like(w), p=np.zeros_like(w))

    def finished(self, state: SlidingState) -> bool:
        """After the last phase."""
        return state.phase >= len(self.phases)

    def tight_gap(self, state: SlidingState) -> PointGap:
        """For a strongly convex F the theorem bounds the error too: ||w - w*||^2 / 2 <= eps."""
        found = super().tight_gap(state)
        if not (self.finished(state) and self.certifier.mu > 0):
            return found
        error = math.sqrt(2.0 * self.goal.absolute / self.certifier.mu)
        return replace(found, error=min(error, found.error))

    @property
    def horizon(self) -> int:
        """Outer steps in all."""
        return sum(phase.outer for phase in self.phases)

    @property
    def cost(self) -> Cost:
        """Of an outer step of the last phase."""
        inner = self.phases[-1].inner
        norm = self.space.runtime.total_cost()
        steps = inner * (self.objective.cost + norm)
        return steps if self.system.empty else steps + self.system.cost + norm


def certified(method: CrossSliding, work: Workspace, request: Request) -> Prepared:
    """One phase for a radius, or restarts where F is strongly convex."""
    realized = method.realized(work, request)
    goal = method.goal(request)
    assert goal.radius is not None
    steep = (method.lipschitz or declared_lipschitz(work)) * max(1.0, realized.s)
    radius = execution_radius(realized, goal.radius)
    epsilon = goal.absolute
    certifier = method.certifier(work, request, realized)
    feasible, _ = certifier.repaired(certifier.w0, 0.0)
    interval = realized.system.interval
    mu = realized.objective.mu
    norm = 1.0
    sigma = 1.0
    if not realized.system.empty:
        norm = math.sqrt(interval.high)
        sigma = math.sqrt(interval.low)
    mu = mu if math.isfinite(mu) else 0.0
    phases = certified_phases(norm, sigma, steep, radius, epsilon, mu)
    iteration = Sliding(certifier, goal, feasible, tuple(phases))
    found = found_in(
        realized,
        schedule="certified",
        lipschitz=steep,
        T_ns=steep * radius / epsilon,
        phases=len(phases),
        affine=sum(p.affine for p in phases),
        subgradients=sum(p.subgradients for p in phases),
        epsilon_schedule=epsilon,
    )
    stopping = Stop(GapJudge(iteration, goal, found, scheduled=True), first=math.inf)
    return proved(iteration, stopping, "the certified schedule", found, iteration.horizon)


def declared_lipschitz(work: Workspace) -> float:
    """(sum_i M_i^2)^{1/2} of what the objectives declare; one reduction."""
    problem = work.problem
    rows = [
        [a.objective.lipschitz(problem.d[i], problem.q) ** 2] for i, a in problem.agents.items()
    ]
    total = float(work.runtime.total(np.array(rows))[0])
    if not math.isfinite(total):
        raise InputError(
            "cross-sliding: some objective declares no bound on its subgradients; give "
            'CrossSliding(schedule="certified", radius=R, lipschitz=M), M valid within 3R of the '
            "solution"
        )
    return math.sqrt(total)
