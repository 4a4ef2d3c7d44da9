"""What our neighbor exchange adds to a bare Neighbor_alltoallv of the same bytes.

    python benchmarks/exchange.py [--graph ring] [--ranks 2] [--agents 8] [--json FILE]

Starts itself under mpiexec. For each width of the rows these are timed side by side, in short
alternating bursts so that all of them see the same machine:

    bare      Neighbor_alltoallv on ready buffers, nothing else
    exchange  the transport's round on ready buffers
    mix       the whole round: rows picked, exchange, local product
    relay     the rounds by which all rows reach all agents, against bare rounds of the same bytes

Reported are the best bursts, by the clock of the slower rank, the ratios exchange/bare and
relay/bare, and latency and bandwidth fitted to the exchanges. More ranks than cores measure the
scheduler of the operating system.
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


def measure(kind: str, agents: int, file: Path | None) -> None:
    """The work of every rank."""
    import numpy as np
    from costmodel import Point, fit

    from ccmac.network import Network
    from ccmac.runtime.averaging import Relay
    from ccmac.runtime.mpi import MPI, Mpi, guard

    with guard():
        network = {
            "ring": lambda: Network.ring(agents),
            "grid": lambda: Network.grid(agents // 4, 4),
            "regular": lambda: Network.random_regular(agents, 4, seed=0),
        }[kind]()
        runtime = Mpi(network)
        scheme = Relay(network)
        keep_apart(runtime.rank, runtime.ranks)
        plan = runtime._plan(network.weights)
        peers = list(plan.peers)
        steps_of = scheme.steps(runtime._ends, runtime.rank)
        graph = MPI.COMM_WORLD.Create_dist_graph_adjacent(peers, peers, reorder=False)
        points = []
        table = []

        def alltoallv(send: list[int], receive: list[int]) -> Callable[[], object]:
            """A bare round of so many floats to and from every peer."""
            buffers = []
            for counts in (send, receive):
                ends = [sum(counts[:k]) for k in range(len(counts))]
                buffers.append([np.zeros(sum(counts)), counts, ends, MPI.DOUBLE])
            return lambda: graph.Neighbor_alltoallv(*buffers)

        for width in WIDTHS:
            block = np.random.default_rng(0).standard_normal((len(runtime.owned), width))
            sizes = [[k * width for k in c] for c in (plan.send_counts, plan.receive_counts)]
            messages = [
                [(p, np.zeros(k * width)) for p, k in zip(peers, counts, strict=True)]
                for counts in (plan.send_counts, plan.receive_counts)
            ]
            rounds = [
                alltoallv(*([width * len(dict(side).get(p, ())) for p in peers] for side in sides))
                for sides in steps_of
                if MPI.COMM_WORLD.allreduce(sum(map(len, sides)))  # silent rounds cost nothing
            ]
            steps: list[Callable[[], object]] = [
                alltoallv(*sizes),
                lambda m=messages: runtime.transport.exchange(*m),
                lambda b=block: runtime._mix(b, network.weights),
                lambda r=rounds: [one() for one in r],
                lambda b=block: runtime._relayed(scheme, b),
            ]
            repetitions = max(3, min(50, 50_000 // width))
            bursts = np.empty((BURSTS, len(steps)))
            for burst in range(BURSTS):
                for k, step in enumerate(steps):
                    MPI.COMM_WORLD.Barrier()
                    bursts[burst, k] = seconds(step, repetitions)
            slowest = np.empty_like(bursts)
            MPI.COMM_WORLD.Allreduce(bursts, slowest, op=MPI.MAX)
            bare, exchange, mix, bare_rounds, relay = slowest.min(axis=0)
            size = 8 * sum(sizes[0])
            points.append(Point(len(peers), size, float(exchange)))
            table.append(
                [width, size, bare, exchange, mix, relay, exchange / bare, relay / bare_rounds]
            )
        if runtime.is_root:
            report(table, str(fit(points)), runtime.ranks, network.name)
            if file is not None:
                model = fit(points)
                file.write_text(
                    json.dumps({"alpha": model.alpha, "beta": model.beta, "rows": table})
                )


def report(table: list[list[float]], model: str, ranks: int, name: str) -> None:
    print(f"{name} on {ranks} ranks, {os.cpu_count()} cores; microseconds (relay: all its rounds)")
    names = ("bare", "exchange", "mix", "relay")
    print(f"{'width':>7} {'bytes':>9}" + "".join(f"{k:>10}" for k in (*names, "ratio", "relay's")))
    for width, size, *times, exchange, relay in table:
        columns = "".join(f"{1e6 * t:10.2f}" for t in times)
        print(f"{width:>7} {size:>9}{columns}{exchange:>10.3f}{relay:>10.3f}")
    for what, column in (("exchange", -2), ("relay", -1)):
        worst = max(row[column] for row in table)
        print(f"largest {what}/bare {worst:.3f}")
    print(f"cost model: {model}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--ranks", type=int, default=2)
    arguments.add_argument("--graph", choices=("ring", "grid", "regular"), default="ring")
    arguments.add_argument("--agents", type=int, default=8)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        measure(chosen.graph, chosen.agents, chosen.json)
        return 0
    beside = str(Path(sys.executable).parent)
    mpiexec = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if mpiexec is None:
        print("exchange.py needs mpiexec: pip install 'ccmac[mpi]'", file=sys.stderr)
        return 2
    command = [mpiexec, "-n", str(chosen.ranks), sys.executable, __file__, "--measure"]
    command += ["--graph", chosen.graph, "--agents", str(chosen.agents)]
    command += ["--json", str(chosen.json)] if chosen.json else []
    return subprocess.run(command, check=False, timeout=600).returncode


if __name__ == "__main__":
    sys.exit(main())
