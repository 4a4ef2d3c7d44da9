"""The geometry of a problem's channels: Friedrichs angle, cross factor, ranks, culprits.

``dense``           singular value decompositions of the channels themselves (any Stack)
``heterogeneity``   the m-dimensional form of a CC-MAC problem, direct and to full accuracy
``sparse``          Lanczos on a sparse factorization, for large rows whose factors stay sparse
``matrix-free``     Lanczos on the projectors, for what is too large for the others
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from ccmac.angles.heterogeneity import agent_shares, coupled_angles, factors
from ccmac.angles.identity import identity_geometry
from ccmac.angles.large import large_problem_geometry, large_stack_geometry
from ccmac.angles.operators import canonical_channels
from ccmac.angles.principal import (
    NO_ANGLES,
    Angles,
    overlap_tolerance,
    pair_geometry,
    principal_angles,
    projector_sum_factor,
)
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.sparse import sparse_problem_geometry
from ccmac.angles.structural import PositiveSpectrum, structural_parameters
from ccmac.errors import InputError
from ccmac.inputs import Array, nonnegative, of_kind, whole
from ccmac.limits.active import active
from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import row_space
from ccmac.linalg.tolerances import OVERLAP
from ccmac.network import Network, as_network
from ccmac.problem import Problem
from ccmac.stack import Stack
from ccmac.texts import shown
from ccmac.workspace.scales import refuse_extreme

DENSE_LIMIT = 1000
METHODS = ("dense", "heterogeneity", "sparse", "matrix-free")


def geometry(
    problem: Problem | Stack,
    *,
    network: Network | str | Any | None = None,
    tolerance: float | None = None,
    dense_limit: int = DENSE_LIMIT,
    method: str | None = None,
    at: Any = None,
) -> Geometry:
    """How the channels of ``problem`` overlap; no communication, all agents in one process.

    Principal angles below ``tolerance`` (default 1e-10, or 100 eps times the condition of the
    equilibrated rows where that is more) count as exact common directions and are removed.
    ``dense_limit`` is the largest size of a dense factorization; ``method`` forces one of
    ``dense``, ``heterogeneity``, ``sparse``, ``matrix-free``. A network only adds kappa_W: the
    angles do not depend on it (Proposition lift-invariance). Inequalities and bounds count where
    they are active at the solution ``at`` (a Result); without one the geometry is that of the
    equations.
    """
    if method is not None and not (isinstance(method, str) and method in METHODS):
        raise InputError(
            f"geometry: method {shown(method)} is unknown; take {' or '.join(METHODS)}"
        )
    of_kind("geometry, problem", problem, (Problem, Stack), "a ccmac.Problem or Stack")
    if tolerance is not None:
        nonnegative("geometry, tolerance", tolerance)
    dense_limit = whole("geometry: dense_limit", dense_limit)
    try:
        return _measured(problem, network, tolerance, dense_limit, method, at)
    except (ArithmeticError, ValueError) as error:
        refuse_extreme(problem, error)
        raise


def _measured(
    problem: Problem | Stack,
    network: Any,
    tolerance: float | None,
    dense_limit: int,
    method: str | None,
    at: Any,
) -> Geometry:
    if isinstance(problem, Stack):
        if method in ("heterogeneity", "sparse"):
            raise InputError("geometry: a Stack has no agents; take dense or matrix-free")
        small = problem.dim <= 4 * dense_limit
        if method == "dense" or (method is None and small):
            matrices = [dense(matrix) for matrix, _ in problem.channels]
            return Geometry(**_dense_fields(matrices, tolerance))
        return large_stack_geometry(problem, tolerance, dense_limit)
    if not problem.complete:
        raise InputError(
            f"geometry: this process holds {len(problem.agents)} of {problem.n} agents; "
            "load the whole problem to see its geometry"
        )
    if network is not None:
        network = as_network(network, problem.n)
    if problem.limited:
        rows, words = active(problem, at)
        found = geometry(
            rows, network=network, tolerance=tolerance, dense_limit=dense_limit, method=method
        )
        return replace(found, notes=(words, *found.notes))
    if method == "dense":
        return _dense_problem(problem, network, tolerance, dense_limit)
    if method == "heterogeneity" or (method is None and _fits(problem, dense_limit)):
        return _heterogeneity(problem, network, tolerance, dense_limit)
    if method is None:
        special = identity_geometry(problem, network, tolerance, dense_limit)
        if special is not None:
            return special
    if method in (None, "sparse"):
        special = sparse_problem_geometry(problem, network, tolerance, dense_limit)
        if special is not None:
            return special
        if method is not None:
            raise InputError("geometry: few rows, or factors that are not sparse; take matrix-free")
    return large_problem_geometry(problem, network, tolerance, dense_limit)


def _fits(problem: Problem, limit: int) -> bool:
    """Whether the m-dimensional form can be handled by dense triangles."""
    d = sum(problem.d.values())
    q = problem.q
    m = problem.m
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
    angles = coupled.angles.fitted(min(ranks))
    pair = pair_geometry(angles, ranks, limit)
    low = 0.0
    high = 0.0
    if coupled.rank:
        low, high = (float(pieces.singular[k] ** 2 / problem.n) for k in (coupled.rank - 1, 0))
        if coupled.rank == problem.m:
            low = coupled.least**2 / problem.n
    shares: tuple[tuple[float, ...], float] = ((0.0,) * problem.n, 0.0)
    rebalanced = 1.0
    if pair.cosine > 0:
        shares = agent_shares(problem, pieces.back(coupled.directions[:, pair.common]))
        uniform = coupled_angles(pieces, deviations=False)
        uniform_ranks = (pieces.rank_C + uniform.rank, ranks[1])
        fitted = uniform.angles.fitted(min(uniform_ranks))
        rebalanced = pair_geometry(fitted, uniform_ranks, limit).cross_factor
    spectrum = PositiveSpectrum(low, high, coupled.rank)
    return Geometry(
        **pair_fields(pair, angles, method="heterogeneity", tolerance=limit),
        ranks=ranks,
        structural=structural_parameters(problem, spectrum, network, dense_limit),
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
    other = _heterogeneity(problem, network, tolerance, dense_limit)
    return replace(other, **_dense_fields([*channels.to_dense()], tolerance))


def _dense_fields(matrices: list[Array], tolerance: float | None) -> dict[str, Any]:
    """Fields of a Geometry from the channels' matrices."""
    spaces = [row_space(M) for M in matrices]
    limit = overlap_tolerance(max((s.condition for s in spaces), default=1.0), tolerance)
    ranks = tuple(s.rank for s in spaces)
    bases = [s.basis for s in spaces]
    pairwise = np.eye(len(spaces))
    worst = pair_geometry(NO_ANGLES, (0, 0), limit)
    angles = NO_ANGLES
    for k, (i, j) in enumerate(itertools.combinations(range(len(spaces)), 2)):
        between = principal_angles(bases[i], bases[j])
        pair = pair_geometry(between, (ranks[i], ranks[j]), limit)
        pairwise[i, j] = pairwise[j, i] = pair.cosine
        if k == 0 or pair.cosine > worst.cosine:
            worst = pair
            angles = between
    fields = pair_fields(worst, angles, method="dense", tolerance=limit)
    if len(spaces) != 2:
        factor = projector_sum_factor(bases, limit)
        fields |= {"cross_factor": factor, "multi_channel_factor": factor}
    return fields | {"ranks": ranks, "pairwise": pairwise, "notes": _undecided(angles, limit)}


def _undecided(angles: Angles, limit: float) -> tuple[str, ...]:
    """A word of caution when angles were removed that only bad conditioning made doubtful."""
    radians = angles.radians
    doubtful = int(np.count_nonzero((radians < limit) & (radians >= OVERLAP)))
    if not doubtful:
        return ()
    return (
        f"{doubtful} direction(s) are too close to a common one to tell apart at this conditioning "
        f"(angle below {limit:.1e}) and were removed as common; pass tolerance= to keep them.",
    )
