"""Every case of ``solve_bits``, on all ranks and in one process: bits and bills.

They take the graphs in turn: what all are made of is compared on eight graphs in ``equality``.
"""

from __future__ import annotations

from typing import Any

import solve_bits
from beside import Case, differences

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
    "certified",
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
        # The certified lift is multiplied out in one process unless told not to.
        fused = name != "certified"
        where = solve_bits.network(graph)
        listed.append(Case(f"{name} on {graph}", problem, where, options, fused=fused))
    different = differences(listed)
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {len(listed) - len(different)}, different {different}")


with guard():
    main()
