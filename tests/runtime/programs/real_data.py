"""Ridge regression on a9a, one agent a rank on a ring: RelErr 1e-6 at the bill of one process."""

from __future__ import annotations

import numpy as np

import ccmac
from ccmac import vfl
from ccmac.paper import data
from ccmac.runtime.mpi import MPI, guard

RIDGE = 1e-2


def main() -> None:
    found = data.load("a9a", fallback=True)
    agents = MPI.COMM_WORLD.size
    X, y, (rows, columns) = found.X, found.y, found.X.shape
    gram = (X.T @ X).toarray() / rows + RIDGE * np.eye(columns)
    exact = np.linalg.solve(gram, X.T @ y / rows)
    problem = vfl.problem(X, y, agents, regularization=RIDGE)
    network = ccmac.Network.ring(agents)
    options = {"method": "cross-apapc", "tol": 1e-6, "reference": exact}
    here = ccmac.solve(problem, network, runtime="mpi", **options)
    whole = ccmac.solve(problem, network, **options)
    assert here.status == "optimal"
    assert here.relative_error is not None
    assert here.relative_error <= 1e-6
    assert here.z.tobytes() == whole.z.tobytes()
    assert here.x[0].tobytes() == whole.x[here.agents.start].tobytes()
    assert here.ledger.as_dict() == whole.ledger.as_dict()
    if MPI.COMM_WORLD.rank == 0:
        setup = here.ledger.of("setup")["rounds"]
        solve = here.ledger["rounds"]
        print(f"{found.source}: {here.iterations} iterations, {solve} + {setup} rounds")


with guard():
    main()
