"""DC optimal power flow against Clarabel: rounds, averagings, cost, balances, prices.

    python benchmarks/dispatch.py [case30 case118 case300]

Every case as shipped and with ratings of 0.7 to 0.95 times the unconstrained flow on the quarter of
the lines with the largest flows, by buses and by ten areas. One line for each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import ccmac
from ccmac.ledger import PHASES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

CASES = ("case30", "case118", "case300")
FACTORS = (None, 0.95, 0.9, 0.8, 0.7)
HEAD = "case agents rating status iterations rounds cost imbalance overload prices seconds"


def main(names: list[str]) -> None:
    from power.reference import clarabel

    print(HEAD)
    for name in names:
        first = ccmac.power.dc_opf(name, areas=10)
        free = ccmac.solve(first.problem, first.network, tol=1e-8)
        for factor in FACTORS:
            ratings = None if factor is None else first.tightened(free, factor)
            right = None
            for areas in (10, None):
                case = ccmac.power.dc_opf(name, areas, ratings=ratings)
                begun = time.perf_counter()
                result = ccmac.solve(case.problem, case.network, tol=1e-8)
                seconds = time.perf_counter() - begun
                rounds = sum(result.ledger.of(phase)["rounds"] for phase in PHASES)
                told = [name, str(case.problem.n), str(factor), result.status,
                        str(result.iterations), str(rounds)]  # fmt: skip
                try:
                    right = clarabel(case) if right is None else right
                except AssertionError as error:
                    print(*told, f"Clarabel: {error}", flush=True)
                    continue
                if result.multipliers is not None:
                    cost, prices = right
                    told += [
                        f"{case.cost(result) / cost - 1:.1e}", f"{case.imbalance(result):.1e}",
                        f"{case.overload(result):.1e}",
                        f"{np.abs(case.prices(result) - prices).max():.1e}",
                    ]  # fmt: skip
                print(*told, f"{seconds:.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CASES))
