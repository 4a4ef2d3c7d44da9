"""The table of docs/nonsmooth.md: rounds until a relative gap of 1e-6 is proved.

    python benchmarks/gap_rounds.py [--data a9a mushrooms] [--problems lasso "elastic net" SVM]
                                    [--method auto]

Lasso (l1 = 1e-3), elastic net (l1 = 1e-3, ridge 1e-2) and hinge-SVM (ridge 1e-2), vertically split
over a ring of 8: rounds of all phases, steps, gap over max(1, |F|), megabytes sent by an agent, CPU
seconds and the largest memory of the process so far. ``--method cross-sliding`` gives the column to
compare with (minutes to hours).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import ccmac
from ccmac import vfl
from ccmac.paper import data

PROBLEMS = {
    "lasso": {"loss": "squared", "regularization": 0.0, "l1": 1e-3},
    "elastic net": {"loss": "squared", "regularization": 1e-2, "l1": 1e-3},
    "SVM": {"loss": "hinge", "regularization": 1e-2, "l1": 0.0},
}
TOL = 1e-6


def main(arguments: list[str]) -> int:
    """Prints the table; 1 where a gap was not proved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["mushrooms", "a9a"])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--method", default="auto")
    asked = parser.parse_args(arguments)
    missed = 0
    print("| data | problem | method | rounds | steps | gap | MB | CPU s | memory, MB |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for name in asked.data:
        found = data.load(name)
        for kind in asked.problems:
            begun = time.process_time()
            problem = vfl.problem(found.X, found.y, 8, **PROBLEMS[kind])
            result = ccmac.solve(problem, "ring", asked.method, TOL)
            spent = time.process_time() - begun
            gap = result.certificates.get("gap", float("nan")) / max(1.0, abs(result.objective))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            missed += result.status != "optimal"
            assert result.plan is not None
            print(
                f"| {name} | {kind} | {result.plan.method} | {result.ledger.total('rounds'):,} "
                f"| {result.iterations} | {gap:.1e} | {result.ledger.total('bytes') / 1e6:.1f} "
                f"| {spent:.0f} | {memory:.0f} |",
                flush=True,
            )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
