"""The angle in closed form when every B_i is a multiple of the identity, as in vertical learning.

With B_i = beta_i I, no D, G = sum_i A_i P_{Ker C_i} A_i' and s = ||beta - mean beta||,

    cos^2 = s^2 / (g + ||beta||^2),   sin^2 = (g + n mean(beta)^2) / (g + ||beta||^2)

for each eigenvalue g of G; the Friedrichs angle belongs to the least g. If x has fewer entries
than there are coupled equations, that is g = 0 and nothing has to be computed: the cost is linear
in the stored entries. With B = 0 the channels are orthogonal whatever C and D are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from ccmac.angles.heterogeneity import Triangle
from ccmac.angles.large import local_gram
from ccmac.angles.principal import Angles, pair_geometry
from ccmac.angles.projections import local_projections, projector
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.structural import PositiveSpectrum, lanczos_spectrum, structural_parameters
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries, identity_multiples
from ccmac.linalg.ranks import numerical_rank
from ccmac.linalg.tolerances import OVERLAP
from ccmac.network import Network
from ccmac.problem import Problem

SHOWN = 8
TINY = float(np.finfo(np.float64).tiny)


def identity_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry | None:
    """The geometry if the structure is there and the least g can be had, else None."""
    beta = identity_multiples(problem.blocks("B"))
    if beta is None or any(D is not None and 0 not in D.shape for D in problem.blocks("D")):
        return None
    n = problem.n
    m = problem.m
    limit = OVERLAP if tolerance is None else tolerance
    norm2 = float(beta @ beta)
    mean = float(beta.mean())
    deviation = beta - mean
    spread2 = float(deviation @ deviation)
    cancels = np.sqrt(n) * abs(mean) / np.sqrt(norm2) < limit
    found = _least(problem, cancels, dense_limit)
    if found is None:
        return None
    spectrum, common, multiplicity = found
    low = spectrum.low or 0.0
    total = low + norm2
    cosine = np.sqrt(spread2 / total)
    sine = np.sqrt((low + (0.0 if cancels else n * mean**2)) / total)
    each = Angles(np.array([sine]), np.array([cosine]))
    count = min(multiplicity, SHOWN)
    shown = Angles(np.full(count, sine), np.full(count, cosine)).after_common(min(common, SHOWN))
    # Only the exact zeros put there are common: what is nearly common has a closed form.
    pair = pair_geometry(each.after_common(common), (m, (n - 1) * problem.q), TINY)
    eigenvalues = PositiveSpectrum(
        ((0.0 if common else low) + norm2) / n, (spectrum.high + norm2) / n, m, spectrum.estimated
    )
    structural = structural_parameters(problem, eigenvalues, network, dense_limit)
    rank_C = structural.rank_C
    method = "matrix-free" if spectrum.estimated else "heterogeneity"
    return Geometry(
        **pair_fields(pair, shown, method=method, tolerance=limit),
        ranks=(None if rank_C is None else m + rank_C, (n - 1) * problem.q),
        structural=structural,
        agents=tuple(float(v) for v in deviation**2 / (spread2 or 1.0)),
        rebalanced_cross_factor=1.0,
        notes=_estimate_note(spectrum),
    )


def _least(
    problem: Problem, cancels: bool, dense_limit: int
) -> tuple[PositiveSpectrum, int, int] | None:
    """(ends of G, common directions, multiplicity of the least g); None if it cannot be had.

    ``cancels``: the beta_i add up to zero, so that the kernel of G is common to both channels.
    """
    m = problem.m
    d = sum(problem.d.values())
    if d < m and not cancels:
        return PositiveSpectrum(0.0, _top(problem, dense_limit), None), 0, m - d
    if d <= dense_limit:
        values = _singular_values(problem)
        rank = numerical_rank(values, (m, d))
        if rank == 0:
            return None
        low = float(values[rank - 1] ** 2)
        high = float(values[0] ** 2)
        if rank == m:
            return PositiveSpectrum(low, high, rank), 0, 1
        return PositiveSpectrum(low if cancels else 0.0, high, rank), m - rank if cancels else 0, 1
    if m <= d and not cancels:
        gram = local_gram(problem, local_projections(problem, dense_limit))
        return lanczos_spectrum(m, gram), 0, 1
    return None


def _top(problem: Problem, dense_limit: int) -> float:
    """lambda_max(G): from A'A of the small side when it is small, else by Lanczos."""
    d = sum(problem.d.values())
    if d == 0:
        return 0.0
    if d > dense_limit or any(C is not None for C in problem.blocks("C")):
        gram = local_gram(problem, local_projections(problem, dense_limit))
        return lanczos_spectrum(problem.m, gram, low_end=False).high
    whole = _joined([A for A in problem.blocks("A") if A is not None])
    return float(sla.eigvalsh(dense(whole.T @ whole))[-1])


def _singular_values(problem: Problem) -> Array:
    """Singular values of [A_1 P_1 ... A_n P_n], folded to d x d without squaring."""
    pieces = []
    for agent in problem.agents.values():
        A = agent.A
        if A is not None and agent.C is not None and 0 not in agent.C.shape:
            onto = projector(agent.C, max(agent.C.shape))
            A = np.stack([row - onto(row) for row in dense(A)])
        if A is not None:
            pieces.append(A)
    if not pieces:
        return np.zeros(0)
    whole = _joined(pieces)
    triangle = Triangle(whole.shape[1], keep=False)
    triangle.add(whole.T)
    return np.asarray(sla.svdvals(triangle.rows()))


def _joined(blocks: list[Any]) -> Any:
    """[M_1 M_2 ...], sparse."""
    return sp.hstack([sp.csr_array(b if has_entries(b) else dense(b)) for b in blocks], "csr")


def _estimate_note(spectrum: PositiveSpectrum) -> tuple[str, ...]:
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
