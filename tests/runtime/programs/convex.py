"""Methods of the convex regimes on several ranks and in one process: the same bits and bill."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac.methods import CrossContinuation, CrossSliding
from ccmac.runtime.mpi import MPI, guard
from methods.convex_problems import case

RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lasso", {"max_iterations": 30}),
    ("logistic", {"max_iterations": 30, "method": CrossContinuation(opening=False)}),
    ("absolute", {"max_iterations": 6, "method": CrossSliding(radius=9.0)}),
)


def main() -> None:
    checked = 0
    for kind, options in RUNS:
        sample = case(kind, 2)
        split = ccmac.solve(sample.problem, sample.network, runtime="mpi", **options)
        whole = ccmac.solve(sample.problem, sample.network, **options)
        assert split.iterations == whole.iterations, kind
        assert np.array_equal(split.z, whole.z), kind
        assert split.ledger.as_dict() == whole.ledger.as_dict(), kind
        assert split.certificates == whole.certificates, kind
        checked += 1
    if MPI.COMM_WORLD.rank == 0:
        print("checked", checked)


if __name__ == "__main__":
    with guard():
        main()
