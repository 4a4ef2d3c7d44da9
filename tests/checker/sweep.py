"""Thousands of solves, each claim judged by ccmac-check: ``python tests/checker/sweep.py 0 500``.

Exit code 1 where a claim of ``optimal``, ``infeasible`` or ``unbounded`` is not confirmed, or where
more than 3 % of them are not checked.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "checker"))

import ccmac_check

import ccmac
from ccmac.errors import InputError, MethodRefused

CLAIMS = ("optimal", "infeasible", "unbounded")
SHARE = 0.03  # of claims that may stay unchecked


def judged(problem: ccmac.Problem, result: ccmac.Result) -> tuple[str, str]:
    """(confirmed, not confirmed, not checked or bad input; in words)."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            problem.save(folder / "problem")
        except InputError as refusal:  # operators and Custom objectives
            return "not checked", f"the problem is code: {str(refusal)[:60]}"
        result.save(folder / "result")
        return verdict(folder / "problem", folder / "result")


def verdict(problem: Path, result: Path) -> tuple[str, str]:
    """The checker's status and words."""
    try:
        return "confirmed", ccmac_check.check(problem, result)
    except ccmac_check.NotConfirmed as reason:
        return "not confirmed", str(reason)
    except ccmac_check.NotChecked as reason:
        return "not checked", str(reason)
    except ccmac_check.BadInput as reason:
        return "bad input", str(reason)


def adversarial(first: int, last: int) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """The families of tests/adversarial in turn."""
    from adversarial import suite

    names = list(suite.FAMILIES)
    for k in range(first, last):
        case = suite.make(names[k % len(names)], 1000 + k // len(names))
        options = {"tol": case.tol, "max_seconds": 10.0}
        yield f"{case.family} {case.seed}", case.draft.problem(), case.network, options


def interior(first: int, last: int) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Random problems with bounds, solvable or not."""
    from methods.interior.problems import make

    for seed in range(first, last):
        problem = make(seed).problem
        network = ccmac.Network.path(problem.n)
        yield f"interior {seed}", problem, network, {"method": "cross-ipm"}


def _ring(number: int, frame: object) -> None:
    raise TimeoutError


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--source", default="adversarial", choices=["adversarial", "interior"])
    options = parser.parse_args(arguments)
    source = adversarial if options.source == "adversarial" else interior
    signal.signal(signal.SIGALRM, _ring)
    statuses = Counter[str]()
    words = Counter[str]()
    for name, problem, network, how in source(options.first, options.last):
        signal.alarm(60)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = ccmac.solve(problem, network, **how)
            statuses[result.status] += 1
            if result.status not in CLAIMS:
                continue
            status, reason = judged(problem, result)
        except (TimeoutError, InputError, MethodRefused) as error:
            statuses[type(error).__name__] += 1
            continue
        finally:
            signal.alarm(0)
        words[status] += 1
        if status != "confirmed":
            print(f"{name}, {result.status}: {status}: {reason}", flush=True)
    count = words.total()
    print(f"{dict(statuses)}; of {count} claims {dict(words)}")
    bad = words["not confirmed"] + words["bad input"]
    return int(bad > 0 or words["not checked"] > SHARE * count)


if __name__ == "__main__":
    sys.exit(main())
