"""Ways to fail: ``failing.py HOW`` on some ranks of a job that otherwise goes on for minutes."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from ccmac.errors import GradientError, InputError
from ccmac.network import Network
from ccmac.runtime.mpi import MPI, Mpi, guard


def work(runtime: Mpi, how: str) -> None:
    block = np.ones((len(runtime.owned), 4))
    pids = MPI.COMM_WORLD.gather(os.getpid())
    if pids is not None:
        sys.stdout.write(" ".join(map(str, pids)) + "\n")
        sys.stdout.flush()
    end = time.monotonic() + 120
    for iteration in range(10**9):
        if how == "nan" and iteration == 10 and runtime.rank == 1:
            raise GradientError("agent 4: gradient is not finite at iteration 10")
        if how == "everywhere" and iteration == 10:
            raise InputError("method 'magic' is unknown; see ccmac.available_methods()")
        if how == "silent" and iteration == 10:
            runtime.limit(time.monotonic() + 0.5)
            if runtime.rank == 1:
                time.sleep(60)  # as behind a cut link
        runtime.total(block + runtime.average(block))
        if time.monotonic() > end:
            sys.exit("nothing ended the job")


def main(how: str) -> None:
    rank = MPI.COMM_WORLD.Get_rank()
    with guard():
        network = Network.ring(2 if how == "many" else 9 if how == "network" and rank == 2 else 8)
        runtime = Mpi(network)
    with runtime.guard():
        runtime.check_consistent("other problem" if how == "token" and rank == 1 else "problem")
        work(runtime, how)


main(sys.argv[1])
