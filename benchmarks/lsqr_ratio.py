"""CPU of a certified solve over that of SciPy's lsqr on the joined data, in one run.

    python benchmarks/lsqr_ratio.py [--repeat 5] [--tol 1e-6]

Vertical federated ridge regression (lambda = 1e-2) on a ring of 8 (a8a: 16), ``auto``, without a
reference, against lsqr with atol = btol = 1e-9. Both run in turn, ``--repeat`` times after one run
that does not count; the medians of process times are divided. The last column is a solve through
``ccmac.prepare`` after 1 % new labels, over the first one there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import lsqr

import ccmac
from ccmac import vfl
from ccmac.lab import data

CASES = (("a9a", 8), ("mushrooms", 8), ("w8a", 8), ("a8a", 16))


def timed(work: Callable[[], object]) -> float:
    """Process time of a call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def row(name: str, n: int, tol: float, repeat: int) -> str:
    """One line of the table."""
    found = data.load(name, fallback=True)
    X, y, root = found.X, found.y, np.sqrt(len(found.y))
    problem, network = vfl.problem(X, y, n), ccmac.Network.ring(n)
    A, right = X / root, y / root
    times: list[tuple[float, float]] = []
    for _ in range(repeat + 1):
        whole = timed(lambda: ccmac.solve(problem, network, tol=tol, progress=False))
        joined = timed(lambda: lsqr(A, right, damp=0.1, atol=1e-9, btol=1e-9))
        times.append((whole, joined))
    ours, theirs = (statistics.median(column) for column in zip(*times[1:], strict=True))
    prepared = ccmac.prepare(vfl.problem(X, y, n), network)
    first = timed(lambda: prepared.solve(tol, progress=False))
    random, later = np.random.default_rng(0), []
    values = np.unique(y)
    for _ in range(repeat):
        y = np.where(random.random(len(y)) < 0.01, values.sum() - y, y)
        prepared.update(y=y)
        later.append(timed(lambda: prepared.solve(tol, progress=False)))
    again = statistics.median(later) / first
    cells = [
        found.name,
        str(n),
        f"{ours:.3f}",
        f"{theirs:.3f}",
        f"{ours / theirs:.1f}",
        f"{again:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-6)
    options = parser.parse_args()
    print("| data | agents | solve, s | lsqr, s | ratio | solve again over the first |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, n in CASES:
        print(row(name, n, options.tol, options.repeat), flush=True)


if __name__ == "__main__":
    main()
