"""Smooth-convex continuation with stages ended by a computable test: the practical schedule.

Opening: plain primal-dual gradient steps on the normalized stack,

    w+ = w - tau (grad F(w) + p),   p+ = p + sigma (G (2 w+ - w) - g),   1/tau - sigma l_+ >= L/2,

for as long as the proved gap falls at least like 1/k^2 (they win on well-conditioned problems).
Then stages: an inexact proximal point method whose subproblems F + (nu/2) ||w - c||^2 are solved by
the steps of Algorithm cvx-stage (without its augmentation, unless asked) until

    ||grad phi_nu(g) + p|| <= 0.8 nu ||g - c||   and   ||violation|| <= 0.8 (nu/L)^{1/2} ||g - c||;

then the point is repaired, the dual is corrected by affine calls, the gap is bounded, the centre
moves there, and nu shrinks by 4 when the bound did not halve. All norms ride on messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.gap import Gap, GapCertifier, Goal, execution_radius
from ccmac.ledger import Cost
from ccmac.linalg.filters import correction_interval
from ccmac.methods.base import Model, Solver, State
from ccmac.methods.continuation.steps import Correction, StageSteps, stage_step
from ccmac.methods.primal_dual import adapted_weight, next_adaptation

Array = NDArray[np.float64]
LEAST_STEPS = 3
TEST = 0.8
GROWTH = 1.25
LOOK_BACK = 3  # checks: about twice the iterations
GAP = ("value", "base", "slope", "distance", "travelled")


@dataclass(frozen=True)
class PracticalContinuation(Solver):
    """Needs the certifier of its realized problem: the bound steers the stages."""

    certifier: GapCertifier
    goal: Goal
    augmented: bool = False
    opening: bool = True

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """The dual cancels what multipliers can of grad F(w0), roughly; the gap is bounded."""
        L = model.objective.L
        gradient = model.objective.gradient(w0)
        start = np.zeros_like(w0) if p is None else p.copy()
        vectors = {"w": w0.copy(), "x": w0.copy(), "p": start, "centre": w0.copy()}
        vectors["p_centre"] = start.copy()
        scalars = {
            "stages": float(not self.opening), "nu": L / 4.0, "inner": 0.0, "weight": 0.3 * L,
            "adapt": 4.0, "check": 8.0, "fresh": 0.0, "late": 0.0,
        }  # fmt: skip
        scalars.update({f"gap{k}": math.inf for k in range(LOOK_BACK + 1)})
        state = State(vectors, scalars=scalars)
        self._store(state, self.certifier.gap(w0, gradient, start))
        return state

    def step(self, model: Model, state: State) -> State:
        """One step of the opening or of a stage."""
        state.scalars["fresh"] = 0.0
        state.scalars["inner"] += 1.0
        return (self._stage if state.scalars["stages"] else self._open)(model, state)

    # -- opening -------------------------------------------------------------------
    def _open(self, model: Model, state: State) -> State:
        v, s, L = state.vectors, state.scalars, model.objective.L
        weight, w = s["weight"], v["w"]
        gradient = model.objective.gradient(w)
        if s["inner"] >= s["check"]:
            s["check"] = math.ceil(GROWTH * s["check"])
            self._store(state, self.certifier.gap(w, gradient, v["p"]))
            if self._slow(s):
                self._begin_stages(state)
                return state
        ahead = w - (0.99 / (0.5 * L + weight)) * (gradient + v["p"])
        moved = model.system.residual(2.0 * ahead - w)[0]
        v["p"] = v["p"] + (weight / model.system.interval.high) * moved
        v["w"] = ahead
        if s["inner"] >= s["adapt"]:
            s["weight"] = adapted_weight(
                self.certifier.space, weight, 0.3 * L, v["p"] - v["p_centre"], ahead - v["centre"]
            )
            s["adapt"] = next_adaptation(s["adapt"])
        return state

    def _slow(self, s: dict[str, float]) -> bool:
        """Twice in a row the gap fell by less than 4 while the iterations doubled."""
        slow = s["gap0"] > 0.25 * s[f"gap{LOOK_BACK}"] and math.isfinite(s[f"gap{LOOK_BACK}"])
        s["late"] = s["late"] + 1.0 if slow else 0.0
        return s["late"] >= 2.0

    def _begin_stages(self, state: State) -> None:
        v = state.vectors
        v["x"], v["centre"] = v["w"].copy(), v["w"].copy()
        state.scalars.update(stages=1.0, inner=0.0)

    # -- stages -------------------------------------------------------------------
    def _stage(self, model: Model, state: State) -> State:
        v, s, L, space = state.vectors, state.scalars, model.objective.L, self.certifier.space
        correct, nu = Correction.of(model.system), s["nu"]
        interval = model.system.interval
        low, high = correction_interval(interval.low, interval.high, correct.degree)
        weight = L if self.augmented else 0.0
        smooth = L + weight * high + nu
        tau = min(1.0, 0.5 * math.sqrt(high * nu / (low * smooth)))
        eta = 1.0 / (4.0 * tau * smooth)
        steps = StageSteps(nu, tau, eta, 1.0 / (eta * high), weight)
        moved = stage_step(model, correct, steps, v["x"], v["w"], v["p"], v["centre"])
        v["x"], v["w"], v["p"] = moved.x, moved.f, moved.p
        if s["inner"] < LEAST_STEPS:
            return state
        away = space.norm(moved.g - v["centre"], riding=True)
        steep = space.norm(moved.slope + moved.p, riding=True)
        off = space.norm(moved.violation, riding=True)
        if steep <= TEST * nu * away and off <= TEST * math.sqrt(nu / L) * away:
            self._end_stage(model, state, moved.g)
        return state

    def _end_stage(self, model: Model, state: State, g: Array) -> None:
        v, s, L = state.vectors, state.scalars, model.objective.L
        before = self.stored(state)
        epsilon = self.goal.epsilon(before.value)
        target = max(epsilon, 0.05 * before.bound(before.required(self.goal)))
        radius = max(before.required(self.goal), self.certifier.travelled(g))
        size = max(L * execution_radius(self.certifier.realized, radius), before.steepness)
        point, distance = self.certifier.repaired(g, 0.02 * target / size)
        gradient = model.objective.gradient(point)
        more, _ = self.certifier.project(gradient + v["p"], 0.02 * target / radius)
        v["p"] = v["p"] + more
        found = self.certifier.gap(point, gradient, v["p"], distance=distance)
        self._store(state, found)
        bound = found.bound(found.required(self.goal))
        if bound > 0.5 * before.bound(found.required(self.goal)):
            s["nu"] /= 4.0
        v["w"], v["x"], v["centre"] = point, point.copy(), point.copy()
        s["inner"] = 0.0

    # -- the bound -------------------------------------------------------------------
    def _store(self, state: State, found: Gap) -> None:
        s = state.scalars
        s.update({name: getattr(found, name) for name in GAP})
        for k in range(LOOK_BACK, 0, -1):
            s[f"gap{k}"] = s[f"gap{k - 1}"]
        s["gap0"] = found.bound(found.required(self.goal))
        s["fresh"] = 1.0

    def stored(self, state: State) -> Gap:
        """The latest bound (its point is the iterate it was taken at)."""
        s, w = state.scalars, state.vectors["w"]
        realized = self.certifier.realized
        return Gap(
            w, w, state.vectors["p"], s["value"], s["base"], s["slope"], s["distance"],
            s["travelled"], realized.objective.L, True, execution_radius(realized, 1.0),
        )  # fmt: skip

    def iteration_cost(self, model: Model) -> Cost:
        """Of a step of the opening."""
        return model.objective.cost + model.system.cost
