"""Cases of ``solve_bits`` and random ones, on all ranks and in one process: bits and bills.

The former take the graphs in turn: what all are made of is compared on more in ``equality``.
"""

from __future__ import annotations

import solve_bits
from beside import Case, differences
from random_cases import limited, spread

from ccmac import methods
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
BASELINES: tuple[methods.Method, ...] = (
    methods.CondatVu(),
    methods.Pdhg(),
    methods.Papc(),
    methods.Dpmm(reduction="R1"),
    methods.Dpmm(reduction="R2"),
    methods.TrackingAdmm(),
    methods.TrackingAdmm(reduction="R3"),
    methods.CoupledYarmoshik(reduction="R2"),
    methods.MixedYarmoshik(reduction="R3"),
    methods.CrossLbfgs(),
)


def listed() -> list[Case]:
    """Those of ``solve_bits``, and the baselines."""
    graphs = [solve_bits.network(graph) for graph in GRAPHS]
    found = []
    for k, name in enumerate(CASES):
        problem, options = solve_bits.case(name)
        found.append(Case(name, problem, graphs[k % 3], options))
    quadratic, _ = solve_bits.case("averaged")
    vertical, _ = solve_bits.case("vertical")
    for k, method in enumerate(BASELINES):
        problem = vertical if getattr(method, "reduction", None) in ("R2", "R3") else quadratic
        options = {"method": method, "max_iterations": 10}
        # The graph filters of these two are multiplied out in one process.
        fused = not method.name.endswith("yarmoshik")
        found.append(Case(str(method), problem, graphs[k % 3], options, fused=fused))
    return found


def main() -> None:
    cases = listed()
    ranks = MPI.COMM_WORLD.size
    cases += spread(max(5, ranks))
    cases += [case for case in limited() if case.problem.n >= ranks]
    different = differences(cases)
    if MPI.COMM_WORLD.rank == 0:
        print(f"equal {len(cases) - len(different)}, different {different}")


with guard():
    main()
