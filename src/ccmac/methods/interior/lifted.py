"""Interior points on the range of the coupled rows (:mod:`ccmac.workspace.compressed`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccmac.certificates.stopping import Check
from ccmac.inputs import Array
from ccmac.methods.interior.iteration import Interior, InteriorState
from ccmac.methods.interior.stopping import DualityStop
from ccmac.problem import Problem
from ccmac.workspace.compressed import Compressed


class Lifted(Interior):
    """Steps on the small problem; points are those of the whole one."""

    lift: Compressed

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
        lift, goal = iteration.lift, self.goal
        x, t = Interior.point(iteration, state)
        found, proved = self.duality.gap(x, t[0], iteration.prices(state, state.tau))
        radius = found.required(goal) + found.travelled + self.far
        found = replace(
            found, value=found.value + lift.offset, base=found.base + 2 * lift.slack(radius)
        )
        self.record.update(found.record(goal))
        z, price = lift.lifted(proved.z), lift.lifted(proved.price)
        slopes = [_slope(agent.objective, z) for agent in self.whole.agents.values()]
        proved = replace(proved, z=z, price=price, gradient_z=np.stack(slopes))
        bound = found.bound(found.required(goal))
        return Check(bound, found.met(goal), state.count + 1, proved)

    @property
    def far(self) -> float:
        """How far from zero the start is."""
        return float(np.hypot(np.linalg.norm(self.duality.x0), np.linalg.norm(self.duality.z0)))


def _slope(objective: object, z: Array) -> Array:
    part = getattr(objective, "z_part", None)
    return np.zeros_like(z) if part is None else np.asarray(part.gradient_at(z))
