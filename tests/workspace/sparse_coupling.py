"""Coupled rows that concern a few agents each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ccmac import Agent, Problem
from ccmac.objectives import Quadratic


def sparse_coupling(seed: int, n: int, m: int = 40, *, stray: bool = False) -> Problem:
    """Each of m rows touches two agents, q = 3; ``stray``: agent 0 has sides in others' rows."""
    random = np.random.default_rng(seed)
    d = 9
    q = 3
    A = np.zeros((n, m, d))
    B = np.zeros((n, m, q))
    for j in range(m):
        for i in (j % n, (j + 1 + j // n % (n - 1)) % n):
            A[i, j], B[i, j] = random.standard_normal(d), random.standard_normal(q)
    x = random.standard_normal((n, d))
    z = random.standard_normal(q)
    b = np.einsum("imd,id->im", A, x) + B @ z
    if stray:
        far = ~B[0].any(axis=1)
        b[0, far] += 1.0
        b[1:, far] -= 1.0 / (n - 1)  # the sum stays; agent 0 and others stray
    agents = []
    for i in range(n):
        H = random.uniform(1, 3, d + q)
        g = random.standard_normal(d + q)
        C = random.standard_normal((1, d))
        block = sp.csr_array(A[i]) if i % 2 else A[i]
        agents.append(Agent(Quadratic(H, g), A=block, B=B[i], b=b[i], C=C, c=C @ x[i]))
    return Problem(agents)
