"""Principal angles of what is too large for dense decompositions, by Lanczos on two projectors.

P_V P_U P_V is symmetric, and its positive eigenvalues are the squared cosines. Block Lanczos finds
the largest; the angles are then read off the Ritz subspace X through the singular values of
X - P_U X (sines) and P_U X (cosines), so a small angle keeps its digits. chi is approached from
below and lies in an interval but for a probability over the random start. Ranks are not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from ccmac.angles.dense import energy_shares, mean_block
from ccmac.angles.principal import NO_ANGLES, Angles, cross_factor, pair_geometry, paired
from ccmac.angles.projections import (
    Projection,
    first_channel,
    projector,
    second_projection,
    shared_projection,
)
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.structural import lanczos_spectrum, structural_parameters
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import multiply
from ccmac.linalg.lanczos import top_ritz
from ccmac.linalg.tolerances import EPS, LARGE_OVERLAP, ORTHOGONAL, VANISHED
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.stack import Stack

BLOCKS = (1, 8, 32, 64, 64, 64)
"""Block sizes taken in turn, while new common directions keep turning up."""


@dataclass(frozen=True)
class LargeAngles:
    """The smallest principal angles; direction and residual of the first that is not common.

    c_F^2 is at most that of the first over 1 - ``missed``, but for a probability of 1e-6.
    """

    angles: Angles = NO_ANGLES
    direction: Array | None = None
    residual: float = 0.0
    missed: float = 0.0


def problem_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    """Angles of a problem's channels; the structural parameters by Lanczos where they are large."""
    limit = LARGE_OVERLAP if tolerance is None else tolerance
    n = problem.n
    q = problem.q
    d = sum(problem.d.values())
    size = d + n * q
    onto_D = shared_projection(problem, dense_limit)
    P_U = projector(first_channel(problem, problem.blocks("B")), dense_limit)
    found = smallest_angles(P_U, second_projection(d, n, q, onto_D), size, limit)
    shares: tuple[tuple[float, ...], float] = ((0.0,) * n, 0.0)
    rebalanced = 1.0
    mean = mean_block(problem)
    if found.direction is not None and mean is not None:
        z = found.direction[d:].reshape(n, q)
        shares = energy_shares(z, np.zeros(q) if onto_D is None else onto_D(z.mean(axis=0)))
        if onto_D is not None:
            # Copies move together: one z with sqrt(n) Bm stands for all.
            P_U = projector(first_channel(problem, [np.sqrt(n) * mean]), dense_limit)
            on_R = second_projection(d, 1, q, onto_D)
            uniform = smallest_angles(P_U, on_R, d + q, limit)
            rebalanced = pair_geometry(uniform.angles, (d + q, d + q), limit).cross_factor
    coupled = lanczos_spectrum(problem.m, coupled_gram(problem, dense_limit))
    return Geometry(
        **_fields(found, size, limit),
        ranks=(None, None if onto_D is not None else (n - 1) * q),
        structural=structural_parameters(problem, coupled, network, dense_limit),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
    )


def stack_geometry(stack: Stack, tolerance: float | None, dense_limit: int) -> Geometry:
    """The geometry of a stack of two large channels, by Lanczos."""
    limit = LARGE_OVERLAP if tolerance is None else tolerance
    if len(stack.channels) != 2:
        raise InputError(
            f"geometry: a stack of {len(stack.channels)} channels is decomposed densely, and this "
            f"one exceeds dense_limit = {dense_limit}; pass a larger dense_limit="
        )
    P_U, P_V = (projector(M, dense_limit) for M, _ in stack.channels)
    fields = _fields(smallest_angles(P_U, P_V, stack.dim, limit), stack.dim, limit)
    c = fields["friedrichs_cosine"]
    return Geometry(**fields, ranks=(None, None), pairwise=np.array([[1.0, c], [c, 1.0]]))


def coupled_gram(problem: Problem, dense_limit: int) -> Callable[[Array], Array]:
    """h -> S_HC h = (1/n) sum_i (A_i P_{Ker C_i} A_i' + B_i B_i') h, without forming it."""
    onto = [None if C is None else projector(C, dense_limit) for C in problem.blocks("C")]

    def apply(h: Array) -> Array:
        total = np.zeros(problem.m)
        for agent, P in zip(problem.agents.values(), onto, strict=True):
            if agent.A is not None:
                x = multiply(agent.A, h, adjoint=True)
                total += multiply(agent.A, x if P is None else x - P(x))
            if agent.B is not None:
                total += multiply(agent.B, multiply(agent.B, h, adjoint=True))
        return total / problem.n

    return apply


