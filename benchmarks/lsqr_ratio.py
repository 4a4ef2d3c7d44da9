"""CPU of a certified solve over that of SciPy's lsqr on the joined data, in one run.

    python benchmarks/lsqr_ratio.py [--repeat 5] [--tol 1e-6] [--rows 1000000]

Vertical federated ridge regression (lambda = 1e-2) on a ring of 8 (a8a: 16), ``auto``, without a
reference, against lsqr with atol = btol = 1e-9. Both run in turn, ``--repeat`` times after one run
that does not count; the medians of process times are divided. The last columns are of ten solves
through ``ccmac.prepare``, each after new labels: the slowest of the nine later ones over the first,
with all labels drawn anew, and with 1 % of them changed and a warm start; and the iterations of the
third such over those of a solve that starts anew. With ``--rows``: on one generated table of so
many rows, 200 columns, 20 entries a row.
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
from ccmac.paper import data

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


def again(X: Any, y: np.ndarray, n: int, tol: float, share: float | None) -> tuple[float, int]:
    """The slowest of nine later solves over the first, and the iterations of the third.

    ``share`` of the labels change before each, with a warm start; None: all are drawn anew.
    """
    prepared = ccmac.prepare(vfl.problem(X, y, n), ccmac.Network.ring(n))
    random = np.random.default_rng(0)
    values = np.unique(y)
    times = []
    results = []
    for k in range(10):
        if k and share is None:
            prepared.update(y=random.choice(values, len(y)))
        elif k and share is not None:
            y = np.where(random.random(len(y)) < share, values.sum() - y, y)
            prepared.update(y=y)
        warm = results[-1] if results and share is not None else None
        times.append(
            timed(lambda w=warm: results.append(prepared.solve(tol, warm_start=w, progress=False)))
        )
        assert results[-1].status == "optimal"
        assert not k or results[-1].ledger.of("setup")["rounds"] == 0
    return max(times[1:]) / times[0], results[2].iterations


def row(name: str, X: Any, y: np.ndarray, n: int, tol: float, repeat: int) -> str:
    """One line of the table."""
    root = np.sqrt(len(y))
    problem = vfl.problem(X, y, n)
    network = ccmac.Network.ring(n)
    A = X / root
    right = y / root
    times: list[tuple[float, float]] = []
    for _ in range(repeat + 1):
        whole = timed(lambda: ccmac.solve(problem, network, tol=tol, progress=False))
        joined = timed(lambda: lsqr(A, right, damp=0.1, atol=1e-9, btol=1e-9))
        times.append((whole, joined))
    ours, theirs = (statistics.median(column) for column in zip(*times[1:], strict=True))
    cold = ccmac.solve(problem, network, tol=tol, progress=False).iterations
    drawn_anew, _ = again(X, y, n, tol, share=None)
    changed, steps = again(X, y, n, tol, share=0.01)
    cells = [
        name,
        str(n),
        f"{ours:.3f}",
        f"{theirs:.3f}",
        f"{ours / theirs:.1f}",
        f"{drawn_anew:.2f}",
        f"{changed:.2f}",
        f"{steps} / {cold}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    print("| data | agents | solve, s | lsqr, s | ratio | new labels | 1 % | iterations |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    if options.rows:
        found = row("generated", *drawn(options.rows), 8, options.tol, options.repeat)
        print(found, flush=True)
        return
    for name, n in CASES:
        table = data.load(name, fallback=True)
        print(row(table.name, table.X, table.y, n, options.tol, options.repeat), flush=True)


if __name__ == "__main__":
    main()
