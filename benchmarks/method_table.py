"""The table of docs/methods-why.md: rounds to RelErr 1e-6 on vertical federated ridge regression.

    python benchmarks/method_table.py --json table.json [--cases a9a,mushrooms] [--methods ...]

Every sum and reduction is charged. Comparators run with the best of a few settings by full runs
against the reference (better than any tuner could know), cross-apapc and cross-cg as they come; a
setting is given up when it has made as many iterations as the best one before it. What is in the
JSON file is not run again. Needs the LIBSVM files (``ccmac data list``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import ccmac
from ccmac import vfl
from ccmac.methods.registry import parse
from ccmac.paper import data

CASES = {"a9a": 8, "mushrooms": 8, "w8a": 8, "a8a": 16}
LIMIT = 20_000


def each(key: str, values: tuple[float, ...], **options: Any) -> list[dict[str, Any]]:
    """One setting a value."""
    return [{**options, key: value} for value in values]


BALANCES = each("balance", (1.0, 0.5, 0.7, 1.4, 2.0))
POOLED: list[dict[str, Any]] = [{"reduction": "R2"}]
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "cross-apapc": [{}],
    "condat-vu": BALANCES,
    "pdhg": BALANCES,
    "papc": each("balance", (0.1, 0.05, 0.07, 0.15, 0.2, 0.3)),
    "joint-apapc": [{}],
    "coupled-yarmoshik": POOLED,
    "mixed-yarmoshik": POOLED,
    "cross-cg": [{}],
    "cross-lbfgs": [{}],
    "dpmm": each("penalty", (0.2, 0.15, 0.3, 0.5, 0.7), reduction="R2"),
    "tracking-admm": each("penalty", (0.1, 0.02, 0.03, 0.05, 0.07, 0.2, 0.3), reduction="R2"),
}
ARGMINS = ("cross-cg", "cross-lbfgs", "dpmm", "tracking-admm")


def instance(name: str) -> tuple[ccmac.Problem, ccmac.Network, np.ndarray]:
    """Ridge regression with lambda = 1e-2 on a ring, and its closed-form weights."""
    loaded = data.load(name)
    X = loaded.X
    y = loaded.y
    gram = (X.T @ X).toarray() / len(y) + 1e-2 * np.eye(X.shape[1])
    agents = CASES[name]
    problem = vfl.problem(X, y, agents)
    return problem, ccmac.Network.ring(agents), np.linalg.solve(gram, X.T @ y / len(y))


def best(name: str, method: str) -> dict[str, Any]:
    """The record of one method: its setting of fewest iterations, hence of fewest rounds."""
    problem, network, weights = instance(name)
    begun = time.perf_counter()
    limit = LIMIT
    found = {}
    for setting in SETTINGS[method]:
        result = ccmac.solve(
            problem,
            network,
            parse(method, setting),
            tol=1e-6,
            reference=weights,
            max_iterations=limit,
            progress=False,
        )
        if result.status == "optimal" and (not found or result.iterations < limit):
            limit = result.iterations
            solve = result.ledger.of("solve")
            setup = result.ledger.of("setup")
            found = {
                "setting": setting,
                "iterations": limit,
                "rounds": solve["rounds"],
                "setup": setup["rounds"],
                **{u: solve[u] for u in ("gradients", "proxes", "argmins", "bytes")},
                "products": sum(solve[u] for u in "ABCD"),
            }
    return {**found, "seconds": round(time.perf_counter() - begun, 1)}


def table(records: dict[str, dict[str, Any]], methods: list[str], cases: list[str]) -> str:
    """Methods down, data sets across: rounds of the solve (rounds of the setup), best setting."""
    lines = ["| method | " + " | ".join(cases) + " |", "|---" * (len(cases) + 1) + "|"]
    plain = [m for m in methods if m not in ARGMINS]
    local = [m for m in methods if m in ARGMINS]
    for method in [*plain, "", *local]:
        if not method:
            lines.append("| with local minimisations: |" + " |" * len(cases))
            continue
        cells = [cell(records[f"{case} {method}"]) for case in cases]
        lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(record: dict[str, Any]) -> str:
    """Rounds, setup rounds, and the setting."""
    if "rounds" not in record:
        return f"not in {LIMIT:,} iterations"
    said = ", ".join(f"{v}" for v in record["setting"].values())
    return f"{record['rounds']:,} ({record['setup']:,})" + (f" at {said}" if said else "")


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument(
        "--methods", default=",".join(m for m in SETTINGS if m in ccmac.available_methods())
    )
    parser.add_argument("--json", type=Path, default=None, help="records; continued if it exists")
    options = parser.parse_args()
    store: Path | None = options.json
    records = json.loads(store.read_text()) if store is not None and store.exists() else {}
    cases = options.cases.split(",")
    methods = options.methods.split(",")
    wanted = [(case, method) for case in cases for method in methods]
    for place, (case, method) in enumerate(wanted, 1):
        key = f"{case} {method}"
        if key not in records:
            records[key] = best(case, method)
            if store is not None:
                store.write_text(json.dumps(records, indent=1) + "\n")
        shown = cell(records[key])
        seconds = records[key]["seconds"]
        print(f"{place}/{len(wanted)} {key}: {shown}, {seconds} s", file=sys.stderr, flush=True)
    print(table(records, methods, cases))


if __name__ == "__main__":
    main()
