"""Every rank runs the baselines; a run of all agents in one process finds the same bits."""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac import vfl
from ccmac.runtime.mpi import MPI, guard

RUNS = (
    ("cross-cg", {}), ("cross-lbfgs", {}), ("condat-vu", {}), ("pdhg", {}), ("papc", {}),
    ("dpmm", {"reduction": "R1"}), ("dpmm", {"reduction": "R2"}),
    ("tracking-admm", {"reduction": "R3"}), ("coupled-yarmoshik", {"reduction": "R2"}),
    ("mixed-yarmoshik", {"reduction": "R3"}),
)  # fmt: skip


def main() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((12, 8))
    problem = vfl.problem(X, X @ random.standard_normal(8), 4, regularization=0.1)
    network = ccmac.Network.ring(4)
    for method, options in RUNS:
        common = {"method": method, "max_iterations": 6, "reference": np.ones(8), **options}
        here = ccmac.solve(problem, network, runtime="mpi", **common)
        # The filters of these two are multiplied out in one process.
        fused = not method.endswith("yarmoshik")
        whole = ccmac.solve(problem, network, fused=fused, **common)
        for agent, x in zip(here.agents, here.x, strict=True):
            assert np.array_equal(x, whole.x[agent]), (method, options, agent)
        assert here.ledger.as_dict() == whole.ledger.as_dict(), (method, options)
    if MPI.COMM_WORLD.rank == 0:
        print("identical")


with guard():
    main()
