"""Unboundedness of a convex quadratic problem, proved by a direction.

    K d = 0,   H d = 0,   <grad F, d> < 0:   F falls without bound along d from feasible points.

The direction tried is the gradient's part in ker K. It is found with the equations that all may
know, and checked in the user's own blocks: the fall must exceed what the
defects of K d and H d could make up for within REACH times the size of the problem.
Cost: 3 averagings, where the objectives are quadratic and not strongly convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmac.certificates.infeasibility import REACH
from ccmac.certificates.proof import Proof
from ccmac.inputs import Array
from ccmac.workspace import Workspace


@dataclass(frozen=True)
class Recession:
    """d by blocks with ``fall`` = -<grad F, d> > 0 and ``defect`` = ||K d|| + ||H d||."""

    x: list[Array]
    z: Array
    fall: float
    defect: float

    @property
    def message(self) -> str:
        """What it says in words."""
        return (
            f"unbounded: the objective falls by {self.fall:.3g} per unit along a direction that "
            "keeps all equations; add curvature, limits or equations"
        )


def recession(work: Workspace) -> Recession | None:
    """A direction that proves unboundedness, or None."""
    able = work.capabilities
    if "quadratic" not in able or "strongly convex" in able or work.reduced is None:
        return None
    proof = Proof(work, work.reduced)
    size = work.problem.q
    x, z = proof.repaired(np.zeros(work.space.x_size), np.zeros((work.space.count, size)))
    pieces = [work.space.x_of(x, k) for k in range(work.space.count)]
    slopes = [a.gradient(piece, z)[0] for a, piece in zip(proof.agents, pieces, strict=True)]
    d_x, d_z = proof.projected(x, z, slopes)
    squares = work.runtime.total(np.array([[float(v @ v)] for v in d_x]))
    length = math.sqrt(float(squares[0]) + float(d_z @ d_z))
    if length <= 0:
        return None
    d_x, d_z = [-v / length for v in d_x], -d_z / length
    rows = []
    for agent, slope, d in zip(proof.agents, slopes, d_x, strict=True):
        u = np.concatenate([d, d_z])
        assert agent.quadratic is not None
        bend = float(np.linalg.norm(agent.quadratic[0] @ u)) ** 2
        misfit = float(np.linalg.norm(agent.C @ d)) ** 2
        steep = float(np.linalg.norm(slope.astype(np.float64)))
        rows.append([-float(slope @ u), bend, misfit, steep])
    told = work.runtime.ride(np.array(rows))
    coupled = proof.image(d_x, d_z)
    fall, bend, local, sizes = (float(v) for v in told.value)
    defect = math.sqrt(bend) + math.sqrt(local) + coupled
    if fall <= 1e-9 * max(sizes, 1e-300) or fall < REACH * defect * max(1.0, sizes):
        return None
    return Recession(d_x, d_z, fall, defect)
