"""DC optimal power flow against Clarabel: averagings, rounds, cost, balances, hours, windows.

    python benchmarks/dispatch.py [--write] [PART ...]

Parts: case30, case118, case300 (each as shipped and with ratings of 0.7 to 0.95 times the
unconstrained flow on the quarter of the lines with the largest flows, on 5 or 2.5 % where that is
infeasible; by ten areas and by buses), day (24 hours of case118 with ramps, storage and reserve),
windows (24 windows of 4 hours, as shipped and with binding ratings, each also solved cold). Exit 1
where a limit of LIMITS is missed. ``--write`` puts the tables into docs/power.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ccmac
from ccmac.ledger import PHASES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

CASES = ("case30", "case118", "case300")
FACTORS = (None, 0.95, 0.9, 0.8, 0.7)
LIMITS = {"cost": 1e-6, "feasible": 1e-7, "averagings": 80, "buses": 1_000, "areas": 300}
STORES = {59: (50.0, 200.0), 80: (50.0, 200.0)}
MARK = "<!-- benchmarks/dispatch.py: {} -->\n"
HEADS = {
    "cases": "case | agents | ratings | status | averagings | rounds | cost, relative | "
    "imbalance, p.u. | overload, p.u. | CPU s",
    "day": "agents | averagings, 1 hour | rounds, 1 hour | averagings, 24 hours | rounds, 24 hours "
    "| ratio | cost, relative | imbalance, p.u. | CPU s",
    "windows": "ratings | cold rounds | warm rounds | largest warm / cold of the same window | "
    "imbalance, p.u.",
}


def spent(result: ccmac.Result, unit: str = "rounds") -> int:
    """All phases."""
    return int(sum(result.ledger.of(phase)[unit] for phase in PHASES))


def solved(case: Any) -> tuple[ccmac.Result, float]:
    """(the result at 1e-8, CPU seconds)."""
    begun = time.process_time()
    result = ccmac.solve(case.problem, case.network, tol=1e-8)
    return result, time.process_time() - begun


def against(case: Any) -> float | str:
    """Clarabel's cost, or its word where there is none."""
    from power.reference import clarabel

    try:
        return clarabel(case)[0]
    except AssertionError as error:
        return str(error).splitlines()[0]


def cases(name: str) -> Iterator[tuple[list[str], bool]]:
    """Rows of the first table, and whether the limits are kept."""
    first = ccmac.power.dc_opf(name, areas=10)
    free, _ = solved(first)
    for factor in FACTORS:
        for share in (0.25, 0.05, 0.025):
            ratings = None if factor is None else first.tightened(free, factor, share)
            right = against(ccmac.power.dc_opf(name, 10, ratings=ratings))
            for areas in (10, None):
                case = ccmac.power.dc_opf(name, areas, ratings=ratings)
                what = "as shipped" if factor is None else f"{factor} on {100 * share:g} %"
                yield _case(name, case, what, right, "areas" if areas else "buses")
            if not isinstance(right, str):
                break


def _case(name: str, case: Any, what: str, right: float | str, kind: str) -> tuple[list[str], bool]:
    result, seconds = solved(case)
    sums = spent(result, "averagings")
    rounds = spent(result)
    kept = sums <= LIMITS["averagings"] and (name != "case118" or rounds <= LIMITS[kind])
    row = [name, f"{case.problem.n} {kind}", what, result.status, f"{sums}", f"{rounds:,}"]
    if isinstance(right, str):
        same = result.status == "infeasible" and "infeasible" in right
        return [*row, f"Clarabel: {right}", "", "", f"{seconds:.1f}"], same and kept
    off = case.cost(result) / right - 1
    beyond = case.imbalance(result), case.overload(result)
    kept = kept and result.status == "optimal" and abs(off) <= LIMITS["cost"]
    row += [f"{off:.0e}", *(f"{v:.0e}" for v in beyond), f"{seconds:.1f}"]
    return row, kept and max(beyond) <= LIMITS["feasible"]


def day() -> Iterator[tuple[list[str], bool]]:
    """24 hours of case118, by areas and by buses, within 3 times the rounds of one."""
    for areas in (10, None):
        one, _ = solved(ccmac.power.dc_opf("case118", areas, reserve=0.05))
        case = ccmac.power.dc_opf(
            "case118", areas, hours=24, ramp=0.1, reserve=0.05, storage=STORES
        )
        result, seconds = solved(case)
        off = case.cost(result) / float(against(case)) - 1
        ratio = spent(result) / spent(one)
        feasible = max(case.imbalance(result), case.overload(result))
        yield (
            [
                f"{case.problem.n}",
                f"{spent(one, 'averagings')}",
                f"{spent(one)}",
                f"{spent(result, 'averagings')}",
                f"{spent(result)}",
                f"{ratio:.2f}",
                f"{off:.0e}",
                f"{feasible:.0e}",
                f"{seconds:.1f}",
            ],
            ratio <= 3 and abs(off) <= LIMITS["cost"] and feasible <= LIMITS["feasible"],
        )


def windows(steps: int = 24) -> Iterator[tuple[list[str], bool]]:
    """Each warm window at most a third of its own rounds when solved cold."""
    first = ccmac.power.dc_opf("case118", areas=10)
    free, _ = solved(first)
    for factor in FACTORS:
        ratings = None if factor is None else first.tightened(free, factor)
        case = ccmac.power.dc_opf(
            "case118", 10, hours=4, ramp=0.2, reserve=0.05, storage=STORES, ratings=ratings
        )
        cold = []
        warm = []
        off = 0.0
        load = np.resize(ccmac.power.DAY, steps + 4)
        for window in ccmac.power.rolling(case, steps, load=load):
            warm.append(spent(window.result))
            cold.append(spent(solved(window.case)[0]))
            off = max(off, window.case.imbalance(window.result))
        ratio = max(w / c for w, c in zip(warm[1:], cold[1:], strict=True))
        yield (
            [
                "as shipped" if factor is None else f"{factor} on 25 %",
                f"{min(cold)} to {max(cold)}",
                f"{min(warm[1:])} to {max(warm[1:])}, median {np.median(warm[1:]):.0f}",
                f"{ratio:.2f}",
                f"{off:.0e}",
            ],
            len(warm) == steps and ratio <= 1 / 3 and off <= LIMITS["feasible"],
        )


def main(parts: list[str], write: bool) -> int:
    missed = 0
    makers = {"cases": [lambda n=n: cases(n) for n in CASES if n in parts]}
    makers |= {k: [f] if k in parts else [] for k, f in (("day", day), ("windows", windows))}
    for table, rows_of in makers.items():
        head = HEADS[table]
        lines = [f"| {head} |", "|" + "---|" * len(head.split("|"))]
        for rows in rows_of:
            for row, kept in rows():
                missed += not kept
                lines.append(f"| {' | '.join(row)} |")
                print(*row, "" if kept else "MISSED", sep="  ", flush=True)
        if write and rows_of:
            put(table, "\n".join(lines) + "\n")
    print(f"{missed} missed")
    return int(missed > 0)


def put(name: str, text: str) -> None:
    """Between the two marks of that name in docs/power.md."""
    page = ROOT / "docs" / "power.md"
    mark = MARK.format(name)
    before, _, after = page.read_text().split(mark)
    page.write_text(f"{before}{mark}\n{text}\n{mark}{after}")


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "--write"]
    sys.exit(main(given or [*CASES, "day", "windows"], "--write" in sys.argv))
