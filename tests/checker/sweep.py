"""Thousands of solves, each claim judged by ccmac-check alone.

python tests/checker/sweep.py adversarial|interior|conic [--first 0] [--count 500] [--jobs 2]

Exit code 1 where a claim is not confirmed, where more than 3 % of them are not checked, or where
more than 3 % of the problems do not end with the status that they were made to have.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checker"))

import ccmac
from checker.judge import Said, judge, said

SHARE = 0.03
PATIENCE = 60  # seconds
MADE = {"solvable": "optimal"}
Outcome = tuple[str, str, Said]


def adversarial(k: int) -> Outcome:
    """The families of tests/adversarial in turn; contradictions may be too small to count."""
    from adversarial import suite

    family = list(suite.FAMILIES)[k % len(suite.FAMILIES)]
    case = suite.make(family, 1000 + k // len(suite.FAMILIES))
    return f"{family} {case.seed}", "", judge(case, max_seconds=10.0)


def interior(k: int) -> Outcome:
    """Random problems with bounds."""
    from methods.interior.problems import make

    made = make(k)
    path = ccmac.Network.path(made.problem.n)
    return f"interior {k}", MADE.get(made.kind, made.kind), said(made.problem, path, "cross-ipm")


def conic(k: int) -> Outcome:
    """Random problems with cones."""
    from cones.families import drawn

    status, problem = drawn(k)
    return f"conic {k}", status, said(problem, "complete", tol=1e-7)


SOURCES = {"adversarial": adversarial, "interior": interior, "conic": conic}


def outcome(task: tuple[str, int]) -> Outcome:
    """One problem, given up after a while."""

    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    source, k = task
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        name, status, found = SOURCES[source](k)
    except TimeoutError:
        return f"{source} {k}", "", Said("no answer")
    finally:
        signal.alarm(0)
    found.result = None
    return name, status, found


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    tasks = [(asked.source, k) for k in range(asked.first, asked.first + asked.count)]
    seen = Counter[str]()
    words = Counter[str]()
    missed = 0
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.jobs, mp_context=spawn) as pool:
        for name, status, found in pool.map(outcome, tasks):
            seen[found.status] += 1
            words[found.word] += bool(found.word)
            missed += bool(status) and status != found.status
            if found.word not in ("", "confirmed") or (status and status != found.status):
                print(f"{name}, {status}: {found.status} {found.word}: {found.why}", flush=True)
    count = words.total()
    print(f"{dict(seen)}; of {count} claims {dict(words)}; {missed} missed")
    false = words["not confirmed"] + words["bad input"]
    many = words["not checked"] > SHARE * count or missed > SHARE * asked.count
    return int(false > 0 or many)


if __name__ == "__main__":
    sys.exit(main())
