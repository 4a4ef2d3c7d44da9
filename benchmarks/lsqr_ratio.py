"""CPU of a certified solve over that of SciPy's lsqr on the joined data, in one run.

    python benchmarks/lsqr_ratio.py [--repeat 5] [--tol 1e-6] [--rows 1000000]

Vertical federated ridge regression (lambda = 1e-2) on a ring of 8 (a8a: 16), ``auto``, without a
reference, against lsqr with atol = btol = 1e-9. Both run in turn, ``--repeat`` times after one run
that does not count; the medians of process times are divided. The last column is a solve through
``ccmac.prepare`` after 1 % new labels, over the first one there. With ``--rows``: on one generated
table of so many rows, 200 columns, 20 entries a row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
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


def drawn(rows: int) -> tuple[Any, np.ndarray]:
    """Columns of very different lengths, and labels that follow them, with noise."""
    random = np.random.default_rng(0)
    place = (random.integers(0, 10, (rows, 20)) + 10 * np.arange(20)).astype(np.int32).ravel()
    values = random.standard_normal(len(place)) * np.logspace(0, -1.5, 200)[place]
    X = sp.csr_array((values, place, np.arange(0, len(place) + 1, 20)), (rows, 200))
    return X, np.sign(X @ random.standard_normal(200) + random.standard_normal(rows))


def row(name: str, X: Any, y: np.ndarray, n: int, tol: float, repeat: int) -> str:
    """One line of the table."""
    root = np.sqrt(len(y))
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
        name,
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
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    print("| data | agents | solve, s | lsqr, s | ratio | solve again over the first |")
    print("|---|---:|---:|---:|---:|---:|")
    if options.rows:
        found = row("generated", *drawn(options.rows), 8, options.tol, options.repeat)
        print(found, flush=True)
        return
    for name, n in CASES:
        table = data.load(name, fallback=True)
        print(row(table.name, table.X, table.y, n, options.tol, options.repeat), flush=True)


if __name__ == "__main__":
    main()
