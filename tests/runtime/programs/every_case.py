"""Every case of ``solve_bits`` on every graph, on all ranks and in one process: bits and bills."""

from __future__ import annotations

from typing import Any

import solve_bits

import ccmac
from ccmac.runtime.mpi import MPI, guard

CASES = (
    "averaged", "joint", "vertical", "cg", "sketched", "convex", "nonsmooth", "interior",
    "certified",
)  # fmt: skip
BASELINES = ("condat-vu", "pdhg", "papc", "dpmm", "tracking-admm", "cross-lbfgs")


def case(name: str) -> tuple[ccmac.Problem, dict[str, Any]]:
    """Problem and options."""
    if name not in BASELINES:
        return solve_bits.case(name)
    problem, _ = solve_bits.case("averaged")
    return problem, {"method": name, "max_iterations": 40}


def main() -> None:
    equal, different = 0, []
    for name in (*CASES, *BASELINES):
        for graph in ("ring", "grid", "regular"):
            problem, options = case(name)
            network = solve_bits.network(graph)
            here = ccmac.solve(problem, network, runtime="mpi", **options)
            # The certified lift is multiplied out in one process unless told not to.
            alone = ccmac.InProcess(network, fused=name != "certified")
            whole = ccmac.solve(problem, runtime=alone, **options)
            mine = zip(here.x, whole.x[here.agents.start : here.agents.stop], strict=True)
            same = (
                here.z.tobytes() == whole.z.tobytes()
                and all(x.tobytes() == y.tobytes() for x, y in mine)
                and here.ledger.as_dict() == whole.ledger.as_dict()
                and (here.status, here.iterations) == (whole.status, whole.iterations)
            )
            if MPI.COMM_WORLD.allreduce(int(same), MPI.MIN):
                equal += 1
            else:
                different.append(f"{name} on {graph}")
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {equal}, different {different}")


with guard():
    main()
