"""Every case of ``solve_bits`` on every graph, on all ranks and in one process: bits and bills.

What is there to be compared with takes the graphs in turn. The certified lift, with thousands of
rounds a step, is on one graph here and on rings in ``random_bits``.
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
        graphs = GRAPHS if name in CASES else GRAPHS[k % 3 :][:1]
        for graph in graphs if name != "certified" else ["regular"]:
            problem, options = case(name)
            # The certified lift is multiplied out in one process unless told not to.
            listed.append(
                Case(
                    f"{name} on {graph}",
                    problem,
                    solve_bits.network(graph),
                    options,
                    fused=name != "certified",
                )
            )
    different = differences(listed)
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {len(listed) - len(different)}, different {different}")


with guard():
    main()
