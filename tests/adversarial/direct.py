"""What direct solves are compared with: their averagings, and a refined dense solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ccmac

PHASES = ("setup", "solve", "monitor")


def averagings(result: Any) -> int:
    """Of all phases."""
    return sum(result.ledger.of(phase)["averagings"] for phase in PHASES)


def reference(problem: ccmac.Problem) -> NDArray[np.longdouble]:
    """(x, z) on a dense null space of all rows, refined with residuals in extended precision."""
    d = list(problem.d.values())
    q = problem.q
    ends = np.concatenate([[0], np.cumsum(d)]).astype(int)
    size = int(ends[-1]) + q
    H = np.zeros((size, size))
    g = np.zeros(size)
    coupled = np.zeros((problem.m, size))
    sides = np.zeros(problem.m)
    K = []
    v = []
    for i, agent in problem.agents.items():
        at = np.r_[ends[i] : ends[i + 1], ends[-1] : size]
        own, slope, _ = agent.objective.quadratic(d[i], q)
        H[np.ix_(at, at)] += own
        g[at] += slope
        coupled[:, at] += np.hstack([agent.A, agent.B])
        sides += agent.b
        local = np.zeros((len(agent.C), size))
        local[:, ends[i] : ends[i + 1]] = agent.C
        shared = np.zeros((len(agent.D), size))
        shared[:, ends[-1] :] = agent.D
        K += [local, shared]
        v += [agent.c, agent.e]
    K = np.vstack([coupled, *K])
    v = np.concatenate([sides, *v])
    unit = 1 / np.linalg.norm(K, axis=1)
    K = unit[:, None] * K
    v = unit * v
    U, sigma, Vt = np.linalg.svd(K)
    rank = int(np.count_nonzero(sigma > 1e-12 * sigma[0]))  # shared rows may depend on others
    pinv = (Vt[:rank].T / sigma[:rank]) @ U[:, :rank].T
    Z = Vt[rank:].T
    inside = np.linalg.inv(Z.T @ H @ Z)
    long_K = K.astype(np.longdouble)
    long_H = H.astype(np.longdouble)
    u = np.zeros(size, np.longdouble)
    for _ in range(6):
        u = u + pinv @ (v - long_K @ u).astype(np.float64)
        u = u + Z @ (inside @ (Z.T @ (g - long_H @ u).astype(np.float64)))
    return u
