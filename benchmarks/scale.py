"""Seconds per iteration for up to 10,000 agents, by simulation.

    python benchmarks/scale.py [--model FILE] [--wide FILE]
                               what exchange.py --json wrote, what wide_area.py --json wrote

Each agent has a host of its own. One iteration is some local work followed by averagings of the
shared variable along a breadth-first tree. The links are fitted to this machine's measured
exchanges, to those between owners on an emulated wide-area network, or assumed (a data centre).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from costmodel import CostModel, Workload, simulate, tree_rounds

from ccmac.network import Network

WIDTH = 1_000  # floats of the shared variable
COMPUTE = 1e-3  # seconds of local work in an iteration
AVERAGINGS = 2  # in an iteration
JITTER = 0.3
LINKS = {"data centre (assumed)": CostModel(5e-6, 1 / 1e9)}
NETWORKS = {
    100: [Network.ring(100), Network.grid(10, 10), Network.random_regular(100, 4, 0)],
    1_000: [Network.ring(1_000), Network.grid(25, 40), Network.random_regular(1_000, 4, 0)],
    10_000: [Network.ring(10_000), Network.grid(100, 100), Network.random_regular(10_000, 4, 0)],
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--model", type=Path)
    arguments.add_argument("--wide", type=Path)
    chosen = arguments.parse_args()
    links = dict(LINKS)
    for name, file in (("this machine", chosen.model), ("wide area", chosen.wide)):
        if file is not None:
            told = json.loads(file.read_text())
            model = CostModel(told["alpha"], told["beta"], latency=told.get("latency", 0.0))
            links[f"{name} (fitted)"] = model
    print("| agents | network | rounds | links | even | uneven | waiting |")
    print("|---:|---|---:|---|---:|---:|---:|")
    for n, networks in NETWORKS.items():
        for network in networks:
            rounds = AVERAGINGS * tree_rounds(network)
            for name, model in links.items():
                even = simulate(network, model, Workload(rounds, WIDTH, COMPUTE))
                work = Workload(rounds, WIDTH, COMPUTE, JITTER)
                uneven = simulate(network, model, work)
                cells = [f"{n:,}", network.name, f"{rounds:,}", name, f"{even:.3g} s"]
                print("|", " | ".join([*cells, f"{uneven:.3g} s", f"{uneven / even:.2f}"]), "|")


if __name__ == "__main__":
    main()
