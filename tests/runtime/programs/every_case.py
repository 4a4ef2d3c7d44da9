"""Cases of ``solve_bits`` and random ones, on all ranks and in one process: bits and bills.

The former take the graphs in turn: what all are made of is compared on more in ``equality``.
"""

from __future__ import annotations

from typing import Any

import solve_bits
from beside import Case, differences
from random_cases import limited, more

import ccmac
from ccmac.runtime.mpi import MPI, guard

CASES = (
    "averaged",
    "joint",
    "vertical",
    "cg",
    "sketched",
    "convex",
    "nonsmooth",
    "interior",
    "newton",
)
GRAPHS = ("ring", "grid", "regular")
BASELINES = ("condat-vu", "pdhg", "papc", "dpmm", "tracking-admm", "cross-lbfgs")


def case(name: str) -> tuple[ccmac.Problem, dict[str, Any]]:
    """Problem and options."""
    if name not in BASELINES:
        return solve_bits.case(name)
    problem, _ = solve_bits.case("averaged")
    return problem, {"method": name, "max_iterations": 40}


def main() -> None:
    listed = []
    for k, name in enumerate((*CASES, *BASELINES)):
        graph = GRAPHS[k % 3]
        problem, options = case(name)
        listed.append(Case(f"{name} on {graph}", problem, solve_bits.network(graph), options))
    ranks = MPI.COMM_WORLD.size
    listed += more(max(5, ranks))
    listed += [case for case in limited() if case.problem.n >= ranks]
    different = differences(listed)
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {len(listed) - len(different)}, different {different}")


with guard():
    main()
