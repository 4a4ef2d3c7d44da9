"""Geometry of problems and stacks too large for dense factorizations.

P_U P_V is symmetric on U with the squared cosines as its spectrum. Block Lanczos started in U finds
the largest; the angles are then read off the Ritz subspace X through the singular values of
X - P_V X (sines) and P_V X (cosines), so a small angle keeps its digits. What an iteration cannot
tell, such as a rank, is None.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from ccmac.angles.heterogeneity import mean_block
from ccmac.angles.principal import NO_ANGLES, Angles, cross_factor, pair_geometry, paired
from ccmac.angles.projections import (
    Projection,
    consensus_projection,
    coupled_projection,
    local_projections,
    projector,
    shared_projection,
)
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.structural import lanczos_spectrum, structural_parameters
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import has_entries, multiply
from ccmac.linalg.lanczos import below, top_ritz
from ccmac.linalg.tolerances import EPS, LARGE_OVERLAP, ORTHOGONAL, VANISHED
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.stack import Stack

BLOCKS = (2, 8, 32, 64, 64, 64)
"""Block sizes taken in turn, while new common directions keep turning up."""
WORK = 8_000_000
LEAST_PRODUCTS = 120
MOST_PRODUCTS = 4000
"""Products with both projections, times their size: large problems are content with less."""
COLUMNS = 120  # of the Lanczos basis


@dataclass(frozen=True)
class LargeAngles:
    """The smallest principal angles; direction and residual of the first that is not common.

    c_F^2 is at most that of the first over 1 - ``missed``, but for a probability of 1e-6.
    """

    angles: Angles = NO_ANGLES
    direction: Array | None = None
    residual: float = 0.0
    missed: float = 0.0


def large_problem_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    """Angles of the canonical channels by Lanczos; chi is approached from below."""
    limit = LARGE_OVERLAP if tolerance is None else tolerance
    n = problem.n
    q = problem.q
    d = sum(problem.d.values())
    size = d + n * q
    onto_D = shared_projection(problem, dense_limit)
    P_V = consensus_projection(d, n, q, onto_D)
    onto_C = local_projections(problem, dense_limit)
    P_U = coupled_projection(problem, problem.blocks("B"), onto_C)
    found = smallest_angles(P_U, P_V, size, limit)
    shares: tuple[tuple[float, ...], float] = ((0.0,) * n, 0.0)
    rebalanced = 1.0
    if found.direction is not None:
        shares = energy_shares(found.direction[d:].reshape(n, q), onto_D)
    if len(found.angles.sines) and any(D is not None for D in problem.blocks("D")):
        rebalanced = _rebalanced_factor(problem, onto_C, onto_D, limit)
    coupled = lanczos_spectrum(problem.m, coupled_gram(problem, onto_C))
    return Geometry(
        **_fields(found, size, limit),
        ranks=(None, None if onto_D is not None else (n - 1) * q),
        structural=structural_parameters(problem, coupled, network, dense_limit),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
    )


def large_stack_geometry(stack: Stack, tolerance: float | None, dense_limit: int) -> Geometry:
    """Pairwise angles by Lanczos; for three or more channels also the projector sum."""
    limit = LARGE_OVERLAP if tolerance is None else tolerance
    count = len(stack.channels)
    projections = [projector(M, dense_limit) for M, _ in stack.channels]
    pairwise = np.eye(count)
    worst: dict[str, Any] = _fields(LargeAngles(), stack.dim, limit)
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


def local_gram(problem: Problem, onto: list[Projection | None]) -> Callable[[Array], Array]:
    """h -> sum_i A_i P_{Ker C_i} A_i' h, matrix-free; ``onto`` projects on the Range(C_i')."""

    def apply(h: Array) -> Array:
        result = np.zeros(problem.m)
        for A, P in zip(problem.blocks("A"), onto, strict=True):
            if A is not None:
                x = multiply(A, h, adjoint=True)
                result += multiply(A, x if P is None else x - P(x))
        return result

    return apply


def coupled_gram(problem: Problem, onto: list[Projection | None]) -> Callable[[Array], Array]:
    """h -> S_HC h = (1/n) sum_i (A_i P_{Ker C_i} A_i' + B_i B_i') h, matrix-free."""
    gram = local_gram(problem, onto)

    def apply(h: Array) -> Array:
        total = gram(h)
        for B in problem.blocks("B"):
            if B is not None:
                total += multiply(B, multiply(B, h, adjoint=True))
        return total / problem.n

    return apply


# -- angles between two projections ----------------------------------------------------------------
def smallest_angles(P_U: Projection, P_V: Projection, size: int, tolerance: float) -> LargeAngles:
    """The smallest angles between U and V; none when they are orthogonal.

    Common directions are taken out as they are found, until a search finds no more: a block of k
    vectors does not see an eigenvalue repeated more than k times.
    """
    common = np.zeros((size, 0))
    random = np.random.default_rng(0)

    def onto(u: Array) -> Array:
        image = P_U(u)
        return np.asarray(image - common @ (common.T @ image)) if common.shape[1] else image

    for width in BLOCKS:
        start = _columnwise(onto, random.standard_normal((size, min(width, size))))
        found = _search(onto, P_V, start)
        if found is None:
            return LargeAngles(NO_ANGLES.after_common(common.shape[1]))
        X, angles, missed = found
        fresh = angles.common(tolerance)
        if fresh == 0:
            u = X[:, 0]
            c = float(angles.cosines[0])
            residual = float(np.linalg.norm(onto(P_V(u)) - c * c * u))
            return LargeAngles(angles.after_common(common.shape[1]), u, residual, missed)
        common = np.linalg.qr(np.hstack([common, X[:, :fresh]]))[0]
    raise InputError(
        f"geometry: {common.shape[1]} common directions were found and more are left; remove "
        "equations that both channels state, or raise dense_limit"
    )


def _search(P_U: Projection, P_V: Projection, start: Array) -> tuple[Array, Angles, float] | None:
    """Principal vectors in U of the smallest angles, ascending; None if all are right angles."""
    start = start[:, np.linalg.norm(start, axis=0) > VANISHED]
    if not start.shape[1]:
        return None
    first = start[:, 0]
    if np.linalg.norm(P_U(P_V(first))) <= ORTHOGONAL * np.linalg.norm(first):
        return None
    products = int(np.clip(WORK / len(first), LEAST_PRODUCTS, MOST_PRODUCTS))
    ritz = top_ritz(
        lambda u: P_U(P_V(u)), start, P_U, enough=below(1.0), columns=COLUMNS, products=products
    )
    X = np.linalg.qr(_columnwise(P_U, ritz.vectors))[0]
    inside = _columnwise(P_V, X)
    _, sines, right = np.linalg.svd(X - inside, full_matrices=False)
    return X @ right[::-1].T, paired(sines, sla.svdvals(inside)), ritz.missed(len(first))


def _columnwise(projection: Projection, X: Array) -> Array:
    return np.stack([projection(x) for x in X.T], axis=1)


def energy_shares(z: Array, onto_D: Projection | None) -> tuple[tuple[float, ...], float]:
    """Energy of the worst direction inside Range(K_2'): each agent's part, and D's."""
    mean = z.mean(axis=0)
    own = np.sum((z - mean) ** 2, axis=1)
    shared = 0.0 if onto_D is None else len(z) * float(np.sum(onto_D(mean) ** 2))
    total = (float(own.sum()) + shared) or 1.0
    return tuple(float(e) for e in own / total), shared / total


def _rebalanced_factor(
    problem: Problem, onto_C: list[Projection | None], onto_D: Projection | None, limit: float
) -> float:
    """chi after B_i -> mean B: copies move together, one z with sqrt(n) mean B stands for all."""
    mean = mean_block(problem)
    if mean is None or onto_D is None:
        return 1.0
    d = sum(problem.d.values())
    q = problem.q
    P_U = coupled_projection(problem, [np.sqrt(problem.n) * mean], onto_C)

    def P_V(u: Array) -> Array:
        result = np.zeros_like(u)
        result[d:] = onto_D(u[d:])
        return result

    found = smallest_angles(P_U, P_V, d + q, limit)
    return pair_geometry(found.angles, (d + q, d + q), limit).cross_factor


def _fields(found: LargeAngles, size: int, limit: float) -> dict[str, Any]:
    pair = pair_geometry(found.angles, (size, size), limit)
    square = pair.cosine**2 / max(1.0 - found.missed, EPS)
    high = cross_factor(math.sqrt(square))
    notes = (
        "Found by Lanczos with iterative projections: chi is approached from below and lies in "
        f"[{pair.cross_factor:.6g}, {high:.6g}] but for a probability of 1e-6 over the start. "
        "Ranks are not computed, and only the smallest angles are listed.",
    )
    fields = pair_fields(pair, found.angles, method="matrix-free", tolerance=limit)
    interval = (pair.cross_factor, max(high, pair.cross_factor))
    known = {"interval": interval, "rests_on": "probable"} if len(found.angles.sines) else {}
    return fields | {"residual": found.residual, "notes": notes} | known


def _sum_factor(stack: Stack, projections: list[Projection], dense_limit: int) -> float | None:
    """chi_{x,J}: both ends of sum_j P_j on the span of all rows.

    The low end is the high end of (J - sum_j P_j) P_S, where the kernel cannot interfere.
    """
    matrices = [M for M, _ in stack.channels]
    if not all(has_entries(M) for M in matrices):
        return None
    whole = sp.vstack([sp.csr_array(M) for M in matrices], format="csr")
    onto_all = projector(sp.csr_array(whole), dense_limit)
    J = len(projections)
    size = stack.dim
    start = _columnwise(onto_all, np.random.default_rng(1).standard_normal((size, min(4, size))))
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
