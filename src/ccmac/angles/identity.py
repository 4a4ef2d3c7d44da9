"""The angle in closed form when every B_i is a multiple of the identity, as in vertical learning.

With B_i = beta_i I, no D, G = sum_i A_i P_{Ker C_i} A_i' and s = ||beta - mean beta||,

    cos^2 = s^2 / (g + ||beta||^2),   sin^2 = (g + n mean(beta)^2) / (g + ||beta||^2)

for each eigenvalue g of G; the Friedrichs angle belongs to the least g. If x has fewer entries
than there are coupled equations, that is g = 0 and nothing has to be computed: the cost is linear
in the stored entries. With B = 0 the channels are orthogonal whatever C and D are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.angles.channels import local_projections
from ccmac.angles.heterogeneity import Triangle, entries, transposed_product
from ccmac.angles.principal import (
    OVERLAP_TOLERANCE,
    RANK_TOLERANCE,
    Angles,
    pair_geometry,
)
from ccmac.angles.projectors import Projection, projector
from ccmac.angles.report import Geometry
from ccmac.angles.structural import Spectrum, lanczos_spectrum, structural_parameters
from ccmac.linalg.families import identity_multiple
from ccmac.network import Network
from ccmac.problem import Problem

Array = NDArray[np.float64]
SHOWN = 8


def identity_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry | None:
    """The geometry if the structure is there and the least g can be had, else None."""
    beta = identity_multiples(problem)
    if beta is None:
        return None
    n, m = problem.n, problem.m
    limit = OVERLAP_TOLERANCE if tolerance is None else tolerance
    norm2, mean = float(beta @ beta), float(beta.mean())
    deviation = beta - mean
    spread2 = float(deviation @ deviation)
    d = sum(problem.d.values())
    balance = np.sqrt(n) * abs(mean) / np.sqrt(norm2)
    cancels = balance < limit
    gram = local_gram(problem, local_projections(problem, dense_limit))
    if d < m and not cancels:
        spectrum = Spectrum(0.0, top(problem, gram, dense_limit), None)
        low, common, multiplicity = 0.0, 0, m - d
    elif d <= dense_limit:
        values = singular_values(problem)
        rank = int(np.count_nonzero(values > RANK_TOLERANCE * values[0])) if len(values) else 0
        if rank == 0:
            return None
        low, common, multiplicity = float(values[rank - 1] ** 2), 0, 1
        if rank < m:
            low, common = (low, m - rank) if cancels else (0.0, 0)
        spectrum = Spectrum(low, float(values[0] ** 2), rank)
    elif m <= d and not cancels:
        spectrum = lanczos_spectrum(m, gram)
        low, common, multiplicity = spectrum.low or 0.0, 0, 1
    else:
        return None
    total = low + norm2
    cosine = np.sqrt(spread2 / total)
    sine = np.sqrt((low + (0.0 if cancels else n * mean**2)) / total)
    shown = [0.0] * min(common, SHOWN), [1.0] * min(common, SHOWN)
    count = min(multiplicity, SHOWN)
    angles = Angles(np.array(shown[0] + [sine] * count), np.array(shown[1] + [cosine] * count))
    ranks = (m + rank_of_C(problem), (n - 1) * problem.q)
    pair = pair_geometry(Angles(np.array([sine]), np.array([cosine])), ranks, 0.0)
    factor = pair.cross_factor if not common else float(np.sqrt(2 * (1 + cosine)) / sine)
    eigenvalues = Spectrum(
        ((0.0 if common else low) + norm2) / n, (spectrum.high + norm2) / n, m, spectrum.estimated
    )
    shares = tuple(float(v) for v in deviation**2 / spread2) if spread2 else (0.0,) * n
    return Geometry(
        friedrichs_cosine=pair.cosine,
        friedrichs_angle=pair.angle,
        cross_factor=pair.cross_factor,
        multi_channel_factor=factor,
        common_dimension=common,
        ranks=ranks,
        principal_angles=angles.radians,
        method="matrix-free" if spectrum.estimated else "heterogeneity",
        tolerance=limit,
        rank_tolerance=RANK_TOLERANCE,
        structural=structural_parameters(problem, eigenvalues, network, dense_limit),
        agents=shares,
        rebalanced_cross_factor=1.0,
        notes=_estimate_note(spectrum),
    )


def identity_multiples(problem: Problem) -> Array | None:
    """beta with B_i = beta_i I (0 where absent), if some are not zero and there is no D."""
    if any(D is not None and 0 not in D.shape for D in problem.blocks("D")):
        return None
    values = [0.0 if B is None else identity_multiple(B) for B in problem.blocks("B")]
    if any(v is None for v in values) or not any(values):
        return None
    return np.array(values, dtype=np.float64)


def local_gram(problem: Problem, onto: Sequence[Projection | None]) -> Callable[[Array], Array]:
    """h -> sum_i A_i P_{Ker C_i} A_i' h, matrix-free; ``onto`` projects on the Range(C_i')."""
    blocks = problem.blocks("A")

    def apply(h: Array) -> Array:
        result = np.zeros(problem.m)
        for A, P in zip(blocks, onto, strict=True):
            if A is not None:
                x = transposed_product(A, h)
                result += np.asarray(A @ (x if P is None else x - P(x))).ravel()
        return result

    return apply


def top(problem: Problem, gram: Callable[[Array], Array], dense_limit: int) -> float:
    """lambda_max(G): from A'A of the small side when it is small, else by Lanczos."""
    d = sum(problem.d.values())
    if d == 0:
        return 0.0
    if d > dense_limit or any(C is not None for C in problem.blocks("C")):
        return lanczos_spectrum(problem.m, gram, low_end=False).high
    whole = side_by_side(problem)
    return float(sla.eigvalsh(entries(whole.T @ whole))[-1])


def singular_values(problem: Problem) -> Array:
    """Singular values of [A_1 P_1 ... A_n P_n], folded to d x d without squaring."""
    pieces = []
    for agent in problem.agents.values():
        if agent.A is None:
            continue
        A = agent.A
        if agent.C is not None and 0 not in agent.C.shape:
            onto = projector(agent.C, max(agent.C.shape))
            A = np.stack([row - onto(row) for row in entries(A)])
        pieces.append(A)
    if not pieces:
        return np.zeros(0)
    whole = sp.hstack([sp.csr_array(p) for p in pieces], format="csr")
    triangle = Triangle(whole.shape[1], keep=False)
    triangle.add(whole.T)
    return np.asarray(sla.svdvals(triangle.rows()))


def side_by_side(problem: Problem) -> Any:
    """[A_1 ... A_n], sparse."""
    blocks = [A for A in problem.blocks("A") if A is not None]
    return sp.hstack([sp.csr_array(entries_or_sparse(A)) for A in blocks], format="csr")


def entries_or_sparse(block: Any) -> Any:
    """Sparse blocks as they are, others dense."""
    return block if hasattr(block, "tocsr") else entries(block)


def rank_of_C(problem: Problem) -> int:
    """sum_i rank C_i."""
    present = [C for C in problem.blocks("C") if C is not None and 0 not in C.shape]
    return sum(int(np.linalg.matrix_rank(entries(C))) for C in present)


def _estimate_note(spectrum: Spectrum) -> tuple[str, ...]:
    if not spectrum.estimated:
        return ()
    if spectrum.low is None:
        return (
            "The least eigenvalue of sum_i A_i A_i' could not be told from zero and was taken as "
            "zero; chi is at most what is reported.",
        )
    return (
        "The least eigenvalue of sum_i A_i A_i' was estimated by Lanczos (from above); "
        "chi can only be a little larger than reported.",
    )
