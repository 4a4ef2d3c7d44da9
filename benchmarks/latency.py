"""Latencies that a solve pays against the rounds in its ledger, on an emulated wide-area network.

    python benchmarks/latency.py WAN [--runtimes mpi links] [--agents 4 8] [--delays 50 250]
    python benchmarks/latency.py WAN --show FILES      # tables of the pages, from --json's files

WAN is a command that makes hosts with delays on one machine: ``WAN up DELAY_US RATE_MBIT K`` gives
K network namespaces wan0..wan(K-1) with addresses 10.78.0.1..K, ``WAN down`` takes them away (root
only). One MPI rank, or one owner with TLS links to its neighbors, runs in each of them. Between two
delays the wall time of ``ccmac.solve`` grows by (latencies paid) x (difference of the delays):
reported are that slope, the ledger's rounds of all phases (the transport counted the same), and
slope / rounds. Of several solves the median is taken. ``at most`` is the whole time at the larger
delay over rounds x delay: local work counts as latency in it, and other work of the machine makes
it larger, never smaller. ``row`` is the mean length of a row that is averaged, ``longest`` that of
the longest, ``seconds`` the time of a solve at the larger delay.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Eager messages of any length, TCP only: see docs/cluster.md.
TRANSPORT = {
    "MPIR_CVAR_CH4_NETMOD": "ucx",
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "UCX_RNDV_THRESH": "inf",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# What keeps the kernel from stretching a message over several latencies: a sender's window that
# stays open in pauses, and a receiver's that is open from the start.
KERNEL = ["net.ipv4.tcp_slow_start_after_idle=0", "net.ipv4.tcp_rmem=4096 4194304 33554432"]
ROUTE = ["congctl", "cubic", "initcwnd"]  # so many segments at once, of 1,460 bytes
# On a machine with other work to do, the hosts go first: their time would be taken for latency.
FIRST = ["nice", "-n", "-10"]
PORT = 7000
# name: (loss, l1, rho, samples, features, method, options, iterations)
CASES: dict[str, tuple[str, float, float, int, int, str, dict[str, int], int]] = {
    "cg": ("squared", 0.0, 0.0, 650, 48, "cross-cg", {"sketch": 2}, 25),
    "apapc": ("squared", 0.0, 0.0, 55, 48, "cross-apapc", {}, 10),
    "lbfgs": ("logistic", 0.0, 0.01, 650, 48, "cross-lbfgs", {}, 10),
    "logistic": ("logistic", 0.0, 1e-4, 36, 12, "auto", {}, 20),
    "lasso": ("squared", 0.02, 0.0, 28, 8, "auto", {}, 5),
    "wide-lasso": ("squared", 0.02, 0.0, 650, 48, "auto", {}, 5),
    "long-cg": ("squared", 0.0, 0.0, 64_000, 16, "cross-cg", {"sketch": 1}, 30),
    "long-apapc": ("squared", 0.0, 0.0, 16_000, 16, "cross-apapc", {}, 20),
}


def solve(case: str, agents: int, runtime: Any) -> dict[str, Any]:
    """One solve: its seconds and counts."""
    import numpy as np

    import ccmac
    from ccmac.ledger import Ledger
    from ccmac.methods.registry import parse

    loss, l1, rho, samples, features, method, options, iterations = CASES[case]
    rng = np.random.default_rng(1)
    X = rng.standard_normal((samples, features)) @ np.diag(np.geomspace(1.0, 0.2, features))
    y = X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(samples)
    target = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    problem = ccmac.vfl.problem(X, target, agents, loss=loss, l1=l1, shared_regularization=rho)
    runtime.ledger = Ledger()
    before = runtime.transport.rounds
    begun = time.perf_counter()
    result = ccmac.solve(
        problem,
        runtime=runtime,
        method=parse(method, options),
        tol=1e-3 if l1 else 1e-6,
        max_iterations=iterations,
    )
    seconds = time.perf_counter() - begun
    total = result.ledger.total
    scheme = runtime.averaging
    sent = scheme.floats_total * total("averagings")
    return {
        "case": case,
        "averaging": scheme.name,
        "agents": agents,
        "seconds": seconds,
        "rounds": total("rounds"),
        "counted": runtime.transport.rounds - before,
        "status": result.status,
        "row": total("network_bytes") / sent,
        "longest": 8 * total("longest_message") / scheme.longest,
    }


def inside(options: argparse.Namespace) -> None:
    """The work of one process; the first prints a line of JSON for every solve."""
    agents = options.agents[0]
    keys = options.inside
    with _runtimes(agents, keys, options.me) as runtime_of:
        for averaging in options.averagings:
            runtime = runtime_of(averaging)
            for case in options.cases:
                for _ in range(options.solves):
                    told = solve(case, agents, runtime)
                    if runtime.owned.start == 0:
                        print("told " + json.dumps(told), flush=True)


@contextmanager
def _runtimes(agents: int, keys: str, me: int) -> Iterator[Any]:
    """A function that gives the runtime for an averaging scheme."""
    from ccmac.network import Network

    network = Network.ring(agents)
    if keys == "mpi":
        from ccmac.runtime.mpi import Mpi, guard

        with guard():
            yield lambda averaging: Mpi(network, averaging=averaging)
        return
    from ccmac.runtime.links import Links
    from ccmac.runtime.owners import between_owners
    from ccmac.runtime.tls import Identity

    files = [f"{keys}/agent-{me}.crt", f"{keys}/agent-{me}.key", f"{keys}/authority.crt"]
    near = {
        int(p): (f"agent-{p}", (f"10.78.0.{p + 1}", PORT) if p < me else None)
        for p in network.neighbors(me)
    }
    with Links(me, near, (f"10.78.0.{me + 1}", PORT), Identity(*files), {}) as links:
        links.start()
        yield lambda averaging: between_owners(links, network, averaging)


def over_mpi(agents: int, program: list[str], folder: Path) -> str:
    """A rank on every host: what rank 0 printed."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    hosts = [f"10.78.0.{k + 1}" for k in range(agents)]
    shell = folder / "shell"  # stands in for ssh: host, then a command
    shell.write_text(
        "#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nhost=$1; shift\n"
        'exec ip netns exec wan$((${host##*.} - 1)) sh -c "$*"\n'
    )
    shell.chmod(0o755)
    command = [
        *FIRST,
        "ip",
        "netns",
        "exec",
        "wan0",
        str(mpiexec),
        "-launcher",
        "ssh",
        "-launcher-exec",
        str(shell),
        "-localhost",
        hosts[0],
        "-hosts",
        ",".join(hosts),
        "-n",
        str(agents),
        "-ppn",
        "1",
        *program,
        "--inside",
        "mpi",
    ]
    job = subprocess.run(
        command,
        env={**os.environ, **TRANSPORT},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    if job.returncode:
        raise SystemExit(f"the job ended with {job.returncode}:\n{job.stdout}\n{job.stderr}")
    return job.stdout


def over_links(agents: int, program: list[str], folder: Path) -> str:
    """An owner on every host: what agent 0 printed."""
    from ccmac.storage.keys import make_keys

    keys = folder / "keys"
    make_keys(keys, [f"agent-{k}" for k in range(agents)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    owners = []
    for k in range(agents):
        command = [*FIRST, "ip", "netns", "exec", f"wan{k}", *program, "--inside", str(keys)]
        command += ["--me", str(k)]
        owners.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    told = [owner.communicate(timeout=3000)[0] for owner in owners]
    if any(owner.returncode for owner in owners):
        raise SystemExit(f"owners ended with {[owner.returncode for owner in owners]}")
    return told[0]


@contextmanager
def network(wan: str, delay: float, rate: int, agents: int, window: int) -> Iterator[None]:
    """Hosts with a delay of so many milliseconds; ``window`` 0: the kernel as it is."""
    subprocess.run([wan, "up", str(round(1000 * delay)), str(rate), str(agents)], check=True)
    for k in range(agents if window else 0):
        kernel = ["ip", "netns", "exec", f"wan{k}", "sysctl", "-qw", *KERNEL]
        route = ["ip", "-n", f"wan{k}", "route", "change", "10.78.0.0/24", "dev", "wan0"]
        for command in (kernel, [*route, "src", f"10.78.0.{k + 1}", *ROUTE, str(window)]):
            subprocess.run(command, check=True)
    try:
        yield
    finally:
        subprocess.run([wan, "down"], check=True, stdout=subprocess.DEVNULL)


def measured(options: argparse.Namespace, runtime: str, agents: int) -> Iterator[dict[str, Any]]:
    """Both delays; one row for every case and averaging."""
    runs: list[dict[tuple[str, str], list[dict[str, Any]]]] = []
    program = [
        sys.executable,
        __file__,
        options.wan,
        "--agents",
        str(agents),
        "--solves",
        str(options.solves),
        "--cases",
        *options.cases,
        "--averagings",
        *options.averagings,
    ]
    start = over_mpi if runtime == "mpi" else over_links
    for delay in options.delays:
        with (
            network(options.wan, delay, options.rate, agents, options.window),
            tempfile.TemporaryDirectory() as folder,
        ):
            printed = start(agents, program, Path(folder))
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for line in printed.splitlines():
            if line.startswith("told "):
                told = json.loads(line[5:])
                found.setdefault((told["case"], told["averaging"]), []).append(told)
        runs.append(found)
    low, high = options.delays
    for key, last in runs[1].items():
        seconds = [statistics.median(t["seconds"] for t in found[key]) for found in runs]
        counts = {(t["rounds"], t["counted"]) for found in runs for t in found[key]}
        paid = 1000 * (seconds[1] - seconds[0]) / (high - low)
        rounds = last[-1]["rounds"]
        assert all(ledger == counted for ledger, counted in counts), counts
        yield {
            **last[-1],
            "runtime": runtime,
            "delays": options.delays,
            "paid": paid,
            "seconds": seconds,
            "ratio": paid / rounds,
            "window": options.window,
            "most": 1000 * seconds[1] / (rounds * high),
        }


def show(files: list[str]) -> None:
    """A row for every runtime and case, a column for every ring and averaging."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for file in files:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            m = json.loads(line)
            column = f"ring of {m['agents']}, {m['averaging']}"
            found.setdefault((m["runtime"], m["case"]), {})[column] = m
    columns = sorted({column for row in found.values() for column in row})
    print(f"| runtime, case (kB: mean row, longest; the larger of rings) | {' | '.join(columns)} |")
    print("|---|" + "---:|" * len(columns))
    for (runtime, case), row in found.items():
        row_kb, longest = (max(m[key] for m in row.values()) / 1000 for key in ("row", "longest"))
        cells = [
            f"{row[c]['ratio']:.2f} ({row[c]['most']:.2f})" if c in row else "" for c in columns
        ]
        print(f"| {runtime}, {case} ({row_kb:.1f}, {longest:.1f}) | {' | '.join(cells)} |")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wan")
    parser.add_argument("--runtimes", nargs="+", default=["mpi", "links"])
    parser.add_argument("--agents", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--delays", type=float, nargs=2, default=[50.0, 250.0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--averagings", nargs="+", default=["relay", "tree"])
    parser.add_argument("--solves", type=int, default=2)
    parser.add_argument("--rate", type=int, default=0, help="Mbit/s of every host's link")
    parser.add_argument("--window", type=int, default=40, help="initcwnd; 0: the kernel as it is")
    parser.add_argument("--show", nargs="+", metavar="FILE", help="tables of measurements kept")
    parser.add_argument("--json", type=Path, help="append the measurements to this file")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--me", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options)
        return
    if options.show:
        show(options.show)
        return
    sizes = "row, kB | longest | rounds"
    times = "ratio | at most | seconds"
    print(f"| runtime | case | hosts | averaging | {sizes} | {times} |")
    print("|---|---|---:|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for runtime in options.runtimes:
        for agents in options.agents:
            for m in measured(options, runtime, agents):
                print(
                    f"| {runtime} | {m['case']} | {agents} | {m['averaging']} | "
                    f"{m['row'] / 1000:.1f} | {m['longest'] / 1000:.1f} | {m['rounds']} | "
                    f"{m['ratio']:.2f} | {m['most']:.2f} | {m['seconds'][1]:.1f} |",
                    flush=True,
                )
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(m) + "\n")


if __name__ == "__main__":
    main()
