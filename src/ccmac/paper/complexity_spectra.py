"""Condition numbers of the un-normalized stacks that other methods work with.

``stack_condition``    kappa(K'K) of the canonical stack K = [K_1; K_2]
``coupled_condition``  max_i ||A'_i||^2 / lambda_min^+(n^{-1} sum_i A'_i A'_i') of the reduction to
                       coupled rows alone: A'_i = [A_i B_i; 0 W_i (x) I; C_i 0; 0 D_i]

Dense where the stack is small. Else Lanczos inside Range(K'), where no zero eigenvalue lives: its
extreme Ritz values lie inside the positive spectrum, so that the condition is estimated from below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.linalg.lanczos import lanczos
from ccmac.linalg.operator import to_dense
from ccmac.linalg.ranks import numerical_rank
from ccmac.linalg.symmetric import gram_extremes
from ccmac.linalg.tolerances import RANK
from ccmac.network import Network
from ccmac.paper.canonical_channels import canonical_channels
from ccmac.paper.comparators.reductions import matrix
from ccmac.problem import Problem
from ccmac.runtime import InProcess

DENSE = 1200


def stack_condition(problem: Problem, network: Network) -> tuple[float | None, bool]:
    """(kappa(K'K) over the positive spectrum, whether it is an estimate)."""
    low, high, estimated = _extremes(problem, network, coupled_weight=1.0)
    return (high / low if low > 0 else 1.0), estimated


def coupled_condition(problem: Problem, network: Network) -> tuple[float | None, bool]:
    """(kappa_A of the coupled reduction, whether it is an estimate)."""
    low, _, estimated = _extremes(problem, network, coupled_weight=float(np.sqrt(problem.n)))
    top = max(_agent_top(problem, network, i) for i in problem.agents)
    return (top / (low / problem.n) if low > 0 else 1.0), estimated


def _extremes(
    problem: Problem, network: Network, coupled_weight: float
) -> tuple[float, float, bool]:
    """Extreme positive eigenvalues of K'K with the coupled rows scaled; (0, 0) if K = 0."""
    channels = canonical_channels(problem, network)
    K_1 = channels.K_1
    K_2 = channels.K_2
    weight = np.ones(K_1.shape[0])
    weight[: problem.m] = coupled_weight**2
    size = K_1.shape[1]

    def normal(u: Array) -> Array:
        return K_1.adjoint(weight * K_1.forward(u)) + K_2.adjoint(K_2.forward(u))

    if size <= DENSE:
        rows = np.vstack([np.sqrt(weight)[:, None] * to_dense(K_1), to_dense(K_2)])
        values = sla.svdvals(rows) if rows.size else np.zeros(0)
        values = values[: numerical_rank(values, rows.shape)]
        return (*(values[[-1, 0]] ** 2).tolist(), False) if values.size else (0.0, 0.0, False)
    ritz = _ritz_values(normal, size)
    return (float(ritz[0]), float(ritz[-1]), True) if ritz.size else (0.0, 0.0, True)


def _ritz_values(normal: Callable[[Array], Array], size: int) -> Array:
    """Ritz values of a positive semidefinite operator on its range, ascending."""
    start = normal(np.random.default_rng(0).standard_normal(size))
    # Floats kept for the Krylov basis.
    steps = int(min(150, size, max(20, 2e7 / size)))
    alone = InProcess(Network.path(1))
    krylov = lanczos(alone, lambda rows: normal(rows[0])[None], start[None], steps)
    if not krylov.steps:
        return np.zeros(0)
    values, vectors = np.linalg.eigh(krylov.tridiagonal())
    # The start lies in the range: a Ritz vector that it does not see came from rounding.
    seen = vectors[0] ** 2 > 1e-24
    return np.asarray(values[seen & (values > RANK * values[-1])])


def _agent_top(problem: Problem, network: Network, i: int) -> float:
    """||A'_i||^2."""
    agent = problem.agents[i]
    d = problem.d[i]
    q = problem.q
    links = float(np.linalg.norm(network.weights[[i], :].toarray())) if problem.n > 1 else 0.0
    coupled = sp.hstack([matrix(agent.A, (problem.m, d)), matrix(agent.B, (problem.m, q))])
    on_x = matrix(agent.C, (problem.p[i], d))
    on_z = sp.vstack([links * sp.eye_array(q), matrix(agent.D, (problem.r[i], q))])
    rows = sp.vstack([coupled, sp.block_diag([on_x, on_z])], format="csr")
    return gram_extremes(sp.csr_array(rows), both=False).high
