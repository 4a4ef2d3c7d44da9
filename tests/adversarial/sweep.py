"""Thousands of adversarial problems: ``python tests/adversarial/sweep.py --count 2000 --seed 0``.

Exit code 1 when any solve says something false, when fewer than 97 % of the easy problems end
optimal, or when a contradiction of 1e-4 or more is not proved.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adversarial import infeasible, suite
from adversarial.judge import Verdict, judge
from adversarial.summary import SHARE, false_words, summarise, table

Task = tuple[str, int, str, dict[str, Any]]


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """(family, seed, method, limits), the families in turn."""
    names = options.families.split(",") if options.families else list(suite.FAMILIES)
    limits = {"max_seconds": options.max_seconds, "limit": options.patience}
    limits["averaging"] = options.averaging
    if options.max_iterations:
        limits["max_iterations"] = options.max_iterations
    for k in range(options.count):
        seed = options.seed + k // len(names)
        for method in options.methods.split(","):
            yield names[k % len(names)], seed, method, limits


def run(task: Task) -> Verdict:
    """One solve, judged."""
    family, seed, method, limits = task
    return judge(suite.make(family, seed), method, **limits)


def sweep(listed: list[Task], jobs: int) -> Iterator[Verdict]:
    """All solves, in any order."""
    if jobs == 1:
        yield from map(run, listed)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, listed, chunksize=1)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="problems, over all families")
    parser.add_argument("--seed", type=int, default=1000, help="first seed of every family")
    parser.add_argument("--methods", default="auto", help="names, parted by commas")
    parser.add_argument("--averaging", default="auto")
    parser.add_argument("--families", default="", help="names, parted by commas (default: all)")
    parser.add_argument("--max-iterations", type=int, default=0)
    parser.add_argument("--max-seconds", type=float, default=10.0, help="of one solve")
    parser.add_argument("--patience", type=float, default=60.0, help="then a solve is given up")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="file for the summary and every faulty verdict")
    options = parser.parse_args(arguments)
    listed = list(tasks(options))
    verdicts = []
    begun = time.perf_counter()
    told = 0.0
    for verdict in sweep(listed, options.jobs):
        verdicts.append(verdict)
        spent = time.perf_counter() - begun
        if spent - told > 10:
            told = spent
            words = false_words(verdicts)
            print(f"{len(verdicts)}/{len(listed)}, {words} false, {spent:.0f} s", file=sys.stderr)
    summary = summarise(verdicts)
    print(table(summary))
    if options.json:
        faulty = [v.as_dict() for v in verdicts if v.faults]
        record = {"options": vars(options), "summary": summary, "faulty": faulty}
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        Path(options.json).write_text(json.dumps(record, indent=1), encoding="utf-8")
    return int(not good(verdicts))


def good(verdicts: list[Verdict]) -> bool:
    """Whether nothing false was said and enough was reached."""
    easy = [v for v in verdicts if v.easy]
    reached = sum(v.status == "optimal" for v in easy) >= SHARE * len(easy)
    unproved = any(
        "MISSED INFEASIBLE" in v.faults and v.family in infeasible.GENERATORS for v in verdicts
    )
    return not false_words(verdicts) and reached and not unproved


if __name__ == "__main__":
    sys.exit(main())
