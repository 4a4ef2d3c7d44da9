"""A rank that rounds differently from the others: one warning at the root, and the run goes on."""

from __future__ import annotations

import warnings

import numpy as np

from ccmac.network import Network
from ccmac.runtime import mpi


def main() -> None:
    usual, rank = mpi.arithmetic, mpi.MPI.COMM_WORLD.Get_rank()
    mpi.arithmetic = lambda: usual() + b"else" * (rank == 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        runtime = mpi.Mpi(Network.ring(4))
    assert len(seen) == int(rank == 0)
    if rank == 0:
        print(seen[0].message)
    assert np.all(runtime.average(np.ones((len(runtime.owned), 2))) == 1.0)


with mpi.guard():
    main()
