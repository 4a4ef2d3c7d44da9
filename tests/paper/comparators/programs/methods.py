"""Every rank runs the baselines; a run of all agents in one process finds the same bits."""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac import methods, vfl
from ccmac.runtime import InProcess
from ccmac.runtime.mpi import MPI, guard

RUNS = (
    methods.CrossCg(),
    methods.CrossLbfgs(),
    methods.CondatVu(),
    methods.Pdhg(),
    methods.Papc(),
    methods.Dpmm(reduction="R1"),
    methods.Dpmm(reduction="R2"),
    methods.TrackingAdmm(reduction="R3"),
    methods.CoupledYarmoshik(reduction="R2"),
    methods.MixedYarmoshik(reduction="R3"),
)


def main() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((12, 8))
    problem = vfl.problem(X, X @ random.standard_normal(8), 4, regularization=0.1)
    network = ccmac.Network.ring(4)
    for method in RUNS:
        common = {"method": method, "max_iterations": 6, "reference": np.ones(8)}
        here = ccmac.solve(problem, network, runtime="mpi", **common)
        # The filters of these two are multiplied out in one process.
        fused = not method.name.endswith("yarmoshik")
        whole = ccmac.solve(problem, network, runtime=InProcess(network, fused=fused), **common)
        for agent, x in zip(here.agents, here.x, strict=True):
            assert np.array_equal(x, whole.x[agent]), (method, agent)
        assert here.ledger.as_dict() == whole.ledger.as_dict(), method
    if MPI.COMM_WORLD.rank == 0:
        print("identical")


with guard():
    main()
