"""Accelerated gradients for a smooth convex F without equations (Algorithm cvx-agd).

    x+ = y - grad F(y)/L,   t+ = (1 + sqrt(1 + 4 t^2))/2,   y = x+ + (t - 1)/t+ (x+ - x)

F(x_k) - F* <= 2 L R^2 / (k + 1)^2, so ceil sqrt(2 L R^2 / eps) gradients suffice. Without a number
of steps (the practical branch) the momentum is dropped when it points uphill: one reduction a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ccmac.certificates.gap import Gap, GapCertifier, Goal
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.methods.base import State, vector
from ccmac.methods.convex import ProvedIteration


@dataclass(frozen=True)
class GradientState(State):
    """x, the point y ahead of it, and t."""

    w: Array = vector()
    ahead: Array = vector()
    t: float = 1.0
    count: int = 0


class AcceleratedGradient(ProvedIteration[GradientState]):
    """``steps`` gradients (None: until the stopping rule ends it, with restarts)."""

    def __init__(self, certifier: GapCertifier, goal: Goal, steps: int | None = None) -> None:
        super().__init__(certifier, goal)
        self.steps = steps

    def begin(self, w: Array, p: Array, price: Array) -> GradientState:
        """x = y, t = 1; without equations there is no dual."""
        return GradientState(w, w.copy())

    def step(self, state: GradientState) -> GradientState:
        """One iteration."""
        t = state.t
        ahead = state.ahead
        gradient = self.objective.gradient(ahead)
        new = ahead - gradient / self.objective.L
        if self.steps is None and self.space.dot(gradient, new - state.w) > 0:
            t = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        ahead = new + ((t - 1.0) / following) * (new - state.w)
        return GradientState(new, ahead, following, state.count + 1)

    def quick_gap(self, state: GradientState) -> Gap | None:
        """At the iterate: 1 gradient, an averaging."""
        return self.certifier.gap(state.w, self.objective.gradient(state.w), self.space.zeros())

    def finished(self, state: GradientState) -> bool:
        """After ``steps`` gradients."""
        return self.steps is not None and state.count >= self.steps

    @property
    def cost(self) -> Cost:
        """1 gradient (and a reduction with restarts)."""
        reduction = self.space.runtime.total_cost() if self.steps is None else Cost()
        return self.objective.cost + reduction
