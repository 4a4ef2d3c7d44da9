"""Sliding without known constants: subgradients only, for objectives that have no prox.

Phases like those of the certified schedule, without balls, with M the largest subgradient seen, R
doubled when a phase travels further than half the guess, and the target halved
from phase to phase. The dual is kept. Each phase ends with a bound on the gap at the average of the
points where subgradients were taken; the run ends when the bound proves the criterion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.certificates.gap import Gap, GapCertifier, Goal
from ccmac.certificates.realized import Later
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import rows, vector
from ccmac.methods.sliding.schedule import Phase, balanced_phase
from ccmac.methods.sliding.steps import SlidingState, SubgradientIteration, Sums

THRIFT = 8.0
SMALLEST = 1e-12
LONGEST = 100_000  # subgradients of an outer step: none goes on for ever, whatever R and M say


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
    return size if size > SMALLEST else 1.0


class DoublingSliding(SubgradientIteration[DoublingState]):
    """``radius`` is the first guess of R (execution units)."""

    def __init__(self, certifier: GapCertifier, goal: Goal, feasible: Array, radius: float) -> None:
        super().__init__(certifier, goal, feasible)
        self.radius = radius

    def begin(self, w: Array, p: Array, price: Array) -> DoublingState:
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
            thrift=THRIFT,
        )
        return replace(phase, inner=min(phase.inner, LONGEST))

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
        slack = self.space.runtime.ride(rows)
        return point, slope, lambda: max(float(slack.value[0]), 0.0)

    def quick_gap(self, state: DoublingState) -> Gap | None:
        """At the end of a phase: projecting the average subgradient is part of the bound."""
        return self.tight_gap(state) if state.fresh else None

    @property
    def cost(self) -> Cost:
        """Of an outer step with one subgradient (the number grows from phase to phase)."""
        return self.objective.cost + self.residual_cost
