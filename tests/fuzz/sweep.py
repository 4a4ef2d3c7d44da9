"""Fuzzing, bounded: inputs of every target in worker processes with limits of time and memory.

    python tests/fuzz/sweep.py --count 10000 --jobs 2          or: make fuzz COUNT=10000
    python tests/fuzz/sweep.py --only agent:1234               one input again, with its command

Input k of a target is the same everywhere. A worker may use one gigabyte more than it has after
its imports; one that dies or hangs is counted as a fault of the input it was working on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

GIGABYTE = 1 << 30
HANGING = 150.0  # seconds without a word from a worker
FIRST = [
    "problem",
    "agent",
    "numbers",
    "network",
    "suite",
    "svmlight",
    "checkpoint",
    "record",
    "warm",
    "options",
    "owner",
]
OTHERS = ["layout", "sparse", "listing", "resumed", "zipped", "edges", "odd_file", "words", "party"]
THIRDS = ["owned", "table", "folder", "parts", "styled", "lines", "spelled"]
TRIED = [*FIRST, *OTHERS, *THIRDS]


def inputs(count: int, first: int, targets: list[str]) -> list[tuple[str, int]]:
    """``count`` inputs, dealt evenly to the targets."""
    return [(targets[k % len(targets)], first + k // len(targets)) for k in range(count)]


def work(names: list[tuple[str, int]]) -> None:
    """A worker: one JSON line before each input and one after it."""
    from fuzz.judge import workshop

    talk = os.fdopen(os.dup(1), "w", buffering=1)
    with workshop() as attempt:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + GIGABYTE, size + GIGABYTE))
        for target, number in names:
            print(json.dumps([target, number]), file=talk)
            begun = time.perf_counter()
            found = attempt(target, number)
            spent = time.perf_counter() - begun
            print(json.dumps([target, number, found.code, found.fault, spent]), file=talk)


class Worker:
    """A process and the inputs that it has left."""

    def __init__(self, names: list[tuple[str, int]], seconds: float) -> None:
        self.left, self.now, self.heard = names, None, time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(names))
        self.process.stdin.close()

    def line(self) -> list[Any] | None:
        """What it says next; None at its end."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        self.heard = time.monotonic()
        return json.loads(text) if text else None


def sweep(names: list[tuple[str, int]], jobs: int, seconds: float) -> list[list[Any]]:
    """Reports [target, number, code, fault, seconds] of all inputs that time allowed."""
    begun = time.monotonic()
    reports = []
    waiting = [names[k::jobs] for k in range(jobs)]
    chooser = selectors.DefaultSelector()

    def start(left: list[tuple[str, int]]) -> None:
        if left and time.monotonic() - begun < seconds:
            worker = Worker(left, seconds)
            chooser.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def end(worker: Worker, fault: str) -> None:
        chooser.unregister(worker.process.stdout)
        worker.process.kill()
        worker.process.wait()
        if worker.now is not None:
            reports.append([*worker.now, -3, fault, 0.0])
            show(reports[-1])
        start(worker.left)

    for left in waiting:
        start(left)
    while chooser.get_map():
        for key, _ in chooser.select(timeout=5.0):
            worker = key.data
            said = worker.line()
            if said is None:
                worker.left = worker.left if worker.now else []
                end(worker, "the worker died")
            elif len(said) == 2:
                worker.now = said
                worker.left = worker.left[1:]
            else:
                worker.now = None
                reports.append(said)
                show(said)
        for key in list(chooser.get_map().values()):
            worker = key.data
            if time.monotonic() - worker.heard > HANGING:
                end(worker, "the worker hung")
            elif time.monotonic() - begun > seconds and worker.now is None:
                worker.left = []
                end(worker, "")
    return reports


def show(report: list[Any]) -> None:
    """A fault, as it is found."""
    target, number, _, fault, _ = report
    if fault:
        print(f"--- {target}:{number}\n{fault}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Bounded fuzzing of everything that is read.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=7200.0, help="no new input after that")
    parser.add_argument("--target", choices=TRIED, nargs="+", default=TRIED, help="only these")
    parser.add_argument("--only", metavar="TARGET:NUMBER", help="one input again")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        work([(target, number) for target, number in json.load(sys.stdin)])
        return 0
    if asked.only:
        from fuzz.judge import workshop

        target, _, number = asked.only.partition(":")
        with workshop() as attempt:
            found = attempt(target, int(number))
        print(f"{found.words}\nexit code {found.code}\n{found.fault}")
        return int(bool(found.fault))
    names = inputs(asked.count, asked.first, asked.target)
    reports = sweep(names, asked.jobs, asked.seconds)
    print(f"{'target':<12}{'inputs':>8}{'accepted':>10}{'refused':>9}{'faults':>8}{'slowest':>9}")
    for target in asked.target:
        own = [r for r in reports if r[0] == target]
        ends = Counter("faults" if r[3] else "refused" if r[2] == 2 else "accepted" for r in own)
        slowest = max((r[4] for r in own), default=0.0)
        counts = f"{len(own):>8}{ends['accepted']:>10}{ends['refused']:>9}{ends['faults']:>8}"
        print(f"{target:<12}{counts}{slowest:>8.1f}s")
    faults = sum(bool(r[3]) for r in reports)
    print(f"{len(reports)} of {len(names)} inputs tried, {faults} faults")
    return int(faults > 0 or len(reports) < len(names))


if __name__ == "__main__":
    sys.exit(main())
