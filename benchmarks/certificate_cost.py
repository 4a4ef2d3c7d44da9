"""What a certified tolerance costs: rounds by phase, the bound, and the true error beside it.

    python benchmarks/certificate_cost.py [--tol 1e-6]

Vertical federated ridge regression on a ring of 8, no reference given: the run ends by its own
certificate. The true error is taken afterwards from the closed form. The table is in
docs/realizations.md.
"""

from __future__ import annotations

import argparse

import numpy as np

import ccmac
from ccmac import vfl
from ccmac.paper import data

CASES = (("a9a", 1), ("a9a", 3), ("a9a", 8), ("mushrooms", 1), ("w8a", 1))
METHODS = ("cross-apapc", "cross-cg")


def row(name: str, chi: float, method: str, tol: float) -> str:
    """One line of the table."""
    found = data.load(name, fallback=True)
    X = found.X
    y = found.y
    problem = vfl.problem(X, y, 8, shares=("cross_factor", chi))
    result = ccmac.solve(problem, ccmac.Network.ring(8), method=method, tol=tol, progress=False)
    weights = np.linalg.solve(
        (X.T @ X).toarray() / len(y) + 1e-2 * np.eye(X.shape[1]), X.T @ y / len(y)
    )
    gap = np.concatenate(problem.blocks_of(weights)) - np.concatenate(result.x)
    scores = X @ weights / problem.prediction_scale - result.z
    error = float(np.sqrt(gap @ gap + scores @ scores))
    rounds = [result.ledger.of(phase)["rounds"] for phase in ("setup", "solve", "monitor")]
    cells = [found.name, f"{chi:g}", method, str(result.iterations), *map(str, rounds)]
    cells += [f"{sum(rounds)}", f"{result.error_bound:.1e}", f"{error:.1e}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tol", type=float, default=1e-6)
    tol = parser.parse_args().tol
    print(
        "| data | chi | method | iterations | setup | solve | monitor | all | bound | true error |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, chi in CASES:
        for method in METHODS:
            print(row(name, chi, method, tol), flush=True)


if __name__ == "__main__":
    main()
