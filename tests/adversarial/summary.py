"""Verdicts counted by family and method.

The median of bound / error is taken twice: over easy problems with errors above 1e-13 (``ratio``),
and over all solves with a finite bound and an error that is not zero, rounding included (``all``).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any

from adversarial.judge import FALSE_WORDS, SHORTCOMINGS, Verdict

SHOWN = 12  # failing seeds listed for each fault
SHARE = 0.97  # of the easy problems that must end optimal
RATIO = 50.0  # median of bound / error, at most


def summarise(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Counts for each (family, method), totals, and the seeds that failed."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    everything = list(verdicts)
    for verdict in everything:
        groups.setdefault((verdict.family, verdict.method), []).append(verdict)
    rows = [
        {"family": family, "method": method, **counts(group)}
        for (family, method), group in sorted(groups.items())
    ]
    return {"rows": rows, "total": counts(everything)}


def counts(group: list[Verdict]) -> dict[str, Any]:
    """Counts of one group."""
    faults = Counter(fault for v in group for fault in v.faults)
    seeds: dict[str, list[int]] = {}
    for v in group:
        for fault in v.faults:
            seeds.setdefault(fault, []).append(v.seed)
    easy = [v for v in group if v.easy]
    ratios = [v.ratio for v in easy if not math.isnan(v.ratio)]
    whole = [v.bound / v.error for v in group if math.isfinite(v.bound) and v.error > 0]
    return {
        "problems": len(group),
        "statuses": dict(Counter(v.status for v in group)),
        "faults": {k: faults[k] for k in (*FALSE_WORDS, *SHORTCOMINGS) if faults[k]},
        "seeds": {k: sorted(found) for k, found in seeds.items()},
        "easy": len(easy),
        "easy_optimal": sum(v.status == "optimal" for v in easy),
        "median_ratio": statistics.median(ratios) if ratios else math.nan,
        "median_of_all": statistics.median(whole) if whole else math.nan,
        "seconds": sum(v.seconds for v in group),
    }


def false_words(verdicts: Iterable[Verdict]) -> int:
    """How many solves said something false."""
    return sum(bool(v.false) for v in verdicts)


def table(summary: dict[str, Any]) -> str:
    """For people."""
    lines = []
    for row in [*summary["rows"], {"family": "ALL", "method": "", **summary["total"]}]:
        states = " ".join(f"{k} {v}" for k, v in sorted(row["statuses"].items()))
        lines.append(
            f"{row['family']:22} {row['method']:12} {row['problems']:5}  {states}; easy "
            f"{row['easy_optimal']}/{row['easy']}, ratio {row['median_ratio']:.3g} "
            f"(all {row['median_of_all']:.3g}), "
            f"{row['seconds']:.0f} s"
        )
        if row["family"] == "ALL":
            lines += [f"    {fault:18} {count:5}" for fault, count in row["faults"].items()]
            continue
        for fault, count in row["faults"].items():
            shown = ",".join(map(str, row["seeds"][fault][:SHOWN]))
            more = ",..." if count > SHOWN else ""
            lines.append(f"    {fault:18} {count:5}  seeds {shown}{more}")
    return "\n".join(lines)
