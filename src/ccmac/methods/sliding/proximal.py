"""Proximal primal-dual steps on the normalized stack: the practical mode where F has a prox.

    w = prox_{F/S}(x - q/S),     p = q + (S/lambda_+) (Q (2 w - x) - g),     q = K'y
    (x, q) <- j/(j+1) (2 (w, p) - (x, q)) + 1/(j+1) anchor,     Q = K'K, g = K'v

PDHG steps (with an exactly normalized stack: Douglas-Rachford), reflected and drawn to an anchor as
in Halpern's iteration; the anchor moves and S is renewed when the length of a step has fallen
enough since the last time. Kinks profit from that, several times over; a smooth F does better with
over-relaxed steps and no anchor, (x, q) <- (x, q) + 1.8 ((w, p) - (x, q)). S is learned from the
distances that the two sequences have travelled (see ``primal_dual``). Every step knows a
subgradient of F at its own point, S (x - w) - q, so that the gap is bounded without further oracle
calls, at the last point and at the average since the last restart.

Where only a part G of F = H + G has a prox, H is met by its gradient (Condat-Vu steps):

    w = prox_{G/(S+L)}(x - (q + grad H(x))/(S + L)),     L = diag(L_x, L_z) >= the Hessian of H;

the reflection 2 (w, p) - (x, q) shortens to (x, q) + 1.5 ((w, p) - (x, q)), and
(S + L) (x - w) - q is a subgradient of F at w up to <w - x, L (w - x)>.
Cost: 1 prox, 1 residual (and 1 gradient); three scalars that ride.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ccmac.certificates.gap import Gap, GapCertifier, Goal
from ccmac.ledger import Cost
from ccmac.methods.base import Model, ModelIteration, Solver, State
from ccmac.methods.primal_dual import adapted_weight
from ccmac.methods.sliding.split import Parts

Array = NDArray[np.float64]
SUFFICIENT, NECESSARY, LONG = 0.2, 0.8, 0.4
RELAXED = 0.9  # of the longest step under which the iteration is still nonexpansive


@dataclass(frozen=True)
class ProximalPrimalDual(Solver):
    """``weight`` is the first S (``adapt`` False keeps it); over-relaxed unless ``anchored``."""

    parts: Parts
    weight: float
    adapt: bool = True
    anchored: bool = True

    def init(self, model: Model, w0: Array, p: Array | None = None) -> State:
        """w = w0, p = 0 or the warm dual; the anchor is there."""
        dual = np.zeros_like(w0) if p is None else p.copy()
        vectors = {"w": w0.copy(), "p": dual, "slope": np.zeros_like(w0)}
        vectors.update(w_start=w0.copy(), p_start=dual.copy())
        scalars = {"weight": self.weight, "count": 0.0, "slack": 0.0}
        state = State(vectors, scalars=scalars)
        self._anchor(state)
        return state

    def _anchor(self, state: State) -> None:
        """Start anew from (w, p)."""
        v = state.vectors
        v["x"], v["q"] = v["w"].copy(), v["p"].copy()
        v["w_anchor"], v["p_anchor"] = v["w"].copy(), v["p"].copy()
        v["w_sum"], v["slope_sum"] = np.zeros_like(v["w"]), np.zeros_like(v["w"])
        state.scalars.update(inner=0.0, first=math.inf, length=math.inf, products=0.0)

    def step(self, model: Model, state: State) -> State:
        """One iteration."""
        v, s, system, space = state.vectors, state.scalars, model.system, model.objective.space
        weight, x, q = s["weight"], v["x"], v["q"]
        parts = self.parts
        w = parts.backward(x, q + parts.slope(x), weight)
        high, p = 1.0, q
        if not system.empty:
            high = system.interval.high
            p = q + (weight / high) * system.residual(2.0 * w - x)[0]
        step = x - w
        v["slope"], v["w"], v["p"] = weight * step - q, w, p
        moved, priced = space.norm(step, riding=True), space.norm(p - q, riding=True)
        s["slack"] = 0.0
        if parts.smooth is not None:
            bent = parts.bend(step)
            v["slope"] += bent
            s["slack"] = space.dot(bent, step, riding=True)
        v["w_sum"] += w
        v["slope_sum"] += v["slope"]
        s["products"] += space.dot(v["slope"], w, riding=True) + s["slack"]
        s["count"] += 1.0
        s["inner"] += 1.0
        primal = weight * (weight * moved * moved + s["slack"])
        before, s["length"] = s["length"], math.sqrt(primal + priced * priced * high)
        if s["inner"] == 1.0:
            s["first"] = s["length"]
        if self._restarts(s, before):
            if self.adapt and not system.empty:
                s["weight"] = adapted_weight(
                    space, weight, self.weight, p - v["p_start"], w - v["w_start"]
                )
            self._anchor(state)
            return state
        ahead = 2.0 if parts.smooth is None else 1.5
        if not self.anchored:
            ahead *= RELAXED
            v["x"], v["q"] = x + ahead * (w - x), q + ahead * (p - q)
            return state
        share = s["inner"] / (s["inner"] + 1.0)
        v["x"] = share * (x + ahead * (w - x)) + (1.0 - share) * v["w_anchor"]
        v["q"] = share * (q + ahead * (p - q)) + (1.0 - share) * v["p_anchor"]
        return state

    def _restarts(self, s: dict[str, float], before: float) -> bool:
        """A step a fifth as long as the first, one that grows again, or a long time."""
        if s["inner"] < 3.0:
            return False
        if not self.anchored:
            return s["inner"] >= s["count"] / 3.0
        if s["length"] <= SUFFICIENT * s["first"]:
            return True
        if s["length"] <= NECESSARY * s["first"] and s["length"] > before:
            return True
        return s["inner"] >= LONG * s["count"] and s["count"] > 20.0

    def iteration_cost(self, model: Model) -> Cost:
        """1 prox, 1 residual, three scalars that ride; with H one more and 1 gradient."""
        residual = Cost() if model.system.empty else model.system.cost
        riding = model.objective.space.runtime.total_cost(riding=True)
        if self.parts.smooth is not None:
            residual = residual + self.parts.smooth.cost + riding
        return Cost(proxes=1) + residual + 3 * riding


class ProximalIteration(ModelIteration):
    """The solver, able to bound its gap at the last iterate and at the average."""

    solver: ProximalPrimalDual

    def __init__(
        self, name: str, solver: ProximalPrimalDual, certifier: GapCertifier, goal: Goal
    ) -> None:
        super().__init__(name, solver, certifier.realized)
        self.certifier, self.goal = certifier, goal
        self.found: dict[str, float] = {}

    def candidates(self, state: State) -> dict[str, tuple[Array, Array, float]]:
        """(point, subgradient, slack) of the last iterate and of the average."""
        v, s = state.vectors, state.scalars
        found = {"last": (v["w"], v["slope"], s["slack"])}
        if s["inner"] > 1:
            point, slope = v["w_sum"] / s["inner"], v["slope_sum"] / s["inner"]
            slack = s["products"] / s["inner"] - self.space.dot(slope, point, riding=True)
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
        # H's convexity is seen from x, not from w: (mu/2)||u - x||^2 >= (mu/4)||u - w||^2 less what
        # the slack has room for.
        share = 1.0 if self.solver.parts.smooth is None else 0.5
        found = self.certifier.tight_subgradient(point, slope, self.goal, slack, share)
        return replace(found, source=name)
