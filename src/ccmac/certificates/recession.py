"""Unboundedness of a convex quadratic problem, proved by a direction.

    K d = 0,   H d = 0,   <grad F, d> < 0:   F falls without bound along d from feasible points.

The direction tried is the gradient's part in ker K (that in ker K and ker H is found by
:mod:`ccmac.methods.falls`, where the two differ). It is found with the equations that all may
know, and checked in the user's own blocks: the fall must exceed what the
defects of K d and H d could make up for within REACH times the size of the problem, and H d must be
rounding: the least curvature ends a fall, however far away.
Cost: 5 averagings, where the objectives are quadratic. Nobody asks where they are strongly convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac.certificates.infeasibility import REACH
from ccmac.certificates.proof import Pieces, Proof
from ccmac.inputs import Array, is_sparse
from ccmac.linalg.extended import Long, norm
from ccmac.linalg.tolerances import EPS
from ccmac.workspace import Workspace

FLAT = 100 * EPS  # curvature along a direction, beside the largest, that counts as none


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


def curved(H: Any, d: Array) -> float:
    """||H d|| beside ||H||: what curvature is left along a direction of length one."""
    size = norm(H.data if is_sparse(H) else H)
    return norm(H @ d) / size if size > 0 else 0.0


def recession(work: Workspace) -> Recession | None:
    """A direction that proves unboundedness, or None."""
    if "quadratic" not in work.capabilities or (reduced := work.gather_constraints()) is None:
        return None
    proof = Proof(work, reduced)
    size = work.problem.q
    pieces, z = proof.repaired(np.zeros(work.space.x_size), np.zeros((work.space.count, size)))
    slopes = [a.gradient(piece, z)[0] for a, piece in zip(proof.agents, pieces, strict=True)]
    d_x, d_z = _projected(proof, pieces, z, slopes)
    squares = work.runtime.total(np.array([[float(v @ v)] for v in d_x]))
    length = math.sqrt(float(squares[0]) + float(d_z @ d_z))
    if length <= 0:
        return None
    d_x = [-v / length for v in d_x]
    d_z = -d_z / length
    rows = []
    for agent, slope, d in zip(proof.agents, slopes, d_x, strict=True):
        u = np.concatenate([d, d_z])
        H = agent.objective.quadratic(agent.d, agent.q)[0]
        bend = float(np.linalg.norm(H @ u)) ** 2
        bend = bend if curved(H, u) <= FLAT else math.inf
        misfit = float(np.linalg.norm(agent.C @ d)) ** 2
        steep = float(np.linalg.norm(slope.astype(np.float64)))
        rows.append([-float(slope @ u), bend, misfit, steep])
    told = work.runtime.ride(np.array(rows))
    coupled = _image(proof, d_x, d_z)
    fall, bend, local, sizes = (float(v) for v in told.value)
    defect = math.sqrt(bend) + math.sqrt(local) + coupled
    if fall <= 1e-9 * sizes or fall < REACH * defect * max(1.0, sizes):
        return None
    return Recession(d_x, d_z, fall, defect)


def _projected(
    proof: Proof, pieces: Pieces, z: Long, slopes: list[Long]
) -> tuple[list[Array], Array]:
    """The part of a gradient in ker K, by agents and for z. One averaging."""
    _, along, slope, _ = proof.sums(pieces, z, slopes)
    total = slope.astype(np.float64)
    price = proof.best_price(along, total)
    on_x = [
        agent.inside(gradient[: agent.d].astype(np.float64) + agent.A.T @ price)
        for agent, gradient in zip(proof.agents, slopes, strict=True)
    ]
    basis = proof.reduced.shared.basis
    on_z = total + proof.reduced.Bbar.astype(np.float64).T @ price
    return on_x, np.asarray(on_z - basis @ (basis.T @ on_z))


def _image(proof: Proof, d_x: list[Array], d_z: Array) -> float:
    """||(sum A_i d_i + Bbar d_z, D d_z)|| in scaled rows. One averaging."""
    shares = [agent.A @ d + agent.B @ d_z for agent, d in zip(proof.agents, d_x, strict=True)]
    coupled = proof.runtime.average(np.stack(shares))[0] * proof.problem.n
    return math.hypot(norm(proof.reduced.unit * coupled), norm(proof.reduced.D @ d_z))
