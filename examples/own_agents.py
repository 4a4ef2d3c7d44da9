"""Every rank makes its own agents, and nobody holds the whole problem.

    mpiexec -n 4 python examples/own_agents.py

Eight agents on a ring; each prefers its own x_i, all share z, and the x_i add up to a given total.
"""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac.runtime.mpi import Mpi

N = 8


def agent(i: int) -> ccmac.Agent:
    """The data of agent i: in earnest read from its owner's disk."""
    rng = np.random.default_rng(i)
    f = ccmac.objectives.Quadratic(np.diag(rng.uniform(1, 3, 4)), rng.standard_normal(4))
    return ccmac.Agent(f, A=rng.standard_normal((2, 3)), B=np.ones((2, 1)), b=[1.0, 0.5])


runtime = Mpi(ccmac.Network.ring(N))
mine = {i: agent(i) for i in runtime.owned}
result = ccmac.solve(ccmac.Problem(mine, n=N, q=1, m=2), runtime=runtime, tol=1e-8)
if runtime.is_root:
    print(f"{result.status}: z = {result.z[0]:.6f}, error at most {result.error_bound:.0e}")
