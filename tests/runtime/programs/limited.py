"""Inequalities and bounds on several ranks and in one process: the same bits, prices and bill."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac.runtime.mpi import MPI, guard
from limits.cases import random_limited

SEEDS = (1, 5, 8)


def main() -> None:
    checked, world = 0, MPI.COMM_WORLD
    for seed in SEEDS:
        problem = random_limited(seed)
        folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
        if world.rank == 0:
            problem.save(folder / "p")
        world.barrier()
        network = ccmac.Network.complete(problem.n)
        whole = ccmac.solve(problem, network, max_iterations=40)
        owned = ccmac.runtime.mpi.Mpi(network).owned
        mine = ccmac.Problem.load(folder / "p", agents=owned)
        split = ccmac.solve(mine, network, runtime="mpi", max_iterations=40)
        assert np.array_equal(split.z, whole.z), seed
        for k, i in enumerate(owned):
            assert np.array_equal(split.x[k], whole.x[i]), seed
        assert split.objective == whole.objective, seed
        assert split.residuals == whole.residuals, seed
        assert split.ledger.as_dict() == whole.ledger.as_dict(), seed
        if whole.multipliers is not None:
            mine_p, all_p = split.multipliers, whole.multipliers
            assert np.array_equal(mine_p.coupled, all_p.coupled), seed
            assert np.array_equal(mine_p.z_lower, all_p.z_lower), seed
            for k, i in enumerate(owned):
                for name in ("local", "shared", "lower", "upper"):
                    assert np.array_equal(getattr(mine_p, name)[k], getattr(all_p, name)[i]), name
        checked += 1
    if world.rank == 0:
        print("checked", checked)


if __name__ == "__main__":
    with guard():
        main()
