"""Smooth-convex continuation, the paper's schedule (Algorithms cvx-stage and cvx-continuation).

Each stage minimises F + (L/2) <w - w_ref, P (w - w_ref)> + (nu/2) ||w - w0||^2 on the feasible set
by accelerated primal-dual steps with P = I - r(Q), then nu is halved; x restarts at f, the dual
stays. The output is repaired by affine calls alone. F need not be strongly convex.
Ledger: 1 + A_tot gradients, d_RF (4 A_tot + 2k + 4) affine calls, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.linalg.filters import (
    chebyshev_correction,
    first_kind_filter,
    outer_degree,
    second_kind_filter,
)
from ccmac.methods.base import Model, ModelIteration, Solver, State
from ccmac.methods.continuation.schedule import Schedule
from ccmac.realizations.system import AffineSystem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Correction:
    """w - RF(w) = P (w - w_ref) of one system; ``degree`` residuals."""

    system: AffineSystem
    degree: int

    @classmethod
    def of(cls, system: AffineSystem) -> Correction:
        """d_RF = ceil sqrt(lambda_hi / l)."""
        return cls(system, outer_degree(system.interval.low, system.interval.high))

    def __call__(self, w: Array) -> Array:
        """P (w - w_ref)."""
        interval = self.system.interval
        moved, _ = chebyshev_correction(
            self.system.residual, w, interval.low, interval.high, self.degree
        )
        return moved


@dataclass(frozen=True)
class StageSteps:
    """tau, eta, theta of one regularization nu; ``weight`` of the augmentation (L in the paper)."""

    nu: float
    tau: float
    eta: float
    theta: float
    weight: float


@dataclass(frozen=True)
class Moved:
    """What one step computed: the new triple, and the values a stage's test needs."""

    x: Array
    f: Array
    p: Array
    g: Array
    gradient: Array  # grad F(g)
    slope: Array  # grad phi_nu(g)
    violation: Array  # P (g - w_ref) (of the half step where nothing is augmented)


def stage_step(
    model: Model, correct: Correction, s: StageSteps, x: Array, f: Array, p: Array, centre: Array
) -> Moved:
    """Algorithm cvx-stage. Cost: 1 gradient, 2 d_RF residuals (d_RF without augmentation)."""
    g = s.tau * x + (1.0 - s.tau) * f
    gradient = model.objective.gradient(g)
    slope = gradient + s.nu * (g - centre)
    violation = None
    if s.weight:
        violation = correct(g)
        slope = slope + s.weight * violation
    shrink = 1.0 / (1.0 + s.eta * s.nu)
    half = (x - s.eta * (slope - s.nu * g + p)) * shrink
    moved = correct(half)
    if violation is None:
        violation = moved
    change = s.theta * moved
    ahead = half - (s.eta * shrink) * change
    return Moved(
        ahead, g + (2.0 * s.tau / (2.0 - s.tau)) * (ahead - x), p + change, g, gradient, slope,
        violation,
    )  # fmt: skip


@dataclass(frozen=True)
class Continuation(Solver):
    """The whole schedule as single steps: stages, then ``repairs`` filters RF and one UF."""

    schedule: Schedule

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """p0 = UF(g0) - g0 (eq. cvxlf-init): 1 gradient, d_UF residuals."""
        system, interval = model.system.homogeneous(), model.system.interval
        gradient = model.objective.gradient(w0)
        degree = outer_degree(interval.low, interval.high)
        filtered, _ = second_kind_filter(system.residual, gradient, interval.high, degree)
        vectors = {"w": w0.copy(), "x": w0.copy(), "p": filtered - gradient, "centre": w0.copy()}
        return State(vectors, scalars={"stage": 0.0, "inner": 0.0, "repairs": 0.0})

    def step(self, model: Model, state: State) -> State:
        """One step of a stage, or one filter of the repair."""
        v, count = state.vectors, state.scalars
        stage = int(count["stage"])
        if stage == len(self.schedule.nu):
            return self._repair(model, state)
        tau, eta, theta = self.schedule.steps_of(stage)
        steps = StageSteps(self.schedule.nu[stage], tau, eta, theta, self.schedule.L)
        moved = stage_step(
            model, Correction.of(model.system), steps, v["x"], v["w"], v["p"], v["centre"]
        )
        v["x"], v["w"], v["p"] = moved.x, moved.f, moved.p
        count["inner"] += 1.0
        if count["inner"] == self.schedule.lengths[stage]:
            count["stage"], count["inner"] = stage + 1.0, 0.0
            v["x"] = v["w"].copy()
        return state

    def _repair(self, model: Model, state: State) -> State:
        system, interval, v = model.system, model.system.interval, state.vectors
        degree = outer_degree(interval.low, interval.high)
        if state.scalars["repairs"] < self.schedule.repairs:
            v["w"], _ = first_kind_filter(
                system.residual, v["w"], interval.low, interval.high, degree
            )
        else:
            v["w"], _ = second_kind_filter(system.residual, v["w"], interval.high, degree)
        state.scalars["repairs"] += 1.0
        return state

    def finished(self, state: State) -> bool:
        """After the last filter."""
        return state.scalars["repairs"] > self.schedule.repairs

    @property
    def horizon(self) -> int:
        """Steps in all: A_tot + k + 1."""
        return self.schedule.steps + self.schedule.repairs + 1

    def iteration_cost(self, model: Model) -> Cost:
        """Of a stage's step."""
        return model.objective.cost + 2 * Correction.of(model.system).degree * model.system.cost


class ScheduledIteration(ModelIteration):
    """A solver that knows when its schedule is over."""

    def finished(self, state: State) -> bool:
        """As the solver says."""
        over = getattr(self.solver, "finished", None)
        return bool(over is not None and over(state))
