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
from numpy.typing import NDArray

from ccmac.certificates.gap import Gap, GapCertifier, Goal
from ccmac.ledger import Cost
from ccmac.methods.base import Model, ModelIteration, Solver, State
from ccmac.methods.sliding.schedule import Phase, balanced_phase
from ccmac.methods.sliding.steps import begin_phase, outer_step

Array = NDArray[np.float64]
THRIFT = 8.0
SMALLEST = 1e-12


@dataclass(frozen=True)
class DoublingSliding(Solver):
    """``radius`` is the first guess of R (execution units), ``feasible`` is w_f."""

    radius: float
    feasible: Array

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """M from the subgradient at the start; the first target is M R."""
        state = State({"w": w0.copy(), "last": w0.copy(), "feasible": self.feasible.copy()})
        steep = model.objective.space.norm(model.objective.gradient(w0))
        state.scalars = {
            "lipschitz": max(steep, SMALLEST), "radius": self.radius, "fresh": 0.0,
            "target": max(steep, SMALLEST) * self.radius,
        }  # fmt: skip
        begin_phase(state, w0)
        self._clear(state)
        return state

    def _clear(self, state: State) -> None:
        v = state.vectors
        v["slope_sum"], v["w_sum"] = np.zeros_like(v["w"]), np.zeros_like(v["w"])
        state.scalars.update(products=0.0, terms=0.0)

    def phase(self, model: Model, state: State) -> Phase:
        """Lengths for what is known now."""
        interval = None if model.system.empty else model.system.interval
        high, low = (1.0, 1.0) if interval is None else (interval.high, interval.low)
        s = state.scalars
        return balanced_phase(
            math.sqrt(high), math.sqrt(low), s["lipschitz"], s["radius"], s["target"], thrift=THRIFT
        )

    def step(self, model: Model, state: State) -> State:
        """One outer step; at the end of a phase the guesses are renewed."""
        v, s, space = state.vectors, state.scalars, model.objective.space
        if s["fresh"]:
            s["fresh"] = 0.0
            self._clear(state)
        phase = self.phase(model, state)
        outer_step(model, state, phase, balls=False)
        if s["outer"] < phase.outer:
            return state
        average = v["mean"] / s["outer"]
        moved = space.norm(average - v["centre"], riding=True)
        steep = space.norm(model.objective.gradient(average), riding=True)
        s["lipschitz"] = max(s["lipschitz"], steep)
        s["radius"] = max(s["radius"], min(2.0 * moved, 2.0 * s["radius"]))
        s["target"] *= 0.5
        s["fresh"] = 1.0
        v["w"] = average
        begin_phase(state, average, keep_dual=True)
        return state

    def iteration_cost(self, model: Model) -> Cost:
        """Of an outer step with one subgradient (the number grows from phase to phase)."""
        residual = Cost() if model.system.empty else model.system.cost
        return (
            model.objective.cost + model.objective.space.runtime.total_cost(riding=True) + residual
        )


class SubgradientIteration(ModelIteration):
    """The solver, able to bound its gap at the end of a phase."""

    def __init__(self, name: str, solver: Solver, certifier: GapCertifier, goal: Goal) -> None:
        super().__init__(name, solver, certifier.realized)
        self.certifier, self.goal = certifier, goal
        self.found: dict[str, float] = {}

    def _average(self, state: State) -> tuple[Array, Array, float]:
        v, s = state.vectors, state.scalars
        if not s.get("terms"):
            return v["w"], self.realized.objective.gradient(v["w"]), 0.0
        point, slope = v["w_sum"] / s["terms"], v["slope_sum"] / s["terms"]
        slack = s["products"] / s["terms"] - self.space.dot(slope, point, riding=True)
        return point, slope, max(slack, 0.0)

    def quick_gap(self, state: State) -> Gap | None:
        """At the end of a phase: projecting the average subgradient is part of the bound."""
        return self.tight_gap(state) if state.scalars["fresh"] else None

    def tight_gap(self, state: State) -> Gap:
        """At the repaired average; the last iterate's bound is reported beside it (1 gradient)."""
        point, slope, slack = self._average(state)
        average = self.certifier.tight_subgradient(point, slope, self.goal, slack)
        last = state.vectors["last"]
        other = self.certifier.gap(last, self.realized.objective.gradient(last), average.p)
        for name, gap in (("average", average), ("last", other)):
            self.found[f"gap_{name}"] = gap.bound(gap.required(self.goal))
        return replace(average, source="average")
