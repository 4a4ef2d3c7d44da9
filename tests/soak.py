"""Kills and stops at random moments, for a bounded time; what was lost is counted.

    python tests/soak.py --seconds 600 --parts kill stop        or: make soak
    python tests/soak.py --parts mpi owners suites

``kill``     SIGKILL at a random moment; continued: bits, ledger and trace of a whole run
``stop``     SIGTERM or Ctrl-C at a random moment: exit code 143 or 130, continued alike
``mpi``      a killed rank, continued on another number of ranks (tests/runtime/test_mpi_solve.py)
``owners``   a killed owner, all continue over TLS links (tests/cli/test_agent.py)
``suites``   a killed runner of a suite, resumed (tests/paper/experiments/test_execute.py)
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

import ccmac  # noqa: E402

METHODS = ("cross-apapc", "cross-cg", "cross-lbfgs", "dpmm")
COMMAND = [sys.executable, "-c", "from ccmac.cli.main import run; run()"]
WIDENED = {
    "mpi": (
        "CCMAC_MPI_KILLS",
        30,
        "tests/runtime/test_mpi_solve.py::test_a_killed_job_continues_to_the_same_bits",
    ),
    "suites": (
        "CCMAC_KILLS",
        20,
        "tests/paper/experiments/test_execute.py::test_kill_and_resume_leaves_complete_records",
    ),
    "owners": (
        "CCMAC_OWNER_KILLS",
        10,
        "tests/cli/test_agent.py"
        "::test_a_killed_owner_ends_the_run_and_all_continue_to_the_same_bits",
    ),
}


def problem() -> ccmac.Problem:
    """Eight agents with sparse and dense blocks; hard enough for many steps."""
    rng = np.random.default_rng(0)
    agents = []
    for _ in range(8):
        H = np.diag(np.geomspace(1.0, 300.0, 30)[rng.permutation(30)])
        A = sp.random_array((10, 18), density=0.4, rng=rng, format="csr")
        f = ccmac.objectives.Quadratic(H, rng.standard_normal(30))
        B = rng.standard_normal((10, 12))
        agents.append(ccmac.Agent(f, A=A, B=B, b=rng.standard_normal(10)))
    return ccmac.Problem(agents)


class Soak:
    """The parts; each attempt is True where nothing was lost."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.hit = 0  # runs that were still under way
        problem().save(folder / "problem")
        self.whole = {method: self.ended(method, folder / method) for method in METHODS}

    def start(self, method: str, state: Path) -> subprocess.Popen[str]:
        place = str(self.folder / "problem")
        words = ["solve", place, "--network", "ring", "--method", method, "--tol", "1e-13"]
        words += ["--checkpoint", str(state), "--every", "3", "--max-iterations", "150"]
        words += ["--out", str(state / "out")]
        pipe = subprocess.PIPE
        return subprocess.Popen([*COMMAND, *words], stdout=pipe, stderr=pipe, text=True)

    def ended(self, method: str, state: Path) -> tuple[object, ...]:
        """What must be the same: bits, bill, verdict, and the history without its clock."""
        job = self.start(method, state)
        _, said = job.communicate(timeout=300)
        if job.returncode not in (0, 1):
            print(f"  exit code {job.returncode}: {said}")
            return ()
        with np.load(state / "out" / "solution.npz") as arrays:
            bits = {name: array.tobytes() for name, array in arrays.items()}
        summary = json.loads((state / "out" / "summary.json").read_text())
        with (state / "out" / "trace.csv").open() as stream:
            rows = [
                {k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)
            ]
        return bits, [summary[name] for name in ("status", "iterations", "ledger")], rows

    def interrupted(self, number: int, sent: int) -> tuple[bool, int]:
        """(whether the continued run is the whole one, exit code of the interrupted one)."""
        method = METHODS[number % len(METHODS)]
        state = self.folder / "state"
        shutil.rmtree(state, ignore_errors=True)
        job = self.start(method, state)
        after = self.rng.randrange(40)
        while job.poll() is None and self.saved(state) < after:
            time.sleep(0.001)
        time.sleep(self.rng.uniform(0.0, 0.02))
        job.send_signal(sent)
        _, said = job.communicate(timeout=60)
        self.hit += job.returncode not in (0, 1)
        right = "Traceback" not in said and self.ended(method, state) == self.whole[method]
        return right, job.returncode

    @staticmethod
    def saved(state: Path) -> int:
        """The number of the newest save."""
        numbers = [int(file.name.split("-")[1]) for file in state.glob("state-*.npz")]
        return max(numbers, default=-1)

    def kill(self, number: int) -> bool:
        return self.interrupted(number, signal.SIGKILL)[0]

    def stop(self, number: int) -> bool:
        sent, code = self.rng.choice(((signal.SIGTERM, 143), (signal.SIGINT, 130)))
        right, ended = self.interrupted(number, sent)
        return right and ended in (0, 1, code)


def tested(variable: str, count: int, test: str) -> int:
    """How many of ``count`` attempts of a test held: all of them, or none."""
    ask = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    env = {**os.environ, variable: str(count)}
    return 0 if subprocess.run(ask, check=False, env=env, cwd=ROOT.parent).returncode else count


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills and stops at random moments.")
    parser.add_argument("--parts", nargs="+", default=["kill", "stop", *WIDENED])
    parser.add_argument("--count", type=int, help="attempts of each part")
    parser.add_argument("--seconds", type=float, default=900.0, help="of kill and stop at most")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also started in the background
    lost = 0
    with tempfile.TemporaryDirectory(prefix="ccmac-soak-") as name:
        soak = Soak(Path(name), asked.seed) if {"kill", "stop"} & set(asked.parts) else None
        for part in asked.parts:
            if part in WIDENED:
                variable, count, test = WIDENED[part]
                tried = asked.count or count
                held = tested(variable, tried, test)
                print(f"{part:<8}{held:>5} of {tried} held", flush=True)
            elif soak is not None:
                begun = time.monotonic()
                results: list[bool] = []
                while (
                    len(results) < (asked.count or 30) and time.monotonic() - begun < asked.seconds
                ):
                    results.append(getattr(soak, part)(len(results)))
                held = sum(results)
                tried = len(results)
                print(f"{part:<8}{held:>5} of {tried} held, {soak.hit} hit under way", flush=True)
                soak.hit = 0
            lost += tried - held
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
