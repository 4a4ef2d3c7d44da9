"""A run whose coupled rows are summed among few, begun on all ranks and ended in one process.

few_resumed.py FOLDER
"""

from __future__ import annotations

import sys

import solve_bits

import ccmac
from ccmac.runtime import journey
from ccmac.runtime.mpi import MPI, guard

journey.UNTOLD = 1e6  # sums that concern nobody here are not used


def solved(iterations: int, **options: object) -> ccmac.Result:
    problem, settings = solve_bits.case("few")
    network = solve_bits.network("ring")
    settings |= {"max_iterations": iterations, **options}
    return ccmac.solve(problem, network, **settings)


def main(folder: str) -> None:
    saved = {"checkpoint": {"path": folder, "every": 10}}
    begun = solved(20, runtime="mpi", **saved)
    if MPI.COMM_WORLD.rank == 0:
        ended = solved(40, **saved)
        whole = solved(40)
        assert "sums among few" in whole.plan.settings
        same = all(map(np_equal, ended.x, whole.x)) and ended.ledger.of("solve") == (
            whole.ledger.of("solve")
        )
        print(begun.iterations, ended.iterations, "equal" if same else "different")


def np_equal(one: object, other: object) -> bool:
    return bytes(one) == bytes(other)  # type: ignore[call-overload,no-any-return]


with guard():
    main(sys.argv[1])