def smallest_angles(P_U: Projection, P_V: Projection, size: int, tolerance: float) -> LargeAngles:
    """The smallest angles between U and V; none when they are orthogonal.

    Common directions are taken out as they are found, until a search finds no more: a block of k
    vectors does not see an eigenvalue repeated more than k times.
    """
    common = np.zeros((size, 0))
    random = np.random.default_rng(0)

    def inside(v: Array) -> Array:
        image = P_V(v)
        return np.asarray(image - common @ (common.T @ image))

    for width in BLOCKS:
        start = _columnwise(inside, random.standard_normal((size, min(width, size))))
        left, lengths, _ = np.linalg.svd(start, full_matrices=False)
        start = left[:, lengths > VANISHED]
        found = _search(P_U, inside, start) if start.shape[1] else None
        if found is None:
            return LargeAngles(NO_ANGLES.after_common(common.shape[1]))
        X, angles, share = found
        fresh = angles.common(tolerance)
        if not fresh:
            v = X[:, 0]
            c = float(angles.cosines[0])
            residual = float(np.linalg.norm(inside(P_U(v)) - c * c * v))
            shown = angles.after_common(common.shape[1])
            return LargeAngles(shown, v, residual, share)
        common = np.linalg.qr(np.hstack([common, X[:, :fresh]]))[0]
    raise InputError(
        f"geometry: {common.shape[1]} common directions were found and more are left; remove "
        "equations that both channels state, or raise dense_limit"
    )


def _search(P_U: Projection, P_V: Projection, start: Array) -> tuple[Array, Angles, float] | None:
    """Principal vectors in V of the smallest angles, ascending, and the share of c_F^2 that may
    have been missed; None if all are right angles.
    """
    if np.linalg.norm(P_V(P_U(start[:, 0]))) <= ORTHOGONAL:
        return None
    size = len(start)

    def enough(value: float, residual: float, steps: int) -> bool:
        """The value is good to the square of this residual, and the interval for it is narrow."""
        room = max(1.0 - value, 1e-4)
        return residual <= 1e-8 * room and missed(steps, size) <= 0.05 * room

    # Large problems are content with fewer products and less memory for the basis.
    columns = int(np.clip(2e7 / size, 60, 600)) + 4 * start.shape[1]
    ritz = top_ritz(lambda v: P_V(P_U(P_V(v))), start, enough, columns)
    X = np.linalg.qr(_columnwise(P_V, ritz.vectors))[0]
    inside = _columnwise(P_U, X)
    _, sines, right = np.linalg.svd(X - inside, full_matrices=False)
    share = 0.0 if ritz.exhausted else missed(ritz.steps, size)
    return X @ right[::-1].T, paired(sines, sla.svdvals(inside)), share


def missed(steps: int, size: int) -> float:
    """eps with lambda_max <= (largest Ritz value) / (1 - eps) but for a probability of 1e-6.

    Of ``steps`` Lanczos steps from a random start in R^size (Kuczynski and Wozniakowski 1992):
    failure <= 1.648 sqrt(size) exp(-sqrt(eps) (2 steps - 1)).
    """
    bits = math.log(1.648 * math.sqrt(size) / 1e-6)
    return min(1.0, (bits / max(2 * steps - 1, 1)) ** 2)


def _columnwise(projection: Projection, X: Array) -> Array:
    return np.stack([projection(x) for x in X.T], axis=1)


def _fields(found: LargeAngles, size: int, limit: float) -> dict[str, Any]:
    pair = pair_geometry(found.angles, (size, size), limit)
    square = pair.cosine**2 / max(1.0 - found.missed, EPS)
    high = cross_factor(math.sqrt(square))
    notes = (
        "Found by Lanczos on projections: chi is approached from below and lies in "
        f"[{pair.cross_factor:.6g}, {high:.6g}] but for a probability of 1e-6 over the start. "
        "Ranks are not computed, and only the smallest angles are listed.",
    )
    fields = pair_fields(pair, found.angles, method="sparse", tolerance=limit)
    interval = (pair.cross_factor, max(high, pair.cross_factor))
    known = {"interval": interval, "rests_on": "probable"} if len(found.angles.sines) else {}
    return fields | {"residual": found.residual, "notes": notes} | known
