"""Smooth-convex continuation, the paper's schedule (Algorithms cvx-stage and cvx-continuation).

Each stage minimises F + (L/2) <w - w_ref, P (w - w_ref)> + (nu/2) ||w - w0||^2 on the feasible set
by accelerated primal-dual steps with P = I - r(Q), then nu is halved; x restarts at f, the dual
stays. The output is repaired by affine calls alone. F need not be strongly convex.
Ledger: 1 + A_tot gradients, d_RF (4 A_tot + 2k + 4) affine calls, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ccmac.certificates.gap import GapCertifier, Goal
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import (
    chebyshev_correction,
    first_kind_filter,
    outer_degree,
    second_kind_filter,
)
from ccmac.methods.base import State, vector
from ccmac.methods.continuation.schedule import Schedule
from ccmac.methods.convex import ProvedIteration
from ccmac.realizations.base import AffineSystem
from ccmac.realizations.objective import ExecutionObjective


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
    slope: Array  # grad phi_nu(g)
    violation: Array  # P (g - w_ref) (of the half step where nothing is augmented)


def stage_step(
    objective: ExecutionObjective,
    correct: Correction,
    s: StageSteps,
    x: Array,
    f: Array,
    p: Array,
    centre: Array,
) -> Moved:
    """Algorithm cvx-stage. Cost: 1 gradient, 2 d_RF residuals (d_RF without augmentation)."""
    g = s.tau * x + (1.0 - s.tau) * f
    slope = objective.gradient(g) + s.nu * (g - centre)
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
    f = g + (2.0 * s.tau / (2.0 - s.tau)) * (ahead - x)
    return Moved(ahead, f, p + change, g, slope, violation)


@dataclass(frozen=True)
class StageState(State):
    """f (as w), x, the dual p and the centre w0; where in the schedule this is."""

    w: Array = vector()
    x: Array = vector()
    p: Array = vector()
    centre: Array = vector()
    stage: int = 0
    inner: int = 0
    repairs: int = 0


class Continuation(ProvedIteration[StageState]):
    """The whole schedule as single steps: stages, then ``repairs`` filters RF and one UF."""

    def __init__(self, certifier: GapCertifier, goal: Goal, schedule: Schedule) -> None:
        super().__init__(certifier, goal)
        self.schedule = schedule

    def begin(self, w: Array, p: Array, price: Array) -> StageState:
        """p0 = UF(g0) - g0 (eq. cvxlf-init): 1 gradient, d_UF residuals."""
        system = self.system.homogeneous()
        interval = self.system.interval
        gradient = self.objective.gradient(w)
        degree = outer_degree(interval.low, interval.high)
        filtered, _ = second_kind_filter(system.residual, gradient, interval.high, degree)
        return StageState(w, w.copy(), filtered - gradient, w.copy())

    def step(self, state: StageState) -> StageState:
        """One step of a stage, or one filter of the repair."""
        stage = state.stage
        plan = self.schedule
        if stage == len(plan.nu):
            return self._repair(state)
        steps = StageSteps(plan.nu[stage], *plan.steps_of(stage), plan.L)
        moved = stage_step(
            self.objective,
            Correction.of(self.system),
            steps,
            state.x,
            state.w,
            state.p,
            state.centre,
        )
        state = replace(state, w=moved.f, x=moved.x, p=moved.p, inner=state.inner + 1)
        if state.inner < plan.lengths[stage]:
            return state
        return replace(state, x=moved.f, stage=stage + 1, inner=0)

    def _repair(self, state: StageState) -> StageState:
        residual = self.system.residual
        interval = self.system.interval
        low = interval.low
        high = interval.high
        degree = outer_degree(low, high)
        if state.repairs < self.schedule.repairs:
            w, _ = first_kind_filter(residual, state.w, low, high, degree)
        else:
            w, _ = second_kind_filter(residual, state.w, high, degree)
        return replace(state, w=w, repairs=state.repairs + 1)

    def finished(self, state: StageState) -> bool:
        """After the last filter."""
        return state.repairs > self.schedule.repairs

    @property
    def cost(self) -> Cost:
        """Of a stage's step."""
        return self.objective.cost + 2 * Correction.of(self.system).degree * self.system.cost
