"""Primal-dual sliding (Algorithm alg:cross-sliding): many subgradients for every affine call.

    xt = x + xh - x_before;   y = Proj_{Rl}(y + (K xt - v)/tau);   g = K'y
    u = x;  for t = 1..T:  u = Proj_{B(x0, 2R)} ((x + (t/2) u - (g + F'(u))/eta) / (1 + t/2))
    x_before, x = x, u;   xh = sum_t (t + 1) u_t / (T (T + 3)/2);   output: mean of the xh

The stack is seen through G = K'K alone: y = K s with s += (xt - w_f)/tau and a feasible w_f found
in setup, K'y = G s, ||y||^2 = <s, G s>: one residual an outer step. Lengths, with ||x0 - x*|| <= R,
M >= ||F'|| on B(x*, 3R) and Rl = 2M/sigma (Lemma lem:ns-dual-radius):

    eta = ||K|| Rl / R,   tau = ||K|| R / Rl,   T = max(1, ceil(32 M^2 / (eta eps)) - 3),
    om = 1 + 2 / (T (T + 3)),   N = ceil((1 + om) ||K|| R Rl / eps)

give F - F* + Rl ||K x - v|| <= eps after N outer steps of T subgradients each. Without known R and
M (here) phases have no balls, M is the largest subgradient seen, R doubles when a phase travels
further than half the guess, and the target halves from phase to phase. The dual is kept. Each phase
ends with a bound on the gap at the average of the points where subgradients were taken. Cost of an
outer step: 2 affine calls, T subgradients. ``schedule="certified"`` runs the schedule for known R
and M (:mod:`ccmac.paper.schedules.sliding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ccmac.certificates.gap import GapCertifier, Goal, PointGap
from ccmac.certificates.realized import Later, zero
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import State, rows, vector
from ccmac.methods.convex import ProvedIteration


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
    norm: float,
    sigma: float,
    lipschitz: float,
    radius: float,
    epsilon: float,
    *,
    thrift: float = 1.0,
) -> Phase:
    """The phase for ||K|| <= norm, sigma_min^+ >= sigma; ``thrift`` > 1 shortens both loops."""
    dual = 2.0 * lipschitz / sigma
    eta = norm * dual / radius
    tau = norm * radius / dual
    inner = max(1, math.ceil(32.0 * lipschitz**2 / (eta * epsilon * thrift)) - 3)
    growth = 1.0 + 2.0 / (inner * (inner + 3))
    outer = max(1, math.ceil((1.0 + growth) * norm * radius * dual / (epsilon * thrift)))
    return Phase(radius, dual, eta, tau, outer, inner)


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

    def tight_gap(self, state: P) -> PointGap:
        """At the repaired average; the last iterate's bound is reported next to it (1 gradient)."""
        point, slope, slack = self.averaged(state)
        average = self.certifier.tight_subgradient(point, slope, self.goal, slack)
        slope = self.objective.gradient(state.last)
        other = self.certifier.gap(state.last, slope, average.p, multiplier=average.multiplier)
        for name, gap in (("average", average), ("last", other)):
            self.found[f"gap_{name}"] = gap.bound(gap.required(self.goal))
        return replace(average, source="average")


@dataclass(frozen=True, kw_only=True)
class DoublingState(SlidingState):
    """Sums since the phase began (``fresh``: it has just ended); M, R and the target as known."""

    w_sum: Array = vector()
    slope_sum: Array = vector()
    products: Array = rows()
    lipschitz: float
    radius: float
    target: float
    terms: float = 0.0
    fresh: bool = False


def steepness(size: float) -> float:
    """The first guess of M: a subgradient's length, or 1 where it vanishes and tells nothing."""
    return size if size > 1e-12 else 1.0


class DoublingSliding(SubgradientIteration[DoublingState]):
    """``radius`` is the first guess of R (execution units)."""

    def __init__(self, certifier: GapCertifier, goal: Goal, feasible: Array, radius: float) -> None:
        super().__init__(certifier, goal, feasible)
        self.radius = radius

    def begin(self, w: Array, p: Array, multiplier: Array) -> DoublingState:
        """M from the subgradient at the start; the first target is M R."""
        steep = steepness(self.space.norm(self.objective.gradient(w)))
        zeros = self.space.zeros
        return DoublingState(
            w=w,
            last=w.copy(),
            x=w.copy(),
            x_before=w.copy(),
            hat=w.copy(),
            centre=w.copy(),
            mean=zeros(),
            dual=zeros(),
            p=zeros(),
            w_sum=zeros(),
            slope_sum=zeros(),
            products=np.zeros((self.space.count, 1)),
            lipschitz=steep,
            radius=self.radius,
            target=steep * self.radius,
        )

    def phase(self, state: DoublingState) -> Phase:
        """Lengths for what is known now."""
        high = 1.0
        low = 1.0
        if not self.system.empty:
            high = self.system.interval.high
            low = self.system.interval.low
        phase = balanced_phase(
            math.sqrt(high),
            math.sqrt(low),
            state.lipschitz,
            state.radius,
            state.target,
            # by which both loops are shorter than the schedule's: a bound ends the run
            thrift=8.0,
        )
        # subgradients of an outer step: none goes on for ever, whatever R and M say
        return replace(phase, inner=min(phase.inner, 5_000))

    def step(self, state: DoublingState) -> DoublingState:
        """One outer step; at the end of a phase the guesses are renewed."""
        space = self.space
        phase = self.phase(state)
        sums = Sums(state.w_sum, state.slope_sum, state.products, state.terms)
        if state.fresh:
            sums = Sums(space.zeros(), space.zeros(), np.zeros((space.count, 1)))
        state = replace(
            self.outer_step(state, phase, sums),
            w_sum=sums.points,
            slope_sum=sums.slopes,
            products=sums.products,
            terms=sums.terms,
            fresh=False,
        )
        if state.outer < phase.outer:
            return state
        average = state.mean / state.outer
        moved, steep = space.norms(average - state.centre, self.objective.gradient(average))
        return replace(
            self.renewed(state, average),
            w=average,
            lipschitz=max(state.lipschitz, steep),
            radius=max(state.radius, min(2.0 * moved, 2.0 * state.radius)),
            target=0.5 * state.target,
            fresh=True,
        )

    def averaged(self, state: DoublingState) -> tuple[Array, Array, Later]:
        """Where subgradients were taken since the phase began."""
        if not state.terms:
            return super().averaged(state)
        point = state.w_sum / state.terms
        slope = state.slope_sum / state.terms
        rows = state.products / state.terms - self.space.partial_dots(slope, point)
        slack = self.space.runtime.piggyback(rows)
        return point, slope, lambda: max(float(slack.value[0]), 0.0)

    def quick_gap(self, state: DoublingState) -> PointGap | None:
        """At the end of a phase: projecting the average subgradient is part of the bound."""
        return self.tight_gap(state) if state.fresh else None

    @property
    def cost(self) -> Cost:
        """Of an outer step with one subgradient (the number grows from phase to phase)."""
        return self.objective.cost + self.residual_cost
