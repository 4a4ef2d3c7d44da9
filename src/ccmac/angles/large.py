"""Geometry of problems and stacks too large for dense factorizations.

The channels stay sparse (or operators). Projections are iterative, the angles come from Lanczos,
and what an iteration cannot tell, such as a rank, is None.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.angles.channels import (
    consensus_projection,
    coupled_projection,
    local_projections,
    shared_projection,
)
from ccmac.angles.heterogeneity import mean_block, transposed_product
from ccmac.angles.identity import local_gram
from ccmac.angles.principal import RANK_TOLERANCE, Angles, pair_geometry
from ccmac.angles.projectors import (
    LARGE_OVERLAP_TOLERANCE,
    LargeAngles,
    Projection,
    columnwise,
    projector,
    smallest_angles,
)
from ccmac.angles.report import Geometry
from ccmac.angles.structural import lanczos_spectrum, structural_parameters
from ccmac.linalg.block_lanczos import LANCZOS_TOLERANCE, below, top_ritz
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.stack import Stack

Array = NDArray[np.float64]


def large_problem_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    """Angles of the canonical channels by Lanczos; chi is approached from below."""
    limit = LARGE_OVERLAP_TOLERANCE if tolerance is None else tolerance
    n, q, d = problem.n, problem.q, sum(problem.d.values())
    size = d + n * q
    onto_D = shared_projection(problem, dense_limit)
    P_V = consensus_projection(d, n, q, onto_D)
    onto_C = local_projections(problem, dense_limit)
    P_U = coupled_projection(problem, problem.blocks("B"), onto_C)
    found = smallest_angles(P_U, P_V, size, limit)
    shares: tuple[tuple[float, ...], float] = ((0.0,) * n, 0.0)
    rebalanced = 1.0
    if found is not None:
        shares = _shares(found.direction[d:].reshape(n, q), onto_D)
        if any(D is not None for D in problem.blocks("D")):
            rebalanced = _rebalanced_factor(problem, onto_C, onto_D, limit)
    gram = local_gram(problem, onto_C)

    def S_HC(h: Array) -> Array:
        total = gram(h)
        for B in problem.blocks("B"):
            if B is not None:
                total = total + np.asarray(B @ transposed_product(B, h)).ravel()
        return total / n

    coupled = lanczos_spectrum(problem.m, S_HC)
    fields = _fields(found, size, limit)
    return Geometry(
        **fields,
        ranks=(None, None if onto_D is not None else (n - 1) * q),
        structural=structural_parameters(problem, coupled, network, dense_limit),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
    )


def large_stack_geometry(stack: Stack, tolerance: float | None, dense_limit: int) -> Geometry:
    """Pairwise angles by Lanczos; for three or more channels also the projector sum."""
    limit = LARGE_OVERLAP_TOLERANCE if tolerance is None else tolerance
    count = len(stack.channels)
    projections = [projector(M, dense_limit) for M, _ in stack.channels]
    pairwise = np.eye(count)
    worst: dict[str, Any] = _fields(None, stack.dim, limit)
    for i, j in itertools.combinations(range(count), 2):
        found = smallest_angles(projections[i], projections[j], stack.dim, limit)
        fields = _fields(found, stack.dim, limit)
        pairwise[i, j] = pairwise[j, i] = fields["friedrichs_cosine"]
        if fields["friedrichs_cosine"] >= worst["friedrichs_cosine"]:
            worst = fields
    if count > 2:
        factor = _sum_factor(stack, projections, dense_limit)
        worst |= {"multi_channel_factor": factor, "cross_factor": factor}
    return Geometry(**worst, ranks=(None,) * count, pairwise=pairwise)


def _shares(z: Array, onto_D: Projection | None) -> tuple[tuple[float, ...], float]:
    """Energy of the worst direction inside Range(K_2'): each agent's part, and D's."""
    mean = z.mean(axis=0)
    own = np.sum((z - mean) ** 2, axis=1)
    shared = 0.0 if onto_D is None else len(z) * float(np.sum(onto_D(mean) ** 2))
    total = float(own.sum()) + shared
    if total == 0:
        return (0.0,) * len(z), 0.0
    return tuple(float(e) for e in own / total), shared / total


def _rebalanced_factor(
    problem: Problem,
    onto_C: list[Projection | None],
    onto_D: Projection | None,
    limit: float,
) -> float:
    """chi after B_i -> mean B: copies move together, one z with sqrt(n) mean B stands for all."""
    mean = mean_block(problem)
    if mean is None or onto_D is None:
        return 1.0
    d, q = sum(problem.d.values()), problem.q
    P_U = coupled_projection(problem, [np.sqrt(problem.n) * mean], onto_C)

    def P_V(u: Array) -> Array:
        result = np.zeros_like(u)
        result[d:] = onto_D(u[d:])
        return result

    fields = _fields(smallest_angles(P_U, P_V, d + q, limit), d + q, limit)
    return float(fields["cross_factor"])


def _fields(found: LargeAngles | None, size: int, limit: float) -> dict[str, Any]:
    """Fields of a Geometry that two channels share, large or small."""
    none = np.zeros(0)
    angles = Angles(none, none) if found is None else found.angles
    pair = pair_geometry(angles, (size, size), limit)
    notes = (
        "Found by Lanczos with iterative projections (residual at most "
        f"{LANCZOS_TOLERANCE:.0e} of 1 - c_F^2): chi is approached from below, ranks are not "
        "computed, and only the smallest angles are listed.",
    )
    return {
        "friedrichs_cosine": pair.cosine,
        "friedrichs_angle": pair.angle,
        "cross_factor": pair.cross_factor,
        "multi_channel_factor": pair.multi_channel_factor,
        "common_dimension": pair.common,
        "principal_angles": angles.radians,
        "method": "matrix-free",
        "tolerance": limit,
        "rank_tolerance": RANK_TOLERANCE,
        "residual": 0.0 if found is None else found.residual,
        "notes": notes,
    }


def _sum_factor(stack: Stack, projections: list[Projection], dense_limit: int) -> float | None:
    """chi_{x,J}: both ends of sum_j P_j on the span of all rows.

    The low end is the high end of (J - sum_j P_j) P_S, where the kernel cannot interfere.
    """
    matrices = [M for M, _ in stack.channels]
    if not all(isinstance(M, np.ndarray) or hasattr(M, "tocsr") for M in matrices):
        return None
    onto_all = projector(
        sp.csr_array(sp.vstack([sp.csr_array(M) for M in matrices], format="csr")), dense_limit
    )
    J, size = len(projections), stack.dim
    start = columnwise(onto_all, np.random.default_rng(1).standard_normal((size, min(4, size))))
    if not np.any(start):
        return 1.0

    def total(u: Array) -> Array:
        return np.asarray(sum(P(u) for P in projections))

    def flipped(u: Array) -> Array:
        inside = onto_all(u)
        return np.asarray(J * inside - onto_all(total(inside)))

    ends = []
    for action in (total, flipped):
        u = top_ritz(action, start, onto_all, enough=below(J)).vectors[:, 0]
        ends.append(float(u @ total(u)))
    return float(np.sqrt(ends[0] / ends[1]))
