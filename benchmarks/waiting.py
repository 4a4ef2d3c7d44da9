"""Ways to wait for an MPI message: time of a round, and CPU of all ranks while they wait.

    python benchmarks/waiting.py [--ranks 4] [--rounds 200]

Ranks on a ring of one machine send 1 kB to both neighbors, round by round; one rank may be late.

    pauses     ccmac's: looks, and pauses of 1/64 of the time waited
    waitall    MPI's own call: hears no clock and no signal
    told       the same, told by MPICH's variables to nap between looks
    throttled  the same, and to throttle their progress engine
    thread     MPI's call in a thread of its own, which the first one waits for: hears both
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HEAVY = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10"}
THROTTLE = "MPIR_CVAR_CH4_PROGRESS_THROTTLE"
THROTTLED = {**HEAVY, THROTTLE: "1", f"{THROTTLE}_NO_PROGRESS_COUNT": "10"}
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "pauses": ("pauses", {}),
    "waitall": ("waitall", {}),
    "waitall, told": ("waitall", HEAVY),
    "waitall, throttled": ("waitall", THROTTLED),
    "thread": ("thread", {}),
    "thread, told": ("thread", HEAVY),
}
LATE = (0.0, 0.02, 0.1)  # seconds


def inside(kind: str, rounds: int) -> None:
    """The work of one rank; the first prints what one round takes."""
    import numpy as np

    from ccmac.runtime.mpi import MPI, MpiTransport

    world = MPI.COMM_WORLD
    transport = MpiTransport()
    peers = [(world.rank + step) % world.size for step in (-1, 1)]
    leaving, arriving = ([(p, np.zeros(125)) for p in peers] for _ in range(2))
    helper = ThreadPoolExecutor(1)

    def exchange() -> None:
        if kind == "pauses":
            transport.exchange(leaving, arriving)
            return
        requests: list[Any] = [world.Irecv(array, peer) for peer, array in arriving]
        requests += [world.Isend(array, peer) for peer, array in leaving]
        if kind == "thread":
            helper.submit(MPI.Request.Waitall, requests).result(60.0)
        else:
            MPI.Request.Waitall(requests)

    for late in LATE:
        count = max(20, rounds // 5) if late else rounds
        world.Barrier()
        begun = time.perf_counter()
        busy = time.process_time()
        for _ in range(count):
            if world.rank == 0:
                time.sleep(late)
            exchange()
        taken = time.perf_counter() - begun
        used = world.allreduce(time.process_time() - busy)
        if world.rank == 0:
            print(f"{1e3 * taken / count:.2f} ({1e3 * used / count:.2f})", flush=True)


def main() -> None:
    """Every way in a job of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        inside(asked.inside, asked.rounds)
        return
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    head = " | ".join("a rank is never late" if not s else f"{1e3 * s:.0f} ms late" for s in LATE)
    print(f"| ms of a round (CPU of all ranks) | {head} |\n|---|---:|---:|---:|")
    for name, (kind, more) in KINDS.items():
        command = [str(mpiexec), "-n", str(asked.ranks), sys.executable, __file__]
        command += ["--rounds", str(asked.rounds), "--inside", kind]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        print(f"| {name} | {' | '.join(told.stdout.split(chr(10))[:3])} |", flush=True)


if __name__ == "__main__":
    main()
