"""The certified schedule of primal-dual sliding, for a radius R and a bound M on subgradients.

Algorithm alg:cross-sliding, many subgradients for every affine call; Theorem thm:nonsmooth-upper,
with M of Equation eq:local-lipschitz.

    xt = x + xh - x_before;   y = Proj_{Rl}(y + (K xt - v)/tau);   g = K'y
    u = x;  for t = 1..T:  u = Proj_{B(x0, 2R)} ((x + (t/2) u - (g + F'(u))/eta) / (1 + t/2))
    x_before, x = x, u;   xh = sum_t (t + 1) u_t / (T (T + 3)/2);   output: mean of the xh

The stack is seen through G = K'K alone: y = K s with s += (xt - w_f)/tau and a feasible w_f found
in setup, K'y = G s, ||y||^2 = <s, G s>: one residual an outer step. Lengths, with ||x0 - x*|| <= R,
M >= ||F'|| on B(x*, 3R) and Rl = 2M/sigma (Lemma lem:ns-dual-radius):

    eta = ||K|| Rl / R,   tau = ||K|| R / Rl,   T = max(1, ceil(32 M^2 / (eta eps)) - 3),
    om = 1 + 2 / (T (T + 3)),   N = ceil((1 + om) ||K|| R Rl / eps)

give F - F* + Rl ||K x - v|| <= eps after N outer steps of T subgradients each.

For a mu-strongly convex F phases with R_{s+1} = R_s / 2 and eps_s = mu R_s^2 / 8 end after the
first eps_s <= eps. About 8 chi M R / eps affine calls and 64 (M R / eps)^2 subgradients; a norm
over all agents after each of them, whose rounds are charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, PointGap, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import InputError, MethodRefused
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import Prepared, Request, State, vector
from ccmac.methods.realized import ProvedIteration, found_in, proved
from ccmac.problem import Problem
from ccmac.workspace import Workspace

if TYPE_CHECKING:
    from ccmac.methods.sliding import CrossSliding


@dataclass(frozen=True)
class Phase:
    """One run of the sliding loop: ``outer`` steps with ``inner`` subgradients each."""

    radius: float
    dual_radius: float
    eta: float
    tau: float
    outer: int
    inner: int

    @property
    def affine(self) -> int:
        """Normalized calls: one forward and one adjoint an outer step."""
        return 2 * self.outer

    @property
    def subgradients(self) -> int:
        """In all."""
        return self.outer * self.inner


def balanced_phase(
    norm: float, sigma: float, lipschitz: float, radius: float, epsilon: float
) -> Phase:
    """The phase for ||K|| <= norm, sigma_min^+ >= sigma."""
    dual = 2.0 * lipschitz / sigma
    eta = norm * dual / radius
    tau = norm * radius / dual
    inner = max(1, math.ceil(32.0 * lipschitz**2 / (eta * epsilon)) - 3)
    growth = 1.0 + 2.0 / (inner * (inner + 3))
    outer = max(1, math.ceil((1.0 + growth) * norm * radius * dual / (epsilon)))
    return Phase(radius, dual, eta, tau, outer, inner)


ORACLES = frozenset({"gradient", "subgradient"})


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


@dataclass(frozen=True)
class SlidingState(State):
    """The output w, the sequences of the module text, s (``dual``) and p = K'y.

    ``outer`` steps of the current phase are done, and ``phase`` phases before it.
    """

    w: Array = vector()
    x: Array = vector()
    x_before: Array = vector()
    hat: Array = vector()
    centre: Array = vector()
    mean: Array = vector()
    dual: Array = vector()
    p: Array = vector()
    outer: int = 0
    phase: int = 0


class Sliding(ProvedIteration[SlidingState]):
    """Fixed phases; one driver step is one outer step. ``feasible`` is w_f.

    At the end F - F* + (2M/sigma) ||K w - v|| is at most the accuracy of the schedule.
    """

    def __init__(
        self, certifier: GapCertifier, goal: Goal, feasible: Array, phases: tuple[Phase, ...]
    ) -> None:
        super().__init__(certifier, goal)
        self.feasible = feasible
        self.phases = phases

    def begin(self, w: Array, p: Array, multiplier: Array) -> SlidingState:
        """At the start of the first phase, without a dual."""
        zeros = self.space.zeros
        return SlidingState(
            w=w,
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
        none = np.zeros_like(w)
        return replace(
            state,
            w=w,
            x=w,
            x_before=w,
            hat=w,
            centre=w,
            mean=none,
            dual=none.copy(),
            p=none.copy(),
            outer=0,
            phase=state.phase + 1,
        )

    def outer_step(self, state: SlidingState, phase: Phase) -> SlidingState:
        """One outer step of a phase."""
        space = self.space
        system = self.system
        x = state.x
        dual = state.dual
        p = state.p
        if not system.empty:
            dual += (x + state.hat - state.x_before - self.feasible) / phase.tau
            p = system.homogeneous().residual(dual)[0]
            size = math.sqrt(max(space.dot(dual, p), 0.0))
            if size > phase.dual_radius:
                dual *= phase.dual_radius / size
                p *= phase.dual_radius / size
        u = x
        total = np.zeros_like(x)
        for t in range(1, phase.inner + 1):
            space.runtime.mind_the_time()  # nothing is sent for as long as this takes
            slope = self.objective.gradient(u)
            u = (x + (0.5 * t) * u - (slope + p) / phase.eta) / (1.0 + 0.5 * t)
            u = self._onto_ball(u, state.centre, 2.0 * phase.radius)
            total += (t + 1.0) * u
        hat = total / (0.5 * phase.inner * (phase.inner + 3))
        mean = state.mean
        mean += hat
        return replace(state, x_before=x, x=u, hat=hat, dual=dual, p=p, outer=state.outer + 1)

    def _onto_ball(self, u: Array, centre: Array, radius: float) -> Array:
        """Projection onto B(centre, radius); one norm over all agents."""
        away = u - centre
        size = self.space.norm(away)
        return u if size <= radius else centre + (radius / size) * away

    def finished(self, state: SlidingState) -> bool:
        """After the last phase."""
        return state.phase >= len(self.phases)

    def tight_gap(self, state: SlidingState) -> PointGap:
        """At the repaired average."""
        slope = self.objective.gradient(state.w)
        average = self.certifier.tight_subgradient(state.w, slope, self.goal)
        return replace(average, source="average")

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
    refuse_sets(work.problem)
    realized = method.realized(work, request)
    goal = method.goal(request)
    assert goal.radius is not None
    steep = (method.lipschitz or declared_lipschitz(work)) * max(1.0, realized.s)
    radius = execution_radius(realized, goal.radius)
    epsilon = goal.absolute
    certifier = GapCertifier(realized, realized.embed(request.x0, request.z0))
    feasible, _ = certifier.repaired(certifier.w0)
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


def refuse_sets(problem: Problem) -> None:
    """The schedule needs an oracle from everybody; name who has none (a set, say)."""
    for i, agent in problem.agents.items():
        objective = agent.objective
        if objective.capabilities & ORACLES:
            continue
        parts = [getattr(objective, name, None) for name in ("x_part", "z_part")]
        lacking = [p for p in parts if p is not None and not p.capabilities & ORACLES]
        named = type(lacking[0] if lacking else objective).__name__
        raise MethodRefused(
            f"cross-sliding, agent {i}: {named} has no subgradient (a set, or a sum with one); "
            "use schedule='practical' with objectives that all have a prox"
        )
