"""What our neighbor exchange adds to a bare Neighbor_alltoallv of the same bytes.

    python benchmarks/exchange.py [--ranks 2] [--agents 8] [--json FILE]

Starts itself under mpiexec. For each width of the rows three things are timed side by side, in
short alternating bursts so that all of them see the same machine:

    bare      Neighbor_alltoallv on ready buffers, nothing else
    exchange  the prepared messages of the runtime: packed, or sent from the block
    mix       the whole round: exchange and local product

Reported are the best bursts, by the clock of the slower rank, the ratio exchange/bare (1.2 at most
is the target), and latency and bandwidth fitted to the exchanges. More ranks than cores measure
the scheduler of the operating system.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

WIDTHS = (1, 8, 64, 256, 512, 768, 1024, 2048, 4096, 32768)
BURSTS = 301  # short ones: some of each kind fall between other programs' turns
TARGET = 1.2


def seconds(step: Callable[[], object], repetitions: int) -> float:
    start = time.perf_counter()
    for _ in range(repetitions):
        step()
    return (time.perf_counter() - start) / repetitions


def keep_apart(rank: int, ranks: int) -> None:
    """A core for each rank: two of them taking turns on one measure the scheduler."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if ranks <= len(cores):
        os.sched_setaffinity(0, {cores[rank]})


def measure(agents: int, file: Path | None) -> None:
    """The work of every rank."""
    import numpy as np

    from ccmac.network import Network
    from ccmac.runtime.costmodel import Point, fit
    from ccmac.runtime.mpi import MPI, Mpi, guard

    with guard():
        network = Network.ring(agents)
        runtime = Mpi(network)
        keep_apart(runtime.rank, runtime.ranks)
        peers = list(runtime.round(network.weights, 1).plan.peers)
        graph = MPI.COMM_WORLD.Create_dist_graph_adjacent(peers, peers, reorder=False)
        points, table = [], []
        for width in WIDTHS:
            prepared = runtime.round(network.weights, width)
            plan = prepared.plan
            block = np.random.default_rng(0).standard_normal((len(runtime.owned), width))
            counts = [[k * width for k in c] for c in (plan.send_counts, plan.receive_counts)]
            sent, received = (np.zeros(sum(c)) for c in counts)
            ends = [[sum(c[:k]) for k in range(len(c))] for c in counts]
            bare_send = [sent, counts[0], ends[0], MPI.DOUBLE]
            bare_receive = [received, counts[1], ends[1], MPI.DOUBLE]
            steps: list[Callable[[], object]] = [
                lambda s=bare_send, r=bare_receive: graph.Neighbor_alltoallv(s, r),
                lambda p=prepared, b=block: p.exchange(b),
                lambda p=prepared, b=block: p.mix(b),
            ]
            repetitions = max(3, min(50, 50_000 // width))
            bursts = np.empty((BURSTS, len(steps)))
            for burst in range(BURSTS):
                for k, step in enumerate(steps):
                    MPI.COMM_WORLD.Barrier()
                    bursts[burst, k] = seconds(step, repetitions)
            slowest = np.empty_like(bursts)
            MPI.COMM_WORLD.Allreduce(bursts, slowest, op=MPI.MAX)
            bare, exchange, mix = slowest.min(axis=0)
            messages, size = len(plan.peers), 8 * sum(counts[0])
            points.append(Point(messages, size, float(exchange)))
            table.append([width, size, bare, exchange, mix, exchange / bare])
        if runtime.is_root:
            report(table, str(fit(points)), runtime.ranks, agents)
            if file is not None:
                model = fit(points)
                file.write_text(
                    json.dumps({"alpha": model.alpha, "beta": model.beta, "rows": table})
                )


def report(table: list[list[float]], model: str, ranks: int, agents: int) -> None:
    print(f"ring of {agents} agents on {ranks} ranks, {os.cpu_count()} cores; microseconds a round")
    print(f"{'width':>7} {'bytes':>9} {'bare':>9} {'exchange':>9} {'mix':>9} {'exchange/bare':>14}")
    for width, size, bare, exchange, mix, ratio in table:
        times = " ".join(f"{1e6 * t:9.2f}" for t in (bare, exchange, mix))
        print(f"{width:>7} {size:>9} {times} {ratio:>14.3f}")
    worst = max(row[-1] for row in table)
    print(f"largest exchange/bare {worst:.3f} (target at most {TARGET})")
    print(f"cost model: {model}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--ranks", type=int, default=2)
    arguments.add_argument("--agents", type=int, default=8)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        measure(chosen.agents, chosen.json)
        return 0
    beside = str(Path(sys.executable).parent)
    mpiexec = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if mpiexec is None:
        print("exchange.py needs mpiexec: pip install 'ccmac[mpi]'", file=sys.stderr)
        return 2
    command = [mpiexec, "-n", str(chosen.ranks), sys.executable, __file__, "--measure"]
    command += ["--agents", str(chosen.agents)]
    command += ["--json", str(chosen.json)] if chosen.json else []
    return subprocess.run(command, check=False, timeout=600).returncode


if __name__ == "__main__":
    sys.exit(main())
