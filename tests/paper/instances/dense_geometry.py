"""Channels on (x, copies of z) as dense arrays, and what dense linear algebra says of them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag, subspace_angles

from ccmac.paper.instances.reference import dense
from ccmac.problem import Problem


def channels(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """K_1 = [A.. B..; C 0] (rows summed over agents) and K_2 = [0 D; 0 I - J]."""
    n = problem.n
    m = problem.m
    q = problem.q
    A = [dense(a.A, (m, problem.d[i])) for i, a in problem.agents.items()]
    B = [dense(a.B, (m, q)) for a in problem.agents.values()]
    C = block_diag(*[dense(a.C, (problem.p[i], problem.d[i])) for i, a in problem.agents.items()])
    D = block_diag(*[dense(a.D, (problem.r[i], q)) for i, a in problem.agents.items()])
    total = sum(problem.d.values())
    C = C.reshape(sum(problem.p.values()), total)
    first = np.vstack([np.hstack([*A, *B]), np.hstack([C, np.zeros((C.shape[0], n * q))])])
    consensus = np.kron(np.eye(n) - 1.0 / n, np.eye(q))
    second = np.vstack([D.reshape(sum(problem.r.values()), n * q), consensus])
    return first, np.hstack([np.zeros((second.shape[0], total)), second])


def row_basis(K: np.ndarray) -> np.ndarray:
    """Orthonormal rows spanning the row space of K: its whitened form."""
    if not K.size:
        return K.reshape(0, K.shape[1])
    _, values, right = np.linalg.svd(K, full_matrices=False)
    return right[: int(np.sum(values > 1e-9 * max(values[0], 1e-300)))] if values[0] else right[:0]


def friedrichs_cosine(problem: Problem) -> float:
    """Largest cosine below one between the row spaces; zero when a channel is empty."""
    U, V = (row_basis(K) for K in channels(problem))
    if not len(U) or not len(V):
        return 0.0
    cosines = np.cos(subspace_angles(U.T, V.T))
    return float(max((c for c in cosines if c < 1 - 1e-12), default=0.0))


def multiplier_scale(problem: Problem, x: list[np.ndarray], z: np.ndarray, L: float) -> float:
    """Lambda_cvx = sigma ||lambda*|| / (L R) of the whitened stack, minimum-norm multiplier."""
    K = np.vstack([row_basis(K) for K in channels(problem)])
    gradients = [a.objective.gradient(x[i], z) for i, a in problem.agents.items()]
    gradient = np.concatenate([g for g, _ in gradients] + [g for _, g in gradients])
    solution, _, _, values = np.linalg.lstsq(K.T, -gradient, rcond=1e-10)
    assert np.linalg.norm(K.T @ solution + gradient) < 1e-10
    sigma = values[values > 1e-10 * values[0]].min()
    w = np.concatenate([*x, np.tile(z, problem.n)])
    return float(sigma * np.linalg.norm(solution) / (L * np.linalg.norm(w)))
