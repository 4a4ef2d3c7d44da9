"""Process time of a solve, its loop and the whole, over a floor measured in the same run; memory.

The floor is what the charged work costs bare: every A and B product as a SciPy product over all
agents, plus 12 passes over the state vector an iteration at the measured copy bandwidth. The loop
is what the whole takes beyond ``ccmac.plan``, which executes the setup. Memory is the peak of the
solve beyond the problem's data, in arrays of n x m doubles; the setup's blocks of vectors are most.

    python benchmarks/solve_floor.py [a9a w8a ...]
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np

import ccmac
from ccmac.paper import data

PASSES = 12
REPEATS = 5


def best(action: object, repeats: int = REPEATS) -> float:
    """Shortest of several timings, in seconds."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        action()  # type: ignore[operator]
        times.append(time.process_time() - begun)
    return min(times)


def measure(name: str, n: int = 8) -> None:
    """Print the ratio and the memory for one data set."""
    found = data.load(name, fallback=True)
    X = found.X
    y = found.y
    rows, columns = X.shape
    weights = np.linalg.solve((X.T @ X).toarray() / rows + 1e-2 * np.eye(columns), X.T @ y / rows)
    problem = ccmac.vfl.problem(X, y, n)
    network = ccmac.Network.ring(n)
    options = {"method": "cross-apapc", "tol": 1e-6, "reference": weights, "progress": False}

    result = ccmac.solve(problem, network, **options)  # type: ignore[arg-type]
    whole = best(lambda: ccmac.solve(problem, network, **options))  # type: ignore[arg-type]
    del options["progress"]
    loop = whole - best(lambda: ccmac.plan(problem, network, **options))  # type: ignore[arg-type]
    agents = list(problem.agents.values())
    x = [np.ones(a.A.shape[1]) for a in agents]
    z = np.ones(rows)
    product_A = best(lambda: [a.A @ v for a, v in zip(agents, x, strict=True)])
    adjoint_A = best(lambda: [a.A.T @ z for a in agents])
    product_B = best(lambda: [a.B @ z for a in agents])
    state = np.ones(columns + n * rows)
    other = np.empty_like(state)
    copy = best(lambda: np.copyto(other, state), 20)
    ledger = result.ledger
    floor = (
        ledger["A"] * (product_A + adjoint_A) / 2
        + ledger["B"] * product_B
        + PASSES * result.iterations * copy
    )
    tracemalloc.start()
    ccmac.solve(problem, network, **options)  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    arrays = peak / (8 * n * rows)
    print(
        f"{found.name}: loop {1e3 * loop:.1f} ms over floor {1e3 * floor:.1f} ms = "
        f"{loop / floor:.2f}, the whole {1e3 * whole:.1f} ms = {whole / floor:.2f}; "
        f"peak {arrays:.1f} arrays of n x m"
    )


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["a9a", "w8a"]:
        measure(argument)
