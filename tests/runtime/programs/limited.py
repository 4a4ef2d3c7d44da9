"""Inequalities, bounds and cones on several ranks and in one process: the same bits and bill."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ccmac
from ccmac.results import Solution
from ccmac.runtime.mpi import MPI, guard
from cones.families import drawn
from limits.cases import random_limited

CASES = (
    *((1, "separable"), (5, "quadratic"), (8, "linear"), (5, "contradictory")),
    *((100, "cones"), (13, "cones")),  # solvable, infeasible
)


def same(split: ccmac.Result, whole: ccmac.Result, owned: range, where: str) -> None:
    assert split.status == whole.status, where
    assert np.array_equal(split.z, whole.z), where
    for k, i in enumerate(owned):
        assert np.array_equal(split.x[k], whole.x[i]), where
    for name in ("objective", "residuals"):
        assert repr(getattr(split, name)) == repr(getattr(whole, name)), where
    assert split.ledger.as_dict() == whole.ledger.as_dict(), where
    if whole.multipliers is not None:
        mine = split.multipliers
        everybodys = whole.multipliers
        assert np.array_equal(mine.coupled, everybodys.coupled), where
        assert np.array_equal(mine.z_lower, everybodys.z_lower), where
        for k, i in enumerate(owned):
            for name in ("local", "shared", "lower", "upper", "cones"):
                if not getattr(everybodys, name):
                    continue
                pair = getattr(mine, name)[k], getattr(everybodys, name)[i]
                assert np.array_equal(*pair), (where, name)
    if whole.infeasibility is not None:  # its words name the agents that are held here
        assert np.array_equal(split.infeasibility.coupled, whole.infeasibility.coupled), where


def moved(result: ccmac.Result) -> Solution:
    """Half way to zero, with its prices: a warm start that has to go some way."""
    return Solution([0.5 * v for v in result.x], 0.5 * result.z, result.multipliers)


def main() -> None:
    checked = 0
    world = MPI.COMM_WORLD
    for seed, kind in CASES:
        problem = drawn(seed)[1] if kind == "cones" else random_limited(seed, kind)
        where = f"{kind} {seed}"
        folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
        if world.rank == 0:
            problem.save(folder / "p")
        world.barrier()
        network = ccmac.Network.complete(problem.n)
        owned = ccmac.runtime.mpi.Mpi(network).owned
        mine = ccmac.Problem.load(folder / "p", agents=owned)
        whole = ccmac.solve(problem, network, max_iterations=40)
        split = ccmac.solve(mine, network, runtime="mpi", max_iterations=40)
        same(split, whole, owned, where)
        if whole.status == "optimal":
            again = ccmac.solve(problem, network, "cross-ipm", warm_start=moved(whole))
            apart = ccmac.solve(mine, network, "cross-ipm", warm_start=moved(split), runtime="mpi")
            assert again.status == "optimal", where
            same(apart, again, owned, f"warm {where}")
        checked += 1
    if world.rank == 0:
        print("checked", checked)


if __name__ == "__main__":
    with guard():
        main()
