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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.methods.base import Model, Solver, State
from ccmac.methods.sliding.schedule import Phase

Array = NDArray[np.float64]


def begin_phase(state: State, centre: Array, *, keep_dual: bool = False) -> None:
    """x = x_before = xh = centre; y = 0 unless it is kept."""
    v = state.vectors
    for name in ("x", "x_before", "hat", "centre"):
        v[name] = centre.copy()
    v["mean"] = np.zeros_like(centre)
    if not keep_dual:
        v["dual"] = np.zeros_like(centre)
        v["p"] = np.zeros_like(centre)
    state.scalars["outer"] = 0.0


def outer_step(model: Model, state: State, phase: Phase, *, balls: bool = True) -> None:
    """One outer step of a phase; without ``balls`` nothing is projected and no norm is taken."""
    v, space, system = state.vectors, model.objective.space, model.system
    if not system.empty:
        ahead = v["x"] + v["hat"] - v["x_before"]
        v["dual"] += (ahead - v["feasible"]) / phase.tau
        v["p"] = system.homogeneous().residual(v["dual"])[0]
        if balls:
            size = math.sqrt(max(space.dot(v["dual"], v["p"]), 0.0))
            if size > phase.dual_radius:
                v["dual"] *= phase.dual_radius / size
                v["p"] *= phase.dual_radius / size
    u, total = v["x"], np.zeros_like(v["x"])
    for t in range(1, phase.inner + 1):
        slope = model.objective.gradient(u)
        if not balls:
            # With these weights the steps telescope: the average of slope + p tends to zero.
            v["slope_sum"] += (t + 1.0) * slope
            v["w_sum"] += (t + 1.0) * u
            state.scalars["products"] += (t + 1.0) * space.dot(slope, u, riding=True)
            state.scalars["terms"] += t + 1.0
        u = (v["x"] + (0.5 * t) * u - (slope + v["p"]) / phase.eta) / (1.0 + 0.5 * t)
        if balls:
            u = onto_ball(model, u, v["centre"], 2.0 * phase.radius)
        total += (t + 1.0) * u
    v["x_before"], v["x"], v["last"] = v["x"], u, u
    v["hat"] = total / (0.5 * phase.inner * (phase.inner + 3))
    v["mean"] += v["hat"]
    state.scalars["outer"] += 1.0


def onto_ball(model: Model, u: Array, centre: Array, radius: float) -> Array:
    """Projection onto B(centre, radius); one norm over all agents."""
    away = u - centre
    size = model.objective.space.norm(away)
    return u if size <= radius else centre + (radius / size) * away


@dataclass(frozen=True)
class Sliding(Solver):
    """Fixed phases; one driver step is one outer step. ``feasible`` is w_f."""

    phases: tuple[Phase, ...]
    feasible: Array

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """At the start of the first phase."""
        vectors = {"w": w0.copy(), "last": w0.copy(), "feasible": self.feasible.copy()}
        state = State(vectors, scalars={"phase": 0.0})
        begin_phase(state, w0)
        return state

    def step(self, model: Model, state: State) -> State:
        """One outer step; the average of a finished phase is the next one's centre."""
        number = int(state.scalars["phase"])
        phase = self.phases[number]
        outer_step(model, state, phase)
        v = state.vectors
        v["w"] = v["mean"] / state.scalars["outer"]
        if state.scalars["outer"] == phase.outer:
            state.scalars["phase"] = number + 1.0
            if number + 1 < len(self.phases):
                begin_phase(state, v["w"])
        return state

    def finished(self, state: State) -> bool:
        """After the last phase."""
        return state.scalars["phase"] >= len(self.phases)

    @property
    def horizon(self) -> int:
        """Outer steps in all."""
        return sum(phase.outer for phase in self.phases)

    def iteration_cost(self, model: Model) -> Cost:
        """Of an outer step of the last phase."""
        inner, norm = self.phases[-1].inner, model.objective.space.runtime.total_cost()
        if model.system.empty:
            return inner * (model.objective.cost + norm)
        return inner * (model.objective.cost + norm) + model.system.cost + norm
