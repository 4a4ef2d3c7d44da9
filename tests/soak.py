"""Kills, stops and a full disk at random moments, for a bounded time; what was lost is counted.

    python tests/soak.py --seconds 600 --parts kill stop full refuse        or: make soak
    python tests/soak.py --parts mpi owners suites

``kill``     SIGKILL after the first checkpoint; resumed: bits, ledger and trace of a whole run
``stop``     SIGTERM or Ctrl-C at any moment: one line, exit code 143 or 130, resumed alike
``full``     from a random moment on no file can grow: the run goes on, what was saved resumes alike
``refuse``   a changed objective, block, index, network, option or version: refused by name
``mpi``      a killed rank, resumed on another number of ranks (tests/runtime/test_mpi_solve.py)
``owners``   a killed owner, all continue over TLS links (tests/cli/test_agent.py)
``suites``   a killed runner of a suite, resumed (tests/paper/experiments/test_execute.py)

Runs are forked from this process, so that a kill costs a run and not an interpreter.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

import ccmac  # noqa: E402
from ccmac.cli.main import main as command  # noqa: E402
from ccmac.errors import InputError  # noqa: E402
from ccmac.storage.index import exists, read_index  # noqa: E402
from soaked import CHANGES, EVERY, METHODS, PLAIN, problem, same, solved  # noqa: E402


def forked(work: Callable[[], Any], before: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """(pid, reading end of a pipe): ``work`` runs in a child and its value is written there."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        before()
        value = work()
        for late in (signal.SIGTERM, signal.SIGINT):  # the command has ended; its value has not
            signal.signal(late, signal.SIG_IGN)
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(value, stream)
        os._exit(0)
    except BaseException as error:
        print(f"  {type(error).__name__}: {error}", flush=True)
        os._exit(9)


def value_of(child: tuple[int, int]) -> Any:
    """What the child wrote; None if it did not come to that."""
    with os.fdopen(child[1], "rb") as stream:
        content = stream.read()
    os.waitpid(child[0], 0)
    return pickle.loads(content) if content else None  # of this program's own child


