"""Rounds of messages between owners on an emulated wide-area network, and the cost model of them.

    python benchmarks/wide_area.py WAN [--delay 20] [--rate 100] [--hosts 6] [--json FILE]

WAN is the command of ``latency.py``; every link carries ``--rate`` Mbit/s, every packet takes
``--delay`` ms. An owner on each host sends messages of several lengths to its neighbors and waits
for theirs, over TLS, on a ring and on a complete graph. Printed are the medians, as agent 0 sees
them, and latency, work per message and bandwidth fitted to them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from latency import PORT, network

SIZES = (8, 1_000, 8_000, 64_000, 256_000)
GRAPHS = ("ring", "complete")


def inside(keys: Path, me: int, graph: str, hosts: int, rounds: int) -> None:
    """The work of one owner; the first prints."""
    from ccmac.network import Network
    from ccmac.runtime.links import Links
    from ccmac.runtime.tls import Identity

    near = [int(p) for p in getattr(Network, graph)(hosts).neighbors(me)]
    files = [str(keys / name) for name in (f"agent-{me}.crt", f"agent-{me}.key", "authority.crt")]
    where = {p: (f"agent-{p}", (f"10.78.0.{p + 1}", PORT) if p < me else None) for p in near}
    with Links(me, where, (f"10.78.0.{me + 1}", PORT), Identity(*files), {}) as links:
        links.start()
        for size in SIZES:
            message = bytes(size)
            taken = []
            for _ in range(rounds):
                begun = time.perf_counter()
                links.post(dict.fromkeys(near, message))
                for p in near:
                    links.receive(p)
                taken.append(time.perf_counter() - begun)
            if me == 0:  # the first rounds open the windows of TCP
                told = [len(near), len(near) * size, statistics.median(taken[rounds // 4 :])]
                print("told " + json.dumps(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wan")
    parser.add_argument("--delay", type=float, default=20.0, help="milliseconds")
    parser.add_argument("--rate", type=int, default=100, help="Mbit/s")
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        keys, me, graph = chosen.inside
        inside(Path(keys), int(me), graph, chosen.hosts, chosen.rounds)
        return
    from costmodel import Point, fit

    from ccmac.storage.keys import make_keys

    points = []
    program = [sys.executable, __file__, "-", "--hosts", str(chosen.hosts)]
    program += ["--rounds", str(chosen.rounds), "--inside"]
    with (
        network(chosen.wan, chosen.delay, chosen.rate, chosen.hosts, tuned=True),
        tempfile.TemporaryDirectory() as folder,
    ):
        keys = Path(folder) / "keys"
        make_keys(keys, [f"agent-{k}" for k in range(chosen.hosts)])
        for graph in GRAPHS:
            owners = [
                subprocess.Popen(
                    ["ip", "netns", "exec", f"wan{k}", *program, str(keys), str(k), graph],
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
                for k in range(chosen.hosts)
            ]
            printed = [owner.communicate(timeout=600)[0] for owner in owners]
            if any(owner.returncode for owner in owners):
                raise SystemExit(f"owners ended with {[owner.returncode for owner in owners]}")
            lines = [line for line in printed[0].splitlines() if line.startswith("told ")]
            points += [Point(*json.loads(line[5:])) for line in lines]
    model = fit(points, apart=True)
    print("| neighbors | bytes each | ms a round | fitted |")
    print("|---:|---:|---:|---:|")
    for p in points:
        fitted = 1e3 * model.round_seconds(p.messages, p.bytes)
        print(
            f"| {p.messages} | {p.bytes // p.messages:,} | {1e3 * p.seconds:.1f} | {fitted:.1f} |"
        )
    print(f"cost model: {model}")
    if chosen.json:
        told = {"alpha": model.alpha, "beta": model.beta, "latency": model.latency}
        chosen.json.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
