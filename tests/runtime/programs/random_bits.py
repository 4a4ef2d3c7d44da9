"""Random problems on all ranks and in one process: the same bits, prices and bills.

Families that only some ranks have, blocks of several kinds and storage orders beside each other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac.lab.instances import random_quadratic
from ccmac.runtime.mpi import MPI, guard
from workspace.sparse_coupling import sparse_coupling

LIMITED = {"max_iterations": 8, "tol": 1e-12}
AVERAGED: tuple[dict[str, Any], ...] = (
    {"method": "cross-apapc"},
    {"method": "cross-apapc", "averaging": "tree"},
    {"method": "cross-cg"},
    {"method": "joint-apapc", **LIMITED},
    {"method": "condat-vu", **LIMITED},
)
CERTIFIED: dict[str, Any] = {
    "method": ccmac.methods.CrossApapc(realization="certified"), "max_iterations": 1,
}  # fmt: skip


def mixed(n: int) -> ccmac.Problem:
    """Multiples of the identity beside general B_i; A_i stored by rows and by columns."""
    rng, m = np.random.default_rng(8), 6
    agents = []
    for i in range(n):
        general = sp.csr_array(sp.random(m, m, 0.5, rng=rng))
        A = rng.standard_normal((m, 7))
        agents.append(
            ccmac.Agent(
                ccmac.objectives.Quadratic(rng.uniform(1, 3, 7 + m), rng.standard_normal(7 + m)),
                A=np.asfortranarray(A) if i % 2 else A,
                B=general if i == 1 else sp.csr_array(0.3 * (i + 1) * sp.eye_array(m)),
                b=rng.standard_normal(m),
            )
        )
    return ccmac.Problem(agents)


def cases(n: int) -> Iterator[tuple[ccmac.Problem, tuple[dict[str, Any], ...]]]:
    yield mixed(n), AVERAGED
    for stray in (False, True):
        other = "cross-cg" if stray else "cross-ipm"
        yield sparse_coupling(3, n, stray=stray), ({"method": "auto"}, {"method": other})
    random = np.random.default_rng(9)  # so many rows that they are brought to their range
    X, y = random.standard_normal((1_300, 9)), random.standard_normal(1_300)
    yield ccmac.vfl.problem(X, y, n, l1=0.05), ({"method": "cross-ipm"},)
    for seed in range(3):
        absent = random_quadratic(seed, n=n, q=4, m=3, sparse=seed == 1, absent=0.4)
        yield absent, AVERAGED
        yield random_quadratic(seed, n=n, d=2, q=2, m=1, absent=0.4), (CERTIFIED,)


def main(n: int) -> None:
    network, checked = ccmac.Network.ring(n), 0
    for problem, runs in cases(n):
        for options in runs:
            here = ccmac.solve(problem, network, runtime="mpi", **options)
            scheme = options.get("averaging", "auto")
            alone = ccmac.InProcess(network, fused=options is not CERTIFIED, averaging=scheme)
            whole = ccmac.solve(problem, runtime=alone, **options)
            for agent, x in zip(here.agents, here.x, strict=True):
                assert x.tobytes() == whole.x[agent].tobytes(), (checked, options, agent)
            assert here.z.tobytes() == whole.z.tobytes(), (checked, options)
            assert here.ledger.as_dict() == whole.ledger.as_dict(), (checked, options)
            assert (here.status, here.iterations) == (whole.status, whole.iterations)
            assert (here.objective, here.residuals) == (whole.objective, whole.residuals)
            if whole.multipliers is not None and here.multipliers is not None:
                assert np.array_equal(here.multipliers.coupled, whole.multipliers.coupled)
            checked += 1
    if MPI.COMM_WORLD.rank == 0:
        print("checked", checked)


with guard():
    main(int(sys.argv[1]))
