"""Latencies that a solve pays against the rounds in its ledger, on an emulated wide-area network.

    python benchmarks/latency.py WAN [--agents 4 8] [--delays 20 80] [--cases cg apapc] [--rate 0]

WAN is a command that makes hosts with delays on one machine: ``WAN up DELAY_US RATE_MBIT K`` gives
K network namespaces wan0..wan(K-1) with addresses 10.78.0.1..K, ``WAN down`` takes them away (root
only). One MPI rank runs in each of them. Between two delays the wall time of ``ccmac.solve`` grows
by (latencies paid) x (difference of the delays): reported are that slope, the ledger's rounds of
all phases, the rounds that the transport counted, and slope / rounds. ``wall`` is the time of the
whole command at the larger delay, the start of Python and MPI included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Eager messages of any length, TCP only: see docs/cluster.md.
TRANSPORT = {
    "MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self",
    "UCX_RNDV_THRESH": "inf", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip
# What keeps TCP from stretching a message over several latencies.
IDLE, ROUTE = "net.ipv4.tcp_slow_start_after_idle=0", ["congctl", "cubic", "initcwnd", "40"]
# name: (loss, l1, rho, samples, features, method, tol)
CASES: dict[str, tuple[str, float, float, int, int, str, float]] = {
    "cg": ("squared", 0.0, 0.0, 650, 48, "cross-cg", 1e-6),
    "apapc": ("squared", 0.0, 0.0, 650, 48, "cross-apapc", 1e-6),
    "lbfgs": ("logistic", 0.0, 0.01, 650, 48, "cross-lbfgs", 1e-6),
    "logistic": ("logistic", 0.0, 0.01, 650, 48, "auto", 1e-6),
    "lasso": ("squared", 0.02, 0.0, 650, 48, "auto", 1e-3),
    "long-cg": ("squared", 0.0, 0.0, 21_000, 16, "cross-cg", 1e-6),
    "long-apapc": ("squared", 0.0, 0.0, 21_000, 16, "cross-apapc", 1e-6),
}


def solve(name: str, agents: int, averaging: str) -> None:
    """The work of every rank; rank 0 prints one line of JSON."""
    import numpy as np

    import ccmac
    from ccmac.network import Network
    from ccmac.runtime.mpi import Mpi, guard

    loss, l1, rho, samples, features, method, tol = CASES[name]
    rng = np.random.default_rng(1)
    X = rng.standard_normal((samples, features)) @ np.diag(np.geomspace(1.0, 0.2, features))
    y = X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(samples)
    target = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    problem = ccmac.vfl.problem(X, target, agents, loss=loss, l1=l1, shared_regularization=rho)
    with guard():
        runtime = Mpi(Network.ring(agents), averaging=averaging)
        before, begun = runtime.transport.rounds, time.perf_counter()
        result = ccmac.solve(problem, runtime=runtime, method=method, tol=tol)
        seconds = time.perf_counter() - begun
        if runtime.is_root:
            told = {
                "seconds": seconds, "status": result.status, "iterations": result.iterations,
                "rounds": result.ledger.total("rounds"),
                "counted": runtime.transport.rounds - before,
                "row": 8 * result.ledger.total("longest_message") // runtime.averaging.longest,
            }  # fmt: skip
            print("told " + json.dumps(told), flush=True)


def launched(
    wan: str, delay: float, rate: int, agents: int, arguments: list[str]
) -> dict[str, Any]:
    """One run on a network of so many milliseconds."""
    subprocess.run([wan, "up", str(round(1000 * delay)), str(rate), str(agents)], check=True)
    for k in range(agents):
        idle = ["ip", "netns", "exec", f"wan{k}", "sysctl", "-qw", IDLE]
        route = ["ip", "-n", f"wan{k}", "route", "change", "10.78.0.0/24", "dev", "wan0"]
        for command in (idle, [*route, "src", f"10.78.0.{k + 1}", *ROUTE]):
            subprocess.run(command, check=True)
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    hosts = [f"10.78.0.{k + 1}" for k in range(agents)]
    with tempfile.TemporaryDirectory() as folder:
        shell = Path(folder) / "shell"  # stands in for ssh: host, then a command
        shell.write_text(
            "#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nhost=$1; shift\n"
            'exec ip netns exec wan$((${host##*.} - 1)) sh -c "$*"\n'
        )
        shell.chmod(0o755)
        command = [
            "ip", "netns", "exec", "wan0", str(mpiexec), "-launcher", "ssh", "-launcher-exec",
            str(shell), "-localhost", hosts[0], "-hosts", ",".join(hosts), "-n", str(agents),
            "-ppn", "1", sys.executable, __file__, wan, "--inside", *arguments,
        ]  # fmt: skip
        begun = time.perf_counter()
        try:
            job = subprocess.run(
                command, env={**os.environ, **TRANSPORT}, capture_output=True, text=True,
                timeout=900, check=False,
            )  # fmt: skip
        finally:
            wall = time.perf_counter() - begun
            subprocess.run([wan, "down"], check=True, stdout=subprocess.DEVNULL)
    lines = [line for line in job.stdout.splitlines() if line.startswith("told ")]
    if job.returncode or not lines:
        raise SystemExit(f"the job ended with {job.returncode}:\n{job.stdout}\n{job.stderr}")
    return {**json.loads(lines[0][5:]), "wall": wall}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wan")
    parser.add_argument("--agents", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--delays", type=float, nargs=2, default=[20.0, 80.0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--averagings", nargs="+", default=["relay", "tree"])
    parser.add_argument("--rate", type=int, default=0, help="Mbit/s of every host's link")
    parser.add_argument("--json", type=Path, help="append the measurements to this file")
    parser.add_argument("--inside", nargs=3, metavar=("CASE", "AGENTS", "AVERAGING"))
    options = parser.parse_args()
    if options.inside:
        name, agents, averaging = options.inside
        solve(name, int(agents), averaging)
        return
    print("| case | hosts | averaging | row, kB | rounds | latencies | ratio | wall, s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for name in options.cases:
        for agents in options.agents:
            for averaging in options.averagings:
                runs = [
                    launched(options.wan, d, options.rate, agents, [name, str(agents), averaging])
                    for d in options.delays
                ]
                low, high = options.delays
                paid = 1000 * (runs[1]["seconds"] - runs[0]["seconds"]) / (high - low)
                last = runs[1]
                assert last["counted"] == last["rounds"] == runs[0]["rounds"], runs
                print(
                    f"| {name} | {agents} | {averaging} | {last['row'] / 1000:.1f} | "
                    f"{last['rounds']} | {paid:.0f} | {paid / last['rounds']:.2f} | "
                    f"{last['wall']:.1f} |", flush=True,
                )  # fmt: skip
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        key = {"case": name, "agents": agents, "averaging": averaging}
                        file.write(
                            json.dumps({**key, "delays": options.delays, "runs": runs}) + "\n"
                        )


if __name__ == "__main__":
    main()
