"""Many random problems with bounds, one line for each that is not right: make interior."""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np

import ccmac
from methods.interior.problems import make, violation

EXPECTED = {"solvable": "optimal", "infeasible": "infeasible", "unbounded": "unbounded"}


def main(first: int, last: int) -> int:
    """Returns the number of wrong answers."""
    wrong = 0
    iterations = []
    seen = Counter[str]()
    for seed in range(first, last):
        made = make(seed)
        kind = made.kind
        problem = made.problem
        value = made.value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ccmac.solve(problem, ccmac.Network.path(problem.n), "cross-ipm", 1e-6)
        right = result.status == EXPECTED[kind] and result.iterations <= 40
        if kind == "solvable":
            right = right and abs(result.objective - value) <= 1e-6 * max(1.0, abs(value))
            right = right and violation(problem, result) <= 1e-6
        seen[kind] += 1
        iterations.append(result.iterations)
        if not right:
            wrong += 1
            print(
                seed,
                kind,
                value,
                result.status,
                result.objective,
                result.iterations,
                result.residuals,
            )
    mean = np.mean(iterations)
    most = max(iterations)
    print(f"{dict(seen)}: {wrong} wrong; iterations {mean:.1f}, at most {most}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
