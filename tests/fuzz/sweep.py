"""Fuzzing, bounded: inputs of every target in worker processes with limits of time and memory.

    python tests/fuzz/sweep.py --count 3000 --jobs 2           or: make fuzz COUNT=3000
    python tests/fuzz/sweep.py --only agent:1234               one input again, with its command

Input k of a target is the same everywhere. A worker may use one gigabyte more than it has after
its imports; one that dies ends the sweep.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

from fuzz.judge import workshop  # noqa: E402

from fuzz.inputs import TARGETS  # noqa: E402  # isort: skip


def batch(names: list[tuple[str, int]]) -> list[tuple[str, int, int, str, float]]:
    """(target, number, exit code, fault, seconds) of every input."""
    found = []
    with workshop() as attempt:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), hard))
        for target, number in names:
            begun = time.perf_counter()
            _, code, fault = attempt(target, number)
            found.append((target, number, code, fault, time.perf_counter() - begun))
            if fault:
                print(f"--- {target}:{number}\n{fault}", flush=True)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Bounded fuzzing of everything that is read.")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=list(TARGETS))
    parser.add_argument("--only", metavar="TARGET:NUMBER", help="one input again")
    asked = parser.parse_args()
    if asked.only:
        target, _, number = asked.only.partition(":")
        with workshop() as attempt:
            words, code, fault = attempt(target, int(number))
        print(f"{words}\nexit code {code}\n{fault}")
        return int(bool(fault))
    count = len(asked.target)
    names = [(asked.target[k % count], asked.first + k // count) for k in range(asked.count)]
    batches = [names[k : k + 120] for k in range(0, len(names), 120)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        reports = [report for found in pool.map(batch, batches) for report in found]
    print(f"{'target':<12}{'inputs':>8}{'accepted':>10}{'refused':>9}{'faults':>8}{'slowest':>9}")
    for target in asked.target:
        own = [r for r in reports if r[0] == target]
        ends = Counter("faults" if r[3] else "refused" if r[2] == 2 else "accepted" for r in own)
        counts = f"{len(own):>8}{ends['accepted']:>10}{ends['refused']:>9}{ends['faults']:>8}"
        print(f"{target:<12}{counts}{max((r[4] for r in own), default=0.0):>8.1f}s")
    faults = sum(bool(r[3]) for r in reports)
    print(f"{len(reports)} inputs, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
