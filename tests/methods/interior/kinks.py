"""Hinge losses with a matrix and maxima: ``python tests/methods/interior/kinks.py --count 20``.

Random problems of 50 unknowns (9 agents with 5 each, 5 shared), three coupled rows; solved to a
relative gap of 1e-6 and compared with Clarabel. Prints the averagings of all phases; exit code 1
where a value is off by more than 1e-6 or a run takes more than 120 averagings.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from adversarial.direct import averagings
from methods.interior.problems import reference, violation
from methods.interior.test_interior import kinked, solve

MOST = 120
TOL = 1e-6
FEASIBLE = 1e-7


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="of each kind")
    asked = parser.parse_args(arguments)
    wrong = 0
    for kind in ("hinge", "maximum"):
        counts = []
        errors = []
        for seed in range(asked.count):
            problem = kinked(np.random.default_rng([3, seed]), kind, n=9, q=5)
            _, value = reference(problem)
            result = solve(problem)
            counts.append(averagings(result))
            errors.append(abs(result.objective - value) / max(1.0, abs(value)))
            good = result.status == "optimal" and violation(problem, result) <= FEASIBLE
            wrong += not (good and errors[-1] <= TOL and counts[-1] <= MOST)
        print(
            f"{kind}: {asked.count} problems, averagings {min(counts)} to {max(counts)}, worst "
            f"relative error {max(errors):.1e}"
        )
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
