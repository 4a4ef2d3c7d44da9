"""CPU, memory and result of ``ccmac.geometry`` on large sparse problems with C and D.

    python benchmarks/geometry.py [random|grid] [SIZE ...]

Three agents, SIZE coupled rows and as many shared variables, five entries a row; C and D have a
tenth as many rows as columns. ``grid``: rows touch neighbors on a square grid, and factors stay
sparse; ``random``: they fill, and from some thousand rows on chi is an interval that may be missed
with probability 1e-6.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp

from ccmac import Agent, Problem, geometry
from ccmac.objectives import Separable, SquaredDistance

AGENTS = 3
SHARE = 0.1


def block(kind: str, random: np.random.Generator, rows: int, columns: int) -> sp.csr_array:
    """Five entries a row."""
    if kind == "random":
        place = random.integers(0, columns, (rows, 5))
    else:
        side = int(np.ceil(np.sqrt(columns)))
        middle = np.linspace(0, columns - 1, rows).astype(int)
        place = middle[:, None] + np.array([-side, -1, 0, 1, side])
    there = (place >= 0) & (place < columns)
    row = np.broadcast_to(np.arange(rows)[:, None], place.shape)[there]
    values = random.standard_normal(len(row))
    return sp.csr_array((values, (row, place[there])), (rows, columns))


def problem(kind: str, size: int) -> Problem:
    """m = q = ``size``."""
    random = np.random.default_rng(0)
    d = size // AGENTS + 1
    shapes = {
        "A": (size, d),
        "B": (size, size),
        "C": (int(SHARE * d), d),
        "D": (int(SHARE * size / AGENTS), size),
    }
    f = Separable(SquaredDistance(1.0), SquaredDistance(1.0))
    return Problem(
        [
            Agent(f, **{name: block(kind, random, *shape) for name, shape in shapes.items()})
            for _ in range(AGENTS)
        ]
    )


def main() -> None:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", nargs="?", default="grid", choices=("random", "grid"))
    parser.add_argument("sizes", nargs="*", type=int, default=[2000])
    asked = parser.parse_args()
    for size in asked.sizes:
        given = problem(asked.kind, size)
        begun = time.process_time()
        found = geometry(given)
        spent = time.process_time() - begun
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        known = found.interval or (found.cross_factor, found.cross_factor)
        print(
            f"{asked.kind} {size}: {found.method}, chi in [{known[0]:.8g}, {known[1]:.8g}] "
            f"({found.rests_on}), {spent:.1f} CPU s, {memory:.2f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
