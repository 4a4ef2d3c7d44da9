"""The table of docs/methods.md: rounds to RelErr 1e-6 on vertical federated ridge regression.

    python benchmarks/method_table.py [--cases a9a,mushrooms] [--methods ...] [--seconds 120]

Every sum and reduction is charged. Baselines run with the best of a few settings by full runs
against the reference (better than any tuner could know), cross-apapc and cross-cg as they come.
Needs the LIBSVM files (``ccmac data list``). A run that passes the time limit is printed as such.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import ccmac
from ccmac import data, vfl

CASES = {"a9a": 8, "mushrooms": 8, "w8a": 8, "a8a": 16}
BALANCES: list[dict[str, Any]] = [{"pinned": {"balance": b}} for b in (0.5, 1.0, 2.0)]
PENALTIES: list[dict[str, Any]] = [
    {"reduction": "R2", "pinned": {"penalty": p}} for p in (0.1, 0.15, 0.2, 0.4, 0.7)
]
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "cross-apapc": [{}],
    "cross-cg": [{}],
    "condat-vu": BALANCES,
    "pdhg": BALANCES,
    "papc": [{"pinned": {"balance": b}} for b in (0.1, 0.2, 0.3)],
    "joint-apapc": [{}],
    "dpmm": PENALTIES,
    "tracking-admm": PENALTIES,
    "coupled-yarmoshik": [{"reduction": "R2"}],
    "mixed-yarmoshik": [{"reduction": "R2"}],
}


def instance(name: str) -> tuple[ccmac.Problem, ccmac.Network, np.ndarray]:
    """Ridge regression with lambda = 1e-2 on a ring, and its closed-form weights."""
    loaded = data.load(name)
    X, y = loaded.X, loaded.y
    gram = (X.T @ X).toarray() / len(y) + 1e-2 * np.eye(X.shape[1])
    agents = CASES[name]
    problem = vfl.problem(X, y, agents)
    return problem, ccmac.Network.ring(agents), np.linalg.solve(gram, X.T @ y / len(y))


def best(name: str, method: str, seconds: float) -> str:
    """The markdown row of one method: its setting of fewest rounds."""
    problem, network, weights = instance(name)
    rows = []
    for setting in SETTINGS[method]:
        result = ccmac.solve(
            problem, network, method=method, tol=1e-6, reference=weights,
            max_seconds=seconds, max_iterations=20_000, **setting,
        )  # fmt: skip
        done = result.status == "optimal"
        rows.append((not done, result.ledger["rounds"], setting, result))
    failed, rounds, setting, result = min(rows, key=lambda row: row[:2])
    ledger = result.ledger
    products = sum(ledger[unit] for unit in "ABCD")
    local = ", ".join(f"{ledger[u]:,} {u}" for u in ("gradients", "argmins", "proxes") if ledger[u])
    shown = f"> {rounds:,} (stopped at {result.relative_error:.0e})" if failed else f"{rounds:,}"
    setup = ledger.of("setup")["rounds"]
    used = setting.get("pinned", {}) | {k: v for k, v in setting.items() if k != "pinned"}
    said = ", ".join(f"{k} {v}" for k, v in used.items()) or "as it comes"
    return f"| {name} | {method} | {said} | {local} | {products:,} | {shown} | {setup:,} |"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--methods", default=",".join(SETTINGS))
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    print("| data | method | setting | local work | products | rounds | setup rounds |")
    print("|---|---|---|---|---|---|---|")
    for name in options.cases.split(","):
        for method in options.methods.split(","):
            print(best(name, method, options.seconds), flush=True)


if __name__ == "__main__":
    main()
