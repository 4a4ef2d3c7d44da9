"""The paper's schedule of smooth-convex continuation.

Algorithm alg:cvx-stage, Algorithm alg:cvx-continuation; the orders of
Theorem thm:smooth-convex-logfree.

Each stage minimises F + (L/2) <w - w_ref, P (w - w_ref)> + (nu/2) ||w - w0||^2 on the feasible set
by accelerated primal-dual steps with P = I - r(Q), then nu is halved; x restarts at f, the dual
stays. The output is repaired by affine calls alone. F need not be strongly convex. Log-free lengths
(Equation eq:cvxlf-schedule), T = sqrt(L R^2 / eps):

    B = max(200, 20 + (Lambda + 6)^2),   S = ceil log2(64 L R^2 / eps),   nu_s = L 2^{-s},
    k_s = ceil(log B / log(1 + 2^{-s/2}/24)),
    k = max(0, ceil log2(16 sqrt(2) (Lambda + 6) L R^2 / eps))

Ledger (Equation eq:cvxlf-ledger): 1 + A_tot gradients, d_RF (4 A_tot + 2k + 4) affine calls,
exactly, where A_tot = sum_s k_s = O(T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ccmac.certificates.gap import GapCertifier, GapJudge, Goal, execution_radius
from ccmac.certificates.stopping import Stop
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.chebyshev import outer_degree
from ccmac.methods.base import Prepared, State, vector
from ccmac.methods.continuation import AcceleratedGradient, Correction, StageSteps, stage_step
from ccmac.methods.realized import ProvedIteration, proved
from ccmac.paper.polynomials import first_kind_filter, second_kind_filter

if TYPE_CHECKING:
    from ccmac.methods.continuation import CrossContinuation


@dataclass(frozen=True)
class Schedule:
    """Stage lengths ``lengths`` with regularizations ``nu``, then ``repairs`` residual filters."""

    L: float
    nu: tuple[float, ...]
    lengths: tuple[int, ...]
    repairs: int
    time: float  # T_cvx

    @property
    def steps(self) -> int:
        """A_tot."""
        return sum(self.lengths)

    @property
    def horizon(self) -> int:
        """Driver steps in all: A_tot + k + 1."""
        return self.steps + self.repairs + 1

    def gradients(self) -> int:
        """1 + A_tot."""
        return 1 + self.steps

    def affine(self, degree: int) -> int:
        """d_RF (4 A_tot + 2k + 4)."""
        return degree * (4 * self.steps + 2 * self.repairs + 4)

    def steps_of(self, stage: int) -> tuple[float, float, float]:
        """(tau, eta, theta) of a stage: L_in = 6L, mu_in = nu, correction in [1/2, 3]."""
        nu = self.nu[stage]
        root = math.sqrt(self.L * nu)
        return 0.5 * math.sqrt(nu / self.L), 1.0 / (12.0 * root), 4.0 * root


def certified_schedule(L: float, radius: float, epsilon: float, budget: float) -> Schedule:
    """The schedule for ||w0 - w*|| <= radius and sigma ||lambda*|| <= budget L radius."""
    size = L * radius * radius
    if not 0 < epsilon <= size:
        raise InputError(
            f"continuation: eps = {epsilon:.3g} must be positive and at most L R^2 = {size:.3g}; "
            "the start is already accurate, or the radius is too small"
        )
    constant = max(200.0, 20.0 + (budget + 6.0) ** 2)
    last = math.ceil(math.log2(64.0 * size / epsilon))
    lengths = tuple(
        math.ceil(math.log(constant) / math.log1p(2.0 ** (-s / 2) / 24.0)) for s in range(last + 1)
    )
    repairs = max(0, math.ceil(math.log2(16.0 * math.sqrt(2.0) * (budget + 6.0) * size / epsilon)))
    nu = tuple(L * 2.0**-s for s in range(last + 1))
    return Schedule(L, nu, lengths, repairs, math.sqrt(size / epsilon))


def gradient_steps(L: float, radius: float, epsilon: float) -> int:
    """N_AGD = ceil sqrt(2 L R^2 / eps) of the branch without equations (Algorithm alg:cvx-agd)."""
    return max(1, math.ceil(math.sqrt(2.0 * L * radius * radius / epsilon)))


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

    def begin(self, w: Array, p: Array, multiplier: Array) -> StageState:
        """p0 = UF(g0) - g0 (Equation eq:cvxlf-init): 1 gradient, d_UF residuals."""
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


def certified(
    method: CrossContinuation, certifier: GapCertifier, goal: Goal, found: dict[str, Any]
) -> Prepared:
    """The exact schedule; the multiplier budget is 1 + ||grad F(w0)|| / (L R) unless supplied.

    That budget is always valid: sigma ||lambda*|| <= ||grad F(w*)|| <= ||grad F(w0)|| + L R.
    """
    assert goal.radius is not None
    realized = certifier.realized
    why = "the paper's schedule"
    objective = realized.objective
    interval = realized.system.interval
    L = objective.L
    radius = execution_radius(realized, goal.radius)
    epsilon = goal.absolute
    found["epsilon_schedule"] = epsilon
    if realized.system.empty:
        found["steps"] = steps = gradient_steps(L, radius, epsilon)
        gradients = AcceleratedGradient(certifier, goal, steps)
        stopping = Stop(GapJudge(gradients, goal, found, scheduled=True), first=math.inf)
        return proved(gradients, stopping, why, found, steps)
    budget = method.multiplier_budget
    if budget is None:
        slope = objective.gradient(certifier.w0)
        budget = 1.0 + realized.space.norm(slope) / (L * radius)
    plan = certified_schedule(L, radius, epsilon, budget)
    degree = outer_degree(interval.low, interval.high)
    found.update(
        multiplier_budget=budget,
        T_cvx=plan.time,
        steps=plan.steps,
        repairs=plan.repairs,
        stages=len(plan.nu),
        gradients=plan.gradients(),
        affine=plan.affine(degree),
    )
    stages = Continuation(certifier, goal, plan)
    stopping = Stop(GapJudge(stages, goal, found, scheduled=True), first=math.inf)
    return proved(stages, stopping, why, found, plan.horizon)
