"""Interior points on the range of the coupled rows (:mod:`ccmac.methods.interior.compressed`)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ccmac.certificates.stopping import Check
from ccmac.inputs import Array
from ccmac.methods.interior.compressed import Compressed, slope
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.stopping import DualityStop
from ccmac.problem import Problem


class Lifted(Interior):
    """Steps on the small problem; points are those of the whole one."""

    lift: Compressed

    def start(
        self, x: Array, z: Array, dual: Array | None = None, multiplier: Array | None = None
    ) -> InteriorState:
        """With t = Q'z, and multipliers Q'lambda of the small problem's rows."""
        if dual is None or multiplier is None:
            return super().start(x, z)
        Q = self.lift.Q
        own = np.concatenate([self.space.x(dual), np.zeros(len(z) * self.q)])
        return super().start(x, (Q.T @ z[0])[None], own, Q.T @ multiplier)

    def point(self, state: InteriorState) -> tuple[Array, Array]:
        """x as it is, z = Q t."""
        x, t = super().point(state)
        z = self.lift.lifted(t[0])
        return x, np.broadcast_to(z, (len(t), len(z)))


class LiftedStop(DualityStop):
    """The gap of the small problem, and what lies between the two; ``whole`` has the objectives."""

    whole: Problem

    def judged(self, iteration: Interior, state: InteriorState) -> Check:
        """The certificate at a state."""
        assert isinstance(iteration, Lifted)
        lift = iteration.lift
        runtime = iteration.runtime
        x, t = Interior.point(iteration, state)
        dual, rows = iteration.multipliers(state)
        z = runtime.common(lift.lifted(t[0]))
        slopes = []
        for (i, agent), p, v in zip(
            self.whole.agents.items(), self.duality.models, rows, strict=True
        ):
            own = v[p.parts.get("epigraphs", slice(0, 0))][-len(z) :]
            slopes.append(slope(getattr(agent.objective, "z_part", None), z, own, lift.shares[i]))
        total = runtime.piggyback(
            np.stack(slopes)
        )  # z stays where its rows' multiplier is this / -beta
        found, proved = self.duality.gap(x, t[0], dual, rows)
        asked = self.goal.required(found.travelled)
        reach = radius = asked + found.travelled + self.far
        if lift.curvature:
            gap = max(found.bound(asked) + 2 * lift.slack(radius, radius), 0.0)
            size = float(np.linalg.norm(t[0]))
            reach = min(radius, size + math.sqrt(2 * gap / lift.curvature))
        lost = 2 * lift.slack(radius, reach)
        found = replace(found, value=found.value + lift.offset, base=found.base + lost)
        each = np.stack(slopes)
        if lift.pooled:
            each = np.tile(total.value / lift.n, (len(slopes), 1))
        multiplier = -total.value / lift.beta
        return self.checked(
            found, replace(proved, z=z, multiplier=multiplier, gradient_z=each, report=None)
        )

    @property
    def far(self) -> float:
        """How far from zero the start is."""
        return float(np.hypot(np.linalg.norm(self.duality.x0), np.linalg.norm(self.duality.z0)))
