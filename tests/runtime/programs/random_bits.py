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

from beside import Case, differences

import ccmac
from ccmac.paper.instances import random_quadratic
from ccmac.runtime.mpi import MPI, guard
from workspace.sparse_coupling import sparse_coupling

LIMITED = {"max_iterations": 8, "tol": 1e-12}
AVERAGED: tuple[dict[str, Any], ...] = (
    {"method": "cross-apapc"},
    {"method": "cross-apapc", "averaging": "tree", **LIMITED},
    {"method": "cross-cg"},
)
CERTIFIED: dict[str, Any] = {
    "method": ccmac.methods.CrossApapc(realization="certified"),
    "max_iterations": 1,
}


def mixed(n: int) -> ccmac.Problem:
    """Multiples of the identity beside general B_i; A_i stored by rows and by columns."""
    rng = np.random.default_rng(8)
    m = 6
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
    shared = n > MPI.COMM_WORLD.size  # else one agent a rank: fewer and sparse ones do
    for stray in (False, True) if shared else (False,):
        other = "cross-cg" if stray else "cross-ipm"
        yield sparse_coupling(3, n, stray=stray), ({"method": "auto"}, {"method": other})
    if shared:
        random = np.random.default_rng(9)  # so many rows that they are brought to their range
        X = random.standard_normal((1_300, 9))
        y = random.standard_normal(1_300)
        yield ccmac.vfl.problem(X, y, n, l1=0.05), ({"method": "cross-ipm"},)
    for seed in (0, 1) if shared else (1,):
        absent = random_quadratic(seed, n=n, q=4, m=3, sparse=seed == 1, absent=0.4)
        yield absent, AVERAGED
        yield random_quadratic(seed, n=n, d=2, q=2, m=1, absent=0.4), (CERTIFIED,)


def main(n: int) -> None:
    network = ccmac.Network.ring(n)
    listed = [
        Case(f"{k} {options}", problem, network, options, fused=options is not CERTIFIED)
        for k, (problem, runs) in enumerate(cases(n))
        for options in runs
    ]
    different = differences(listed)
    if MPI.COMM_WORLD.rank == 0:
        print(f"checked {len(listed)}, different {different}")


with guard():
    main(int(sys.argv[1]))
