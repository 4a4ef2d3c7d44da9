"""Rank 1 is killed while rank 0 waits for it; the watcher must say so."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from ccmac.network import Network
from ccmac.runtime.mpi import Mpi


def main() -> None:
    """Kill rank 1 from inside, as the operating system would."""
    runtime = Mpi(Network.ring(5))
    with runtime.guard(), runtime.watched():
        if runtime.rank == 1:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            runtime.mix(np.zeros((len(runtime.owned), 1)))


if __name__ == "__main__":
    main()
