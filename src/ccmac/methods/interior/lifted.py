"""Interior points on the range of the coupled rows (:mod:`ccmac.methods.interior.compressed`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccmac.certificates.stopping import Check
from ccmac.inputs import Array
from ccmac.methods.interior.compressed import Compressed, slope
from ccmac.methods.interior.iteration import Interior
from ccmac.methods.interior.state import InteriorState
from ccmac.methods.interior.stopping import DualityStop
from ccmac.problem import Problem


class Lifted(Interior):
    """Steps on the small problem; points are those of the whole one."""

    lift: Compressed

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> InteriorState:
        """With t = Q'z, and prices Q'y of the small problem's rows."""
        if dual is None or multiplier is None:
            return self.inside()
        Q = self.lift.Q
        return super().start(x, (Q.T @ z[0])[None], dual, Q.T @ multiplier)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """x as it is, z = Q t."""
        x, t = super().point(state)
        z = self.lift.lifted(t[0])
        return x, np.broadcast_to(z, (len(t), len(z)))


class LiftedStop(DualityStop):
    """The gap of the small problem, and what lies between the two; ``whole`` has the objectives."""

    whole: Problem

    def _proof(self, iteration: Interior, state: InteriorState) -> Check:
        assert isinstance(iteration, Lifted)
        lift = iteration.lift
        goal = self.goal
        runtime = iteration.runtime
        x, t = Interior.point(iteration, state)
        prices = iteration.multipliers(state, state.tau)
        z = runtime.common(lift.lifted(t[0]))
        slopes = np.stack(
            [
                slope(getattr(agent.objective, "z_part", None), z, terms[-len(z) :], lift.shares[i])
                for (i, agent), terms in zip(self.whole.agents.items(), prices.terms, strict=True)
            ]
        )
        told = runtime.piggyback(
            slopes
        )  # z stays where the price of its rows is this sum over -beta
        found, proved = self.duality.gap(x, t[0], prices)
        radius = found.required(goal) + found.travelled + self.far
        found = replace(
            found, value=found.value + lift.offset, base=found.base + 2 * lift.slack(radius)
        )
        if lift.pooled:
            slopes = np.tile(told.value / lift.n, (len(slopes), 1))
        price = -told.value / lift.beta
        proved = replace(proved, z=z, multiplier=price, gradient_z=slopes, report=None)
        return self._judged(found, proved)

    @property
    def far(self) -> float:
        """How far from zero the start is."""
        return float(np.hypot(np.linalg.norm(self.duality.x0), np.linalg.norm(self.duality.z0)))
