"""Primal-dual sliding (Algorithm cross-sliding): many subgradients for every affine call.

    xt = x + xh - x_before;   y = Proj_{Rl}(y + (K xt - v)/tau);   g = K'y
    u = x;  for t = 1..T:  u = Proj_{B(x0, 2R)} ((x + (t/2) u - (g + F'(u))/eta) / (1 + t/2))
    x_before, x = x, u;   xh = sum_t (t + 1) u_t / (T (T + 3)/2);   output: mean of the xh

The stack is seen through G = K'K alone: y = K s with s += (xt - w_f)/tau and a feasible w_f found
in setup, K'y = G s, ||y||^2 = <s, G s>: one residual an outer step. Cost of an outer step: 2 affine
calls, T subgradients, and T + 1 norms over all agents whose rounds are charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ccmac.certificates.gap import Gap, GapCertifier, Goal
from ccmac.certificates.realized import Later, zero
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import State, vector
from ccmac.methods.convex import ProvedIteration
from ccmac.methods.sliding.schedule import Phase


@dataclass(frozen=True, kw_only=True)
class SlidingState(State):
    """The output w, the last u, the sequences of the module text, s (``dual``) and p = K'y.

    ``outer`` steps of the current phase are done, and ``phase`` phases before it.
    """

    w: Array = vector()
    last: Array = vector()
    x: Array = vector()
    x_before: Array = vector()
    hat: Array = vector()
    centre: Array = vector()
    mean: Array = vector()
    dual: Array = vector()
    p: Array = vector()
    outer: int = 0
    phase: int = 0


P = TypeVar("P", bound=SlidingState)


@dataclass
class Sums:
    """Weighted sums of points, of subgradients there and of their products, for a bound.

    Each agent keeps its own share of the products; they are added up where a bound needs them.
    """

    points: Array
    slopes: Array
    products: Array
    terms: float = 0.0


class SubgradientIteration(ProvedIteration[P]):
    """Outer steps of sliding; ``feasible`` is w_f."""

    def __init__(self, certifier: GapCertifier, goal: Goal, feasible: Array) -> None:
        super().__init__(certifier, goal)
        self.feasible = feasible

    def renewed(self, state: P, centre: Array) -> P:
        """x = x_before = xh = centre at the start of the next phase; the dual stays."""
        return replace(
            state,
            x=centre,
            x_before=centre,
            hat=centre,
            centre=centre,
            mean=np.zeros_like(centre),
            outer=0,
            phase=state.phase + 1,
        )

    def outer_step(self, state: P, phase: Phase, sums: Sums | None = None) -> P:
        """One outer step of a phase; with ``sums`` nothing is projected and no norm is taken."""
        space = self.space
        system = self.system
        x = state.x
        dual = state.dual
        p = state.p
        if not system.empty:
            dual += (x + state.hat - state.x_before - self.feasible) / phase.tau
            p = system.homogeneous().residual(dual)[0]
            if sums is None:
                size = math.sqrt(max(space.dot(dual, p), 0.0))
                if size > phase.dual_radius:
                    dual *= phase.dual_radius / size
                    p *= phase.dual_radius / size
        u = x
        total = np.zeros_like(x)
        for t in range(1, phase.inner + 1):
            space.runtime.mind_the_time()  # nothing is sent for as long as this takes
            slope = self.objective.gradient(u)
            if sums is not None:
                # With these weights the steps telescope: the average of slope + p tends to zero.
                sums.slopes += (t + 1.0) * slope
                sums.points += (t + 1.0) * u
                sums.products += (t + 1.0) * space.partial_dots(slope, u)
                sums.terms += t + 1.0
            u = (x + (0.5 * t) * u - (slope + p) / phase.eta) / (1.0 + 0.5 * t)
            if sums is None:
                u = self._onto_ball(u, state.centre, 2.0 * phase.radius)
            total += (t + 1.0) * u
        hat = total / (0.5 * phase.inner * (phase.inner + 3))
        mean = state.mean
        mean += hat
        return replace(
            state, x_before=x, x=u, last=u, hat=hat, dual=dual, p=p, outer=state.outer + 1
        )

    def _onto_ball(self, u: Array, centre: Array, radius: float) -> Array:
        """Projection onto B(centre, radius); one norm over all agents."""
        away = u - centre
        size = self.space.norm(away)
        return u if size <= radius else centre + (radius / size) * away

    def averaged(self, state: P) -> tuple[Array, Array, Later]:
        """(point, subgradient, slack) for the bound: at the output, 1 gradient."""
        return state.w, self.objective.gradient(state.w), zero

    def tight_gap(self, state: P) -> Gap:
        """At the repaired average; the last iterate's bound is reported beside it (1 gradient)."""
        point, slope, slack = self.averaged(state)
        average = self.certifier.tight_subgradient(point, slope, self.goal, slack)
        slope = self.objective.gradient(state.last)
        other = self.certifier.gap(state.last, slope, average.p, price=average.price)
        for name, gap in (("average", average), ("last", other)):
            self.found[f"gap_{name}"] = gap.bound(gap.required(self.goal))
        return replace(average, source="average")


class Sliding(SubgradientIteration[SlidingState]):
    """Fixed phases; one driver step is one outer step.

    At the end F - F* + (2M/sigma) ||K w - v|| is at most the accuracy of the schedule.
    """

    def __init__(
        self, certifier: GapCertifier, goal: Goal, feasible: Array, phases: tuple[Phase, ...]
    ) -> None:
        super().__init__(certifier, goal, feasible)
        self.phases = phases

    def begin(self, w: Array, p: Array, price: Array) -> SlidingState:
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

    def tight_gap(self, state: SlidingState) -> Gap:
        """For a strongly convex F the theorem bounds the error too: ||w - w*||^2 / 2 <= eps."""
        found = super().tight_gap(state)
        if not (self.finished(state) and self.certifier.strong):
            return found
        error = math.sqrt(2.0 * self.goal.absolute) * self.certifier.error_unit
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
