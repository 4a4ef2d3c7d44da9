"""Conjugate gradients on a dual without consensus multipliers, preconditioned by one sketch.

On the parts of :mod:`ccmac.workspace.dual`, S l = r(0), with M = B B' + c I from one
averaging of a block of vectors (:mod:`ccmac.linalg.nystrom`):

    y = M^{-1} r,  p = y + (g/g_old) p,  AVERAGE (A_i t_i), t_i = H_i^{-1} A_i'p,  q = S p,
    alpha = g / p'q,  l += alpha p,  x -= alpha t,  r -= alpha q,  g = r'M^{-1}r

Every vector of the dual is known to all, so that inner products cost nothing and the row that
travels has m floats. The first iteration computes the minimisers at the starting multiplier.
Cost: 1 argmin, 2 A, one averaging of m floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.linalg.nystrom import Shifted
from ccmac.linalg.tolerances import SETTLED, SWELLED
from ccmac.methods.base import Iteration, State, known, vector
from ccmac.workspace.dual import DualForm


@dataclass(frozen=True)
class SketchedState(State):
    """x; multiplier, its residual r, M^{-1} r and direction, the sum of the g_i; CG's scalars."""

    x: Array = vector()
    multiplier: Array = known()
    r: Array = known()
    y: Array = known()
    p: Array = known()
    slope: Array = known()
    slopes: float = 0.0
    g: float = 0.0
    g_old: float = 0.0
    first: float = 0.0
    least: float = np.inf
    count: int = 0
    over: bool = False


class SketchedConjugateGradients(Iteration[SketchedState]):
    """The iteration of the module text."""

    def __init__(self, parts: DualForm, M: Shifted) -> None:
        self.parts = parts
        self.M = M
        self.runtime = parts.runtime
        self.space = parts.space

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> SketchedState:
        """The user's point; the multiplier of a warm start enters the first iteration."""
        known, r, y, p, slope = np.zeros((5, 1, self.parts.m))
        if multiplier is not None:
            known[0] = multiplier
        if len(z):  # the point before the first step is the user's: z = slope / h
            slope[0] = self.parts.h * z[0] + self.parts.beta * known[0]
        return SketchedState(np.array(x), known, r, y, p, slope)

    def step(self, state: SketchedState) -> SketchedState:
        """The minimisers first, then one step of CG."""
        if state.count:
            return replace(self._conjugate(state), count=state.count + 1)
        parts = self.parts
        x = parts.minimisers(state.multiplier[0])
        coupled, slope, slopes = parts.residual(x)
        r = coupled + parts.beta * parts.shared(state.multiplier[0], slope)
        y, g = self._preconditioned(r)
        return replace(
            state,
            x=x,
            r=r[None],
            y=y[None],
            slope=slope[None],
            slopes=slopes,
            g=g,
            first=g,
            least=g,
            count=1,
            over=g == 0.0,
        )

    def _preconditioned(self, r: Array) -> tuple[Array, float]:
        """(M^{-1} r, r'M^{-1}r)."""
        y = self.M.solve(r)
        known = self.runtime.common(np.append(y, r @ y))
        return known[:-1], float(known[-1])

    def _conjugate(self, state: SketchedState) -> SketchedState:
        r = state.r[0]
        g = state.g
        p = state.y[0]
        if state.g_old:
            p = p + (g / state.g_old) * state.p[0]
        q, change = self.parts.explored(p)
        curvature = float(self.runtime.common(p @ q))
        if curvature <= 0:
            return replace(state, over=True)
        alpha = g / curvature
        x = state.x
        x -= alpha * change
        r = r - alpha * q
        y, after = self._preconditioned(r)
        least = min(state.least, after)
        over = after <= SETTLED * state.first or after > SWELLED * least
        return replace(
            state,
            x=x,
            multiplier=state.multiplier + alpha * p,
            r=r[None],
            y=y[None],
            p=p[None],
            g=after,
            g_old=g,
            least=least,
            over=over,
        )

    def point(self, state: SketchedState) -> tuple[Array, Array]:
        """The minimisers at the current multiplier."""
        z = self.parts.shared(state.multiplier[0], state.slope[0])
        return self.space.x(state.x), np.broadcast_to(z, (self.space.count, len(z)))

    def finished(self, state: SketchedState) -> bool:
        """Nothing is left to reduce, or the residual grows: rounding."""
        return state.over

    def multipliers(self, state: SketchedState) -> tuple[Array, Array, float]:
        """For the bound."""
        return state.multiplier[0], state.slope[0], state.slopes

    def energy(self, state: SketchedState) -> float:
        """For the bound."""
        return state.g if state.count else math.inf

    @property
    def cost(self) -> Cost:
        """Every iteration but the first (which has 1 argmin, 2 A and one averaging of 2 m + 1).

        While the sketches of a prepared problem grow, their vectors come on top.
        """
        return self.parts.cost
