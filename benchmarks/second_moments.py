"""Second moments from shares of three parties, who see no rows: docs/second-moments.md.

    python benchmarks/second_moments.py [--data a9a] [--bits 20]

Simulates replicated sharing (any one party's two thirds are random bits) in one process. Prints
CPU and bytes of a party, and how far ridge weights from the moments are from the joined table's.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from ccmac.paper.data import load

LIMB = 16  # bits of a factor that doubles multiply exactly, over ROWS rows at a time
ROWS = 2**20


def shared(words: Any, random: Any) -> list[Any]:
    """Three words of random bits that add up to each, modulo 2^64."""
    first, second = random.integers(0, 2**64, (2, *words.shape), dtype=np.uint64)
    return [first, second, words - first - second]


def inner(A: Any, B: Any) -> Any:
    """A'B modulo 2^64, by products of limbs in doubles."""
    parts = [
        [
            ((M >> np.uint64(k)) & np.uint64(2**LIMB - 1)).astype(np.float64)
            for k in range(0, 64, LIMB)
        ]
        for M in (A, B)
    ]
    out = np.zeros((A.shape[1], B.shape[1]), np.uint64)
    for i, a in enumerate(parts[0]):
        for j, b in enumerate(parts[1][: 4 - i]):
            out += (a.T @ b).astype(np.uint64) << np.uint64(LIMB * (i + j))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="a9a")
    parser.add_argument("--bits", type=int, default=20)
    asked = parser.parse_args()
    found = load(asked.data)
    X = found.X.toarray()
    spread = X.std(axis=0)
    X = X[:, spread > 0] / spread[spread > 0]
    Z = np.column_stack([X - X.mean(axis=0), found.y - found.y.mean()])
    assert len(Z) <= ROWS
    random = np.random.default_rng(0)
    words = np.round(Z * 2.0**asked.bits).astype(np.int64).view(np.uint64)
    shares = shared(words, random)
    begun = time.process_time()
    total = np.zeros((Z.shape[1], Z.shape[1]), np.uint64)
    for k in range(3):
        one, two = shares[k], shares[(k + 1) % 3]
        total += inner(one, one + two) + inner(two, one)
    spent = (time.process_time() - begun) / 3
    moments = total.view(np.int64) / 4.0**asked.bits
    d = X.shape[1]
    w = np.linalg.solve(moments[:d, :d] + np.eye(d), moments[:d, d])
    known = Ridge(1.0, solver="cholesky").fit(X, found.y).coef_
    sent = 8 * Z.size * 2 / 3 / 1e6
    apart = np.linalg.norm(w - known) / np.linalg.norm(known)
    print(f"{asked.data}, {len(Z):,} x {d}: {spent:.1f} CPU s, {sent:.0f} MB, apart {apart:.0e}")


if __name__ == "__main__":
    main()
