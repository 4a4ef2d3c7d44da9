"""The geometry of a problem's channels: Friedrichs angle, cross factor, ranks, culprits.

``dense``           singular value decompositions of the channels themselves (any Stack)
``heterogeneity``   the m-dimensional form of a CC-MAC problem, direct and to full accuracy
``matrix-free``     Lanczos on the projectors, for what is too large for the other two
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.angles.heterogeneity import (
    agent_shares,
    coupled_angles,
    entries,
    factors,
)
from ccmac.angles.identity import identity_geometry
from ccmac.angles.large import large_problem_geometry, large_stack_geometry
from ccmac.angles.operators import canonical_channels
from ccmac.angles.principal import (
    OVERLAP_TOLERANCE,
    RANK_TOLERANCE,
    Angles,
    overlap_tolerance,
    pair_geometry,
    principal_angles,
    projector_sum_factor,
    row_space,
)
from ccmac.angles.report import Geometry
from ccmac.angles.structural import Spectrum, structural_parameters
from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.stack import Stack

Array = NDArray[np.float64]
DENSE_LIMIT = 1000
METHODS = ("dense", "heterogeneity", "matrix-free")


def geometry(
    problem: Problem | Stack,
    *,
    network: Network | None = None,
    tolerance: float | None = None,
    dense_limit: int = DENSE_LIMIT,
    method: str | None = None,
) -> Geometry:
    """How the channels of ``problem`` overlap; no communication, all agents in one process.

    Principal angles below ``tolerance`` (default 1e-10, or 100 eps times the condition of the
    equilibrated rows where that is more) count as exact common directions and are removed.
    ``dense_limit`` is the largest size of a dense factorization; ``method`` forces one of
    ``dense``, ``heterogeneity``, ``matrix-free``. A network only adds kappa_W: the angles do not
    depend on it (Proposition lift-invariance).
    """
    if method is not None and method not in METHODS:
        raise InputError(f"geometry: method {method!r} is unknown; take {' or '.join(METHODS)}")
    if isinstance(problem, Stack):
        if method == "heterogeneity":
            raise InputError("geometry: a Stack has no agents; take dense or matrix-free")
        small = problem.dim <= 4 * dense_limit
        if method == "dense" or (method is None and small):
            return _dense_stack(problem, tolerance)
        return large_stack_geometry(problem, tolerance, dense_limit)
    if not problem.complete:
        raise InputError(
            f"geometry: this process holds {len(problem.agents)} of {problem.n} agents; "
            "load the whole problem to see its geometry"
        )
    if network is not None and network.n != problem.n:
        raise InputError(f"network: has {network.n} agents but the problem has {problem.n}")
    if method == "dense":
        return _dense_problem(problem, network, tolerance, dense_limit)
    if method == "heterogeneity" or (method is None and _fits(problem, dense_limit)):
        return _heterogeneity(problem, network, tolerance, dense_limit)
    if method is None:
        special = identity_geometry(problem, network, tolerance, dense_limit)
        if special is not None:
            return special
    return large_problem_geometry(problem, network, tolerance, dense_limit)


def _fits(problem: Problem, limit: int) -> bool:
    """Whether the m-dimensional form can be handled by dense triangles."""
    d, q, m = sum(problem.d.values()), problem.q, problem.m
    columns = d + (problem.n + 1) * q
    side = min(m, columns)
    local = all(
        min(problem.p[i], problem.d[i]) <= limit and problem.p[i] * problem.d[i] <= 50 * limit**2
        for i in problem.agents
    )
    rows_D = sum(problem.r.values())
    shared = min(rows_D, q) <= limit and rows_D * q <= 50 * limit**2
    return (
        side <= limit
        and m * q <= 50 * limit**2
        and columns * side**2 <= 50 * limit**3
        and (local and shared and (m <= columns or m * columns <= 50 * limit**2))
    )


def _heterogeneity(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    pieces = factors(problem)
    coupled = coupled_angles(pieces)
    ranks = (pieces.rank_C + coupled.rank, (problem.n - 1) * problem.q + pieces.rank_D)
    limit = overlap_tolerance(coupled.condition, tolerance)
    angles = _fitted(coupled.angles, min(ranks))
    pair = pair_geometry(angles, ranks, limit)
    low, high = 0.0, 0.0
    if coupled.rank:
        low, high = (float(pieces.singular[k] ** 2 / problem.n) for k in (coupled.rank - 1, 0))
    shares: tuple[tuple[float, ...], float] = ((0.0,) * problem.n, 0.0)
    rebalanced = 1.0
    if pair.cosine > 0:
        shares = agent_shares(problem, pieces.back(coupled.directions[:, pair.common]))
        uniform = coupled_angles(pieces, deviations=False)
        uniform_ranks = (pieces.rank_C + uniform.rank, ranks[1])
        fitted = _fitted(uniform.angles, min(uniform_ranks))
        rebalanced = pair_geometry(fitted, uniform_ranks, limit).cross_factor
    return Geometry(
        friedrichs_cosine=pair.cosine,
        friedrichs_angle=pair.angle,
        cross_factor=pair.cross_factor,
        multi_channel_factor=pair.multi_channel_factor,
        common_dimension=pair.common,
        ranks=ranks,
        principal_angles=angles.radians,
        method="heterogeneity",
        tolerance=limit,
        rank_tolerance=RANK_TOLERANCE,
        structural=structural_parameters(
            problem, Spectrum(low, high, coupled.rank), network, dense_limit
        ),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
        notes=_undecided(angles, limit),
    )


def _dense_problem(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    """Angles from the canonical channels as matrices; the rest as in the m-dimensional form."""
    channels = canonical_channels(problem, network or Network.complete(problem.n))
    found = _dense([*channels.to_dense()], tolerance)
    other = _heterogeneity(problem, network, tolerance, dense_limit)
    extra = {
        name: getattr(other, name)
        for name in ("structural", "agents", "shared", "rebalanced_cross_factor")
    }
    return Geometry(**found, **extra)


def _dense_stack(stack: Stack, tolerance: float | None) -> Geometry:
    return Geometry(**_dense([entries(matrix) for matrix, _ in stack.channels], tolerance))


def _dense(matrices: list[Array], tolerance: float | None) -> dict[str, Any]:
    """Fields of a Geometry from the channels' matrices."""
    spaces = [row_space(M) for M in matrices]
    limit = overlap_tolerance(max((s.condition for s in spaces), default=1.0), tolerance)
    ranks = tuple(s.rank for s in spaces)
    bases = [s.basis for s in spaces]
    pairwise = np.eye(len(spaces))
    pairs = {}
    for i, j in itertools.combinations(range(len(spaces)), 2):
        angles = principal_angles(bases[i], bases[j])
        pairs[i, j] = pair_geometry(angles, (ranks[i], ranks[j]), limit), angles
        pairwise[i, j] = pairwise[j, i] = pairs[i, j][0].cosine
    if pairs:
        worst, angles = max(pairs.values(), key=lambda pair: pair[0].cosine)
    else:
        angles = Angles(np.zeros(0), np.zeros(0))
        worst = pair_geometry(angles, (0, 0), limit)
    factor = projector_sum_factor(bases, limit) if len(spaces) != 2 else worst.multi_channel_factor
    return {
        "friedrichs_cosine": worst.cosine,
        "friedrichs_angle": worst.angle,
        "cross_factor": worst.cross_factor if len(spaces) == 2 else factor,
        "multi_channel_factor": factor,
        "common_dimension": worst.common,
        "ranks": ranks,
        "principal_angles": angles.radians,
        "method": "dense",
        "tolerance": limit,
        "rank_tolerance": RANK_TOLERANCE,
        "pairwise": pairwise,
        "notes": _undecided(angles, limit),
    }


def _fitted(angles: Angles, count: int) -> Angles:
    """Exactly ``count`` angles: what is missing, and what is in excess, is a right angle."""
    missing = max(count - len(angles.sines), 0)
    sines = np.concatenate([angles.sines, np.ones(missing)])[:count]
    return Angles(sines, np.concatenate([angles.cosines, np.zeros(missing)])[:count])


def _undecided(angles: Angles, limit: float) -> tuple[str, ...]:
    """A word of caution when angles were removed that only bad conditioning made doubtful."""
    radians = angles.radians
    doubtful = int(np.count_nonzero((radians < limit) & (radians >= OVERLAP_TOLERANCE)))
    if not doubtful:
        return ()
    return (
        f"{doubtful} direction(s) are too close to a common one to tell apart at this conditioning "
        f"(angle below {limit:.1e}) and were removed as common; pass tolerance= to keep them.",
    )
