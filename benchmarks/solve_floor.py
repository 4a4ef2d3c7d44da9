"""Wall time of a solve over a floor measured in the same run, and its peak memory.

The floor is what the charged work costs bare: every A and B product as a SciPy product over all
agents, plus 12 passes over the state vector an iteration at the measured copy bandwidth. Memory is
the peak of the solve beyond the problem's data, in arrays of n x m doubles.

    python benchmarks/solve_floor.py [a9a w8a ...]
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np

import ccmac
from ccmac.lab import data

PASSES = 12
REPEATS = 5


def best(action: object, repeats: int = REPEATS) -> float:
    """Shortest of several timings, in seconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()  # type: ignore[operator]
        times.append(time.perf_counter() - begun)
    return min(times)


def measure(name: str, n: int = 8) -> None:
    """Print the ratio and the memory for one data set."""
    found = data.load(name, fallback=True)
    X, y = found.X, found.y
    rows, columns = X.shape
    weights = np.linalg.solve((X.T @ X).toarray() / rows + 1e-2 * np.eye(columns), X.T @ y / rows)
    problem = ccmac.vfl.problem(X, y, n)
    network = ccmac.Network.ring(n)
    options = {"method": "cross-apapc", "tol": 1e-6, "reference": weights, "progress": False}

    result = ccmac.solve(problem, network, **options)  # type: ignore[arg-type]
    solve_time = min(
        ccmac.solve(problem, network, **options).seconds
        for _ in range(REPEATS)  # type: ignore[arg-type]
    )
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
        f"{found.name}: solve {1e3 * solve_time:.1f} ms over floor {1e3 * floor:.1f} ms = "
        f"{solve_time / floor:.2f} (target <= 2); peak {arrays:.1f} arrays of n x m (target <= 14)"
    )


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["a9a", "w8a"]:
        measure(argument)
