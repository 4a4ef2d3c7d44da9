"""Proximal primal-dual steps on the normalized stack: the practical mode where F has a prox.

    w+ = prox_{F/S}(w - p/S),     p+ = p + (S/lambda_+) (G (2 w+ - w) - g),     p = K'y

(PDHG; with an exactly normalized stack it is Douglas-Rachford). S is learned from the distances
that the two sequences travel (see ``primal_dual``). Every step knows a subgradient of F at its own
point, S (w - w+) - p, so that the gap is bounded without further oracle calls, at the last iterate
and at the average since the last change of S. Cost: 1 prox, 1 residual; one scalar that rides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.solvers.base import Model, ModelIteration, Solver, State
from ccmac.solvers.convex_certificate import Gap, GapCertifier
from ccmac.solvers.convex_realization import Goal
from ccmac.solvers.primal_dual import adapted_weight, next_adaptation
from ccmac.solvers.proximal import proximal

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ProximalPrimalDual(Solver):
    """``weight`` is the first S; ``adapt`` False keeps it."""

    weight: float
    adapt: bool = True

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """w = w0, p = 0 or the warm dual."""
        dual = np.zeros_like(w0) if p is None else p.copy()
        zero = np.zeros_like(w0)
        vectors = {
            "w": w0.copy(), "p": dual, "w_start": w0.copy(), "p_start": dual.copy(),
            "slope": zero, "w_sum": zero.copy(), "slope_sum": zero.copy(),
        }  # fmt: skip
        scalars = {"weight": self.weight, "count": 0.0, "adapt": 4.0, "terms": 0.0, "products": 0.0}
        return State(vectors, scalars=scalars)

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        v, s, system = state.vectors, state.scalars, model.system
        weight, w, p = s["weight"], v["w"], v["p"]
        if s["count"] >= s["adapt"]:
            self._adapt(model, state)
            weight = s["weight"]
        ahead = proximal(model.objective, w - p / weight, weight)
        v["slope"] = weight * (w - ahead) - p
        if not system.empty:
            p += (weight / system.interval.high) * system.residual(2.0 * ahead - w)[0]
        v["w"] = ahead
        v["w_sum"] += ahead
        v["slope_sum"] += v["slope"]
        s["products"] += model.objective.space.dot(v["slope"], ahead, riding=True)
        s["terms"] += 1.0
        s["count"] += 1.0
        return state

    def _adapt(self, model: Model, state: State) -> None:
        """A new weight; the average starts anew."""
        v, s = state.vectors, state.scalars
        s["adapt"] = next_adaptation(s["adapt"])
        if self.adapt and not model.system.empty:
            s["weight"] = adapted_weight(
                model.objective.space,
                s["weight"],
                self.weight,
                v["p"] - v["p_start"],
                v["w"] - v["w_start"],
            )
        v["w_sum"], v["slope_sum"] = np.zeros_like(v["w"]), np.zeros_like(v["w"])
        s["terms"] = s["products"] = 0.0

    def iteration_cost(self, model: Model) -> Cost:
        """1 prox, 1 residual, one scalar that rides."""
        residual = Cost() if model.system.empty else model.system.cost
        riding = model.objective.space.runtime.total_cost(riding=True)
        return Cost(proxes=1) + residual + riding


class ProximalIteration(ModelIteration):
    """The solver, able to bound its gap at the last iterate and at the average."""

    def __init__(self, name: str, solver: Solver, certifier: GapCertifier, goal: Goal) -> None:
        super().__init__(name, solver, certifier.realized)
        self.certifier, self.goal = certifier, goal
        self.found: dict[str, float] = {}

    def candidates(self, state: State) -> dict[str, tuple[Array, Array, float]]:
        """(point, subgradient, slack) of the last iterate and of the average."""
        v, s = state.vectors, state.scalars
        found = {"last": (v["w"], v["slope"], 0.0)}
        if s["terms"] > 1:
            point, slope = v["w_sum"] / s["terms"], v["slope_sum"] / s["terms"]
            slack = s["products"] / s["terms"] - self.space.dot(slope, point, riding=True)
            found["average"] = (point, slope, max(slack, 0.0))
        return found

    def _best(self, state: State) -> tuple[str, Gap]:
        gaps = {}
        for name, (point, slope, slack) in self.candidates(state).items():
            gaps[name] = self.certifier.gap(point, slope, state.vectors["p"], slack=slack)
        bounds = {name: gap.bound(gap.required(self.goal)) for name, gap in gaps.items()}
        self.found = {f"gap_{name}": bound for name, bound in bounds.items()}
        name = min(bounds, key=lambda key: bounds[key])
        return name, gaps[name]

    def quick_gap(self, state: State) -> Gap | None:
        """The better of the two bounds with the dual at hand: 2 residuals, 2 averagings."""
        return self._best(state)[1]

    def tight_gap(self, state: State) -> Gap:
        """At the repaired better point."""
        name, _ = self._best(state)
        point, slope, slack = self.candidates(state)[name]
        return replace(
            self.certifier.tight_subgradient(point, slope, self.goal, slack), source=name
        )