class Soak:
    """The parts; each attempt is True where nothing was lost."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng, self.whole = folder, random.Random(seed), {}
        self.hit = 0  # runs that were still under way
        problem().save(folder / "problem")
        for method in METHODS:
            solved(method, folder / f"loaded-{method}")  # modules, once and for all children
            begun = time.perf_counter()
            found = value_of(forked(lambda m=method: solved(m, folder / f"whole-{m}")))
            self.whole[method] = found, time.perf_counter() - begun

    def fresh(self) -> Path:
        place = self.folder / "state"
        shutil.rmtree(place, ignore_errors=True)
        return place

    @staticmethod
    def saved(place: Path) -> int:
        """How many checkpoints were written."""
        return read_index(place).generation + 1 if exists(place) else 0

    def kill(self, number: int) -> bool:
        method = METHODS[number % len(METHODS)]
        place = self.fresh()
        expected, seconds = self.whole[method]
        child = forked(lambda: solved(method, place))
        saves = expected["iterations"] // EVERY
        after = self.rng.randrange(max(saves - 2, 1))  # the clock says little on a busy machine
        while self.saved(place) <= after and not os.waitpid(child[0], os.WNOHANG)[0]:
            time.sleep(0.001)
        time.sleep(self.rng.uniform(0.0, seconds / saves))
        try:
            os.kill(child[0], signal.SIGKILL)
            self.hit += value_of(child) is None
        except (ProcessLookupError, ChildProcessError):
            os.close(child[1])
        again = value_of(forked(lambda: solved(method, place)))
        return again is not None and same(again, expected)

    def stop(self, number: int) -> bool:
        method = METHODS[number % len(METHODS)]
        place = self.fresh()
        expected, seconds = self.whole[method]
        number_of, code = self.rng.choice(((signal.SIGTERM, 143), (signal.SIGINT, 130)))
        said = self.folder / "said.txt"
        words = [
            "solve",
            str(self.folder / "problem"),
            "--network",
            "ring",
            "--method",
            method,
            "--tol",
            "1e-9",
            "--checkpoint",
            str(place),
            "--every",
            str(EVERY),
            "--max-iterations",
            "90",
        ]
        if method == "cross-apapc":
            words += [word for k, v in PLAIN.items() for word in ("--set", f"{k}={v}")]
        ready, go = os.pipe()

        def quiet() -> None:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            from ccmac.cli.signals import listen

            listen()
            os.write(go, b"x")

        child = forked(lambda: command(words), quiet)
        os.read(ready, 1)
        time.sleep(self.rng.uniform(0.0, 1.1 * seconds))
        os.kill(child[0], number_of)
        ended = value_of(child)
        self.hit += ended == code
        os.close(ready)
        os.close(go)
        lines = [line for line in said.read_text().splitlines() if not line.startswith("warning: ")]
        if ended not in (0, 1, code) or len(lines) > 1:
            print(f"  {method}: exit code {ended}, {lines}")
            return False
        again = value_of(forked(lambda: solved(method, place)))
        return again is not None and same(again, expected)

    def full(self, number: int) -> bool:
        method = METHODS[number % len(METHODS)]
        place = self.fresh()
        expected, seconds = self.whole[method]
        moment = self.rng.uniform(0.0, seconds)
        size = self.rng.choice((0, 300, 3000))

        def fill() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit))  # noqa: E731
            threading.Timer(moment, full).start()

        found = value_of(forked(lambda: solved(method, place), fill))
        if found is None:  # it was full before the folder had been tried
            return not (place / "checkpoint.json").exists()
        again = value_of(forked(lambda: solved(method, place)))
        return same(found, expected) and again is not None and same(again, expected)

    def refuse(self, number: int) -> bool:
        method = METHODS[number % len(METHODS)]
        place = self.folder / "refused"
        kind = self.rng.choice(sorted(CHANGES))
        if not (place / method).exists():
            solved(method, place / method, max_seconds=None)
        words, change = CHANGES[kind]
        before = sorted((p.name, p.read_bytes()) for p in (place / method).iterdir())
        version = ccmac.methods.identity.__version__
        try:
            change(self.rng, method, place / method)
        except InputError as error:
            after = sorted((p.name, p.read_bytes()) for p in (place / method).iterdir())
            if any(word in str(error) for word in words) and before == after:
                return True
            print(f"  {kind}: {error}")
        finally:
            ccmac.methods.identity.__version__ = version
        print(f"  {kind} of {method}: not refused by name")
        return False


def tested(variable: str, count: int, test: str) -> tuple[int, int]:
    """A test that makes ``count`` attempts: all of them, or none."""
    ask = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        ask, check=False, env={**os.environ, variable: str(count)}, cwd=ROOT.parent
    )
    return (0 if done.returncode else count), count


MPI = "tests/runtime/test_mpi_solve.py::test_a_killed_job_continues_to_the_same_bits"
SUITES = "tests/paper/experiments/test_execute.py::test_kill_and_resume_leaves_complete_records"
OWNERS = (
    "tests/cli/test_agent.py::test_a_killed_owner_ends_the_run_and_all_continue_to_the_same_bits"
)
WIDENED = {
    "mpi": ("CCMAC_MPI_KILLS", 30, MPI),
    "suites": ("CCMAC_KILLS", 20, SUITES),
    "owners": ("CCMAC_OWNER_KILLS", 10, OWNERS),
}
COUNTS = {"kill": 100, "stop": 60, "full": 40, "refuse": 100}


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills, stops and full disks at random moments.")
    parser.add_argument("--parts", nargs="+", default=[*COUNTS, *WIDENED])
    parser.add_argument("--count", type=int, help="attempts of each part")
    parser.add_argument("--seconds", type=float, default=900.0, help="of each part at most")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    lost = 0
    with tempfile.TemporaryDirectory(prefix="ccmac-soak-") as name:
        soak = Soak(Path(name), asked.seed) if set(asked.parts) & set(COUNTS) else None
        for part in asked.parts:
            if part in WIDENED:
                variable, count, test = WIDENED[part]
                (held, tried), more = tested(variable, asked.count or count, test), ""
            else:
                begun = time.monotonic()
                results = []
                for number in range(asked.count or COUNTS[part]):
                    if time.monotonic() - begun > asked.seconds:
                        break
                    results.append(getattr(soak, part)(number))
                held = sum(results)
                tried = len(results)
                more = f", {soak.hit} of them hit under way" if soak.hit else ""
                soak.hit = 0
            lost += tried - held
            print(f"{part:<8}{held:>5} of {tried} held{more}", flush=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
