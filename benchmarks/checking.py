"""What it costs to check a result, beside solving it.

    python benchmarks/checking.py [GRID.m] [--write]

CPU seconds of ``ccmac.solve`` and of ``ccmac-check``, for ridge regression on a9a among 8 parties
and for a grid in 10 areas (case300, or the file given; the page has the 1,354 buses
of PGLib's ``pglib_opf_case1354_pegase.m``). ``--write`` puts the table there. Exit code 1 where a
result is not confirmed, or where checking takes more than 30 times the CPU of the solve.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ccmac_check

import ccmac
from ccmac.paper import data

MOST = 30.0
PAGE = Path(__file__).parents[1] / "docs" / "do-not-believe-us.md"
MARK = "<!-- benchmarks/checking.py -->\n"
HEAD = "| problem | solve, CPU s | check, CPU s | ratio |\n|---|---:|---:|---:|\n"


def confirmed(problem: ccmac.Problem, result: ccmac.Result) -> tuple[str, str, float]:
    """The checker's word, why, and its CPU seconds."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        problem.save(folder / "problem")
        result.save(folder / "result")
        begun = time.process_time()
        word, why = ccmac_check.check(folder / "problem", folder / "result")
        return word, why, time.process_time() - begun


def row(name: str, problem: ccmac.Problem, network: Any) -> tuple[str, bool]:
    """A line of the table, and whether it is as it should be."""
    begun = time.process_time()
    result = ccmac.solve(problem, network, progress=False)
    spent = time.process_time() - begun
    word, why, checked = confirmed(problem, result)
    print(f"{name}: {word}: {why}")
    good = word == "confirmed" and checked <= MOST * spent
    return f"| {name} | {spent:.1f} | {checked:.1f} | {checked / spent:.1f} |\n", good


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("grid", nargs="?", default="case300")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    case = ccmac.power.dc_opf(asked.grid, areas=10)
    found = data.load("a9a", fallback=True)
    rows = [
        row(f"{Path(asked.grid).stem}, 10 areas", case.problem, case.network),
        row(f"ridge on {found.name}, 8 parties", ccmac.vfl.problem(found.X, found.y, 8), "ring"),
    ]
    table = HEAD + "".join(line for line, _ in rows)
    print(table)
    if asked.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
        after = rest.partition(MARK)[2]
        PAGE.write_text(before + MARK + "\n" + table + "\n" + MARK + after, encoding="utf-8")
    return int(not all(good for _, good in rows))


if __name__ == "__main__":
    sys.exit(main())
