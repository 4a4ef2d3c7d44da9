"""Private set intersection of three parties on the loopback, one process each: docs/privacy.md.

    python benchmarks/intersection.py [--keys 1000000] [--parties 3]

Prints the time of the join, CPU time with waiting, and the keys that all have. Needs ``mpiexec``
and ``ccmac[owners]``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

from ccmac.network import Network


def take_part(keys: int, parties: int) -> None:
    """One party: nine tenths of the keys are common to all."""
    from ccmac.api import make_runtime
    from ccmac.vfl.intersection import intersected

    runtime = make_runtime(Network.complete(parties), "mpi", "auto")
    me = runtime.owned[0]
    own = [f"{'all' if k % 10 else me}-{k}" for k in range(keys)]
    begun = time.perf_counter()
    rows, counts = intersected(own, "salt", runtime)
    spent = time.perf_counter() - begun
    used = runtime.total(np.array([[time.process_time()]]))[0]
    assert all(own[row].startswith("all") for row in rows)
    if me == 0:
        held = ", ".join(f"{count:,.0f}" for count in counts)
        print(f"{held} keys: {len(rows):,} common, {spent:.0f} s, {used:.0f} CPU s of all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--inside", action="store_true")
    asked = parser.parse_args()
    if asked.inside:
        take_part(asked.keys, asked.parties)
        return
    own = [sys.executable, __file__, "--inside", "--keys", str(asked.keys)]
    run = ["mpiexec", "-n", str(asked.parties), *own, "--parties", str(asked.parties)]
    subprocess.run(run, check=True, timeout=3600)


if __name__ == "__main__":
    main()
