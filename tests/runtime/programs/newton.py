"""cross-newton on several ranks and in one process: the same bits and bill."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac import vfl
from ccmac.runtime.mpi import MPI, guard
from methods.test_newton import table, vertical


def problems() -> list[ccmac.Problem]:
    """The same loss everywhere, at one owner, and different ones with own equations."""
    X, y = table(4)
    options = {"loss": "logistic", "regularization": 0.01}
    return [
        vfl.problem(X, y, 4, **options),
        vfl.problem(X, y, 4, label_owner=3, **options),
        vertical(1, "mixed"),
    ]


def main() -> None:
    checked = 0
    for problem in problems():
        network = ccmac.Network.ring(4)
        split = ccmac.solve(problem, network, "cross-newton", runtime="mpi")
        whole = ccmac.solve(problem, network, "cross-newton")
        mine = whole.x[split.agents.start : split.agents.stop]
        assert (split.status, split.iterations) == ("optimal", whole.iterations)
        assert np.array_equal(split.z, whole.z)
        assert all(np.array_equal(a, b) for a, b in zip(split.x, mine, strict=True))
        assert split.ledger.as_dict() == whole.ledger.as_dict()
        assert split.error_bound == whole.error_bound
        checked += 1
    if MPI.COMM_WORLD.rank == 0:
        print("checked", checked)


if __name__ == "__main__":
    with guard():
        main()
