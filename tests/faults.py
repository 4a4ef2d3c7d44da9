"""Faults of the disk, of signals and of size, each tried once: python tests/faults.py

Needs root for file systems that are small or read-only (tmpfs). Prints a line for each fault: how
the command ended and what it said; exit code 1 if one of them ended otherwise than it should.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

from ccmac.cli.solution import read_solution  # noqa: E402
from ccmac.errors import InputError  # noqa: E402
from ccmac.paper.instances import calibration, dispatch  # noqa: E402

PROGRAM = [sys.executable, "-c", "from ccmac.cli.main import run; run()"]
LONG = ("--method", "cross-apapc", "--tol", "1e-13", "--network", "ring")
GIGABYTE = 1 << 30


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 * GIGABYTE, 2 * GIGABYTE))


def spent(pid: int) -> float:
    """CPU seconds of a process: on a busy machine the clock says little of where it is."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Faults:
    """Each method is a fault; it says whether the end was right."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = ""
        self.code = 0
        dispatch(hours=2).problem.save(folder / "small")
        calibration().problem.save(folder / "large")

    def start(self, *words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *map(str, words)],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limited,  # noqa: PLW1509
            env={**os.environ, "TMPDIR": str(self.folder), "PYTHONPATH": str(ROOT.parent / "src")},
        )

    def ends(self, job: subprocess.Popen[str], *codes: int, words: str = "") -> bool:
        """Whether a job ends with one of the codes and in at most one line, with ``words``."""
        _, self.said = job.communicate(timeout=120)
        self.code = job.returncode
        told = [line for line in self.said.splitlines() if not line.startswith("warning: ")]
        short = all(len(line) < 500 for line in told)
        right = job.returncode in codes and len(told) <= 1 and words in self.said and short
        return right and "Traceback" not in self.said

    # -- 3: the disk and signals -------------------------------------------------------------------
    def full_before(self) -> bool:
        with mounted(self.folder / "a", "size=4k") as place:
            (place / "mine").write_bytes(bytes(4096))
            return self.ends(self.start("solve", "small", "--out", place), 2, words="No space")

    def full_after(self) -> bool:
        with mounted(self.folder / "b", "size=12k") as place:
            right = self.ends(
                self.start("solve", "small", "--out", place), 1, words="the result is in"
            )
            left = [p.name for p in place.iterdir()]
        [rescue] = self.folder.glob("ccmac-rescue-*")
        return right and len(read_solution(rescue, range(6)).x) == 6 and not left

    def read_only(self) -> bool:
        right = True
        with mounted(self.folder / "c", "size=64k,ro") as place:
            for option in ("--out", "--checkpoint"):
                job = self.start("solve", "large", *LONG, option, place)
                right &= self.ends(job, 2, words="Read-only")
        return right

    def no_folder(self) -> bool:
        right = True
        for option in ("--out", "--checkpoint"):
            job = self.start("solve", "large", *LONG, option, "/proc/new")
            right &= self.ends(job, 2, words="/proc/new")
        return right

    def full_at_a_checkpoint(self) -> bool:
        common = ("solve", "large", *LONG, "--max-iterations", 400)
        with mounted(self.folder / "d", "size=28k") as place:
            words = (*common, "--checkpoint", place, "--every", 5, "--out", "gone-on")
            right = self.ends(self.start(*words), 0, 1)
            told = json.loads((self.folder / "gone-on" / "summary.json").read_text())
            right &= any("could not be written" in text for text in told["warnings"])
            shutil.copytree(place, self.folder / "kept")
        words = (*common, "--checkpoint", "kept", "--every", 5)
        right &= self.ends(self.start(*words, "--out", "resumed"), 0, 1)
        right &= self.ends(self.start(*common, "--out", "whole"), 0, 1)
        return right and self.same("resumed", "whole") and self.same("gone-on", "whole")

    def same(self, one: str, two: str) -> bool:
        found = [read_solution(self.folder / name, range(8)) for name in (one, two)]
        return all(np.array_equal(a, b) for a, b in zip(found[0].x, found[1].x, strict=True))

    def signals_at_any_moment(self) -> bool:
        """From the first import to the end of the run, after so much CPU time."""
        right = True
        waits = (0.25, 0.5, 0.8, 1.2, 1.7, 2.5)
        for wait in waits:
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                job = self.start("solve", "large", *LONG, "--max-iterations", 3000)
                while job.poll() is None and spent(job.pid) < wait:
                    time.sleep(0.01)
                job.send_signal(number)
                codes = (
                    (code, 0, 1, -number) if wait < 0.3 else (code, 0, 1)
                )  # before Python listens
                right &= self.ends(job, *codes) or (wait < 0.3 and job.returncode == -number)
        return right

    def terminated_without_a_checkpoint(self) -> bool:
        shutil.rmtree(self.folder / "ccmac-interrupted", ignore_errors=True)
        plain = ("scale=1", "normalizer=semi-iteration", "inner=2", "outer=1")  # no plan
        words = [word for setting in plain for word in ("--set", setting)]
        for seconds in (2, 4, 8, 16):
            job = self.start("solve", "large", *LONG, *words, "--max-iterations", 50000)
            while job.poll() is None and spent(job.pid) < seconds:
                time.sleep(0.05)
            job.send_signal(signal.SIGTERM)
            right = self.ends(job, 143)
            if right and (self.folder / "ccmac-interrupted").exists():
                return len(read_solution(self.folder / "ccmac-interrupted", range(8)).x) == 8
        return False

    def killed_runs_leave_nothing(self) -> bool:
        state = self.folder / "killed"
        words = ("solve", "large", *LONG, "--max-iterations", 300, "--checkpoint", state)
        for _ in range(6):
            job = self.start(*words, "--every", 1)
            until = time.monotonic() + 30
            while not (state / "checkpoint.json").exists() and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.3)
            job.kill()
            job.communicate()
        right = self.ends(self.start(*words, "--every", 100), 0, 1)
        left = [p.name for p in state.iterdir() if p.name.startswith(".")]
        return right and not left and len(list(state.iterdir())) == 3

    # -- 6 and 7: sizes and values -----------------------------------------------------------------
    def alias_bombs(self) -> bool:
        bomb = ", ".join(f"&b{k} [{', '.join([f'*b{k - 1}'] * 9)}]" for k in range(1, 12))
        folder = self.folder / "bomb"
        shutil.copytree(self.folder / "small", folder)
        text = (folder / "problem.yaml").read_text()
        (folder / "problem.yaml").write_text(f"version: [&b0 [x, x], {bomb}]\n" + text)
        right = self.ends(self.start("solve", folder), 2)
        (self.folder / "suite.yaml").write_text(f"name: [&b0 [x, x], {bomb}]\n")
        return right and self.ends(self.start("suite", "run", "suite.yaml", "--out", "runs"), 2)

    def large_suite(self) -> bool:
        from paper.experiments.toy import TEXT

        text = TEXT.replace("DATA", "mushrooms-like") + "\n"
        lines = [
            f"    partition_seeds: {list(range(1_400_000))}" if "partition_seeds" in line else line
            for line in text.splitlines()
        ]
        (self.folder / "many.yaml").write_text("\n".join(lines) + "\n")
        return self.ends(self.start("suite", "run", "many.yaml", "--out", "runs"), 2)

    def large_network(self) -> bool:
        job = self.start("solve", "small", "--network", "grid:3000x3000")
        return self.ends(job, 2, words="the problem has 6")

    def edges_are_whole(self) -> bool:
        (self.folder / "edges.json").write_text("[[0.9, 1.9], [1, 2]]")
        return self.ends(self.start("solve", "small", "--network", "edges.json"), 2)

    def huge_prices(self) -> bool:
        self.start("solve", "small", "--out", "warm").communicate()
        place = self.folder / "warm"
        summary = self.folder / "warm" / "summary.json"
        with np.load(place / "solution.npz") as stored:
            arrays = {k: v if k[0] in "xz" else np.full_like(v, 1e30) for k, v in stored.items()}
        np.savez(place / "solution.npz", **arrays)
        record: dict[str, Any] = json.loads(summary.read_text())
        del record["parts"]
        summary.write_text(json.dumps(record))
        limits = ("--method", "cross-apapc", "--max-iterations", "2000")
        job = self.start("solve", "small", "--warm-start", "warm", *limits)
        return self.ends(job, 0, 1, 2) and "infeasible" not in self.said


FAULTS = [name for name, value in vars(Faults).items() if name[0] != "_" and callable(value)]
FAULTS = [name for name in FAULTS if name not in ("start", "ends", "same")]


def main() -> int:
    wrong = 0
    for name in sys.argv[1:] or FAULTS:
        with tempfile.TemporaryDirectory(prefix="ccmac-faults-") as folder:
            faults = Faults(Path(folder))
            begun = time.perf_counter()
            try:
                right = getattr(faults, name)()
            except (InputError, ValueError, OSError, subprocess.SubprocessError) as error:
                right = False
                faults.said = f"{type(error).__name__}: {error}"
            said = " ".join(faults.said.split())[-160:]
            seconds = time.perf_counter() - begun
            word = "right" if right else "WRONG"
            print(f"{word}  {name} ({seconds:.0f} s): exit {faults.code}: {said}", flush=True)
            wrong += not right
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
