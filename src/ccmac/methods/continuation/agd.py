"""Accelerated gradients for a smooth convex F without equations (Algorithm cvx-agd).

    x+ = y - grad F(y)/L,   t+ = (1 + sqrt(1 + 4 t^2))/2,   y = x+ + (t - 1)/t+ (x+ - x)

F(x_k) - F* <= 2 L R^2 / (k + 1)^2, so ceil sqrt(2 L R^2 / eps) gradients suffice. ``restart`` (the
practical branch) drops the momentum when it points uphill, one reduction a step that is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.methods.base import Model, Solver, State

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AcceleratedGradient(Solver):
    """``steps`` gradients (None: until the stopping rule ends it)."""

    steps: int | None = None
    restart: bool = False

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """x = y = w0, t = 1; there is no dual, p stays zero."""
        vectors = {"w": w0.copy(), "ahead": w0.copy(), "p": np.zeros_like(w0)}
        return State(vectors, scalars={"t": 1.0, "count": 0.0})

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        v, t = state.vectors, state.scalars["t"]
        gradient = model.objective.gradient(v["ahead"])
        new = v["ahead"] - gradient / model.objective.L
        if self.restart and model.objective.space.dot(gradient, new - v["w"]) > 0:
            t = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        v["ahead"] = new + ((t - 1.0) / following) * (new - v["w"])
        v["w"] = new
        state.scalars["t"] = following
        state.scalars["count"] += 1.0
        return state

    def finished(self, state: State) -> bool:
        """After ``steps`` gradients."""
        return self.steps is not None and state.scalars["count"] >= self.steps

    def iteration_cost(self, model: Model) -> Cost:
        """1 gradient (and a reduction with restarts)."""
        reduction = model.objective.space.runtime.total_cost() if self.restart else Cost()
        return model.objective.cost + reduction
