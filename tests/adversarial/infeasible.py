"""Contradictory problems at levels from 1 down to 2^-46, by where the contradiction sits.

The level is what the reference computes: the distance of the equilibrated right-hand side from the
range. A consistent draft gets a redundant equation, and its right-hand side is moved by a power of
two times the size of the row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adversarial.draft import Array, Case, Draft, added, as_doubles
from adversarial.families import (
    Random,
    base,
    curved,
    dependent_overlap,
    dependent_rows,
    generate,
    integers,
    rescaled_rows,
)

GENERATORS: dict[str, Callable[[Random, int], Draft]] = {}
DEEPEST = 46  # 2^-46 = 1.4e-14


def family(make: Callable[[Random, int], Draft]) -> Callable[[Random, int], Draft]:
    """Register a generator under its name."""
    GENERATORS[make.__name__.replace("_", "-")] = make
    return make


def make(name: str, seed: int) -> Case:
    """A contradictory case (decided by the reference, not by this)."""
    return generate(name, seed, GENERATORS)


def depth(seed: int) -> float:
    """All levels in turn, the coarse ones twice as often."""
    powers = [*range(0, 14), *range(0, DEEPEST + 1)]
    return float(2.0 ** -powers[(seed * 7) % len(powers)])


def moved(right: Array, row: int, matrix: Array, level: float) -> Array:
    """The right-hand side with one entry moved by about level times the norm of its row."""
    size = np.linalg.norm(matrix[row])
    unit = 2.0 ** np.round(np.log2(size)) if size else 1.0
    change = [0.0] * len(right)
    change[row] = level * unit
    return as_doubles(added(right.tolist(), change))


@family
def inside_local(random: Random, seed: int) -> Draft:
    """One agent's C x = c contradicts itself."""
    draft = base(random, d=3, p=2)
    i = int(random.integers(draft.n))
    draft.C[i] = dependent_rows(random, draft.C[i])
    draft.plant()
    draft.c[i] = moved(draft.c[i], -1, draft.C[i], depth(seed))
    return draft


@family
def inside_shared(random: Random, seed: int) -> Draft:
    """One agent's D z = e contradicts itself."""
    draft = base(random, r=2)
    i = int(random.integers(draft.n))
    draft.D[i] = dependent_rows(random, draft.D[i])
    draft.plant()
    draft.e[i] = moved(draft.e[i], -1, draft.D[i], depth(seed))
    return draft


@family
def across_shared(random: Random, seed: int) -> Draft:
    """D z = e of different agents contradict each other; each alone is consistent."""
    draft = base(random, int(random.integers(2, 7)), q=4)
    rows = integers(random, 2, 4)
    draft.D = [rows[i : i + 1] if i < 2 else integers(random, 1, 2) @ rows for i in range(draft.n)]
    if draft.n == 2:
        draft.D[1] = rows[:1] * float(random.integers(1, 4))
    draft.plant()
    draft.e[-1] = moved(draft.e[-1], 0, draft.D[-1], depth(seed))
    return draft


@family
def coupled_rows(random: Random, seed: int) -> Draft:
    """Coupled equations contradict one another."""
    draft = base(random, m=2)
    mix = integers(random, 1, 2, top=1)
    for i in range(draft.n):
        draft.A[i] = np.vstack([draft.A[i], mix @ draft.A[i]])
        draft.B[i] = np.vstack([draft.B[i], mix @ draft.B[i]])
    draft.m = 3
    return _coupled_moved(draft.plant(), seed)


@family
def coupled_against_local(random: Random, seed: int) -> Draft:
    """A coupled equation contradicts the C_i and D_i."""
    draft = base(random, p=2, r=2)
    for i in range(draft.n):
        draft.A[i] = dependent_overlap(random, draft.A[i], draft.C[i])
        draft.B[i] = dependent_overlap(random, draft.B[i], draft.D[i])
    draft.m += 1
    return _coupled_moved(draft.plant(), seed)


@family
def zero_rows(random: Random, seed: int) -> Draft:
    """0 = something: a zero row in the coupled equation, in a C or in a D."""
    draft = base(random, p=2, r=2)
    kind = int(random.integers(4))
    i = int(random.integers(draft.n))
    if kind == 0:
        draft.C[i][-1:] = 0.0
    elif kind == 1:
        draft.D[i][-1:] = 0.0
    else:
        rows = slice(None) if kind == 3 else slice(-1, None)
        for k in range(draft.n):
            draft.A[k][rows] = 0.0
            draft.B[k][rows] = 0.0
    draft.plant()
    if kind == 0 and len(draft.c[i]):
        draft.c[i] = moved(draft.c[i], -1, draft.C[i], depth(seed))
    elif kind == 1:
        draft.e[i] = moved(draft.e[i], -1, draft.D[i], depth(seed))
    else:
        draft.b[i] = moved(draft.b[i], -1, draft.B[i], depth(seed))
    return draft


@family
def too_many(random: Random, seed: int) -> Draft:
    """More coupled equations than unknowns, rows in units of their own, nothing shared."""
    draft = base(random, int(random.integers(1, 4)), d=2, d_top=2, q=1, m=8, p=0, r=0)
    draft.q, draft.z = 0, np.zeros(0)
    draft.B, draft.D = [np.zeros((8, 0)) for _ in draft.d], [np.zeros((0, 0)) for _ in draft.d]
    return _coupled_moved(rescaled_rows(curved(draft, 3), -8, 8).plant(drift=False), seed)


@family
def flat_and_contradictory(random: Random, seed: int) -> Draft:
    """Coupled rows against one another where F has no curvature at all, or not in z."""
    draft = coupled_rows(random, seed)
    for i, d in enumerate(draft.d):
        draft.H[i][d:], draft.H[i][:, d:], draft.g[i][d:] = 0.0, 0.0, 0.0
        if seed % 2:
            draft.H[i][:], draft.g[i][:] = 0.0, 0.0
    return draft


def _coupled_moved(draft: Draft, seed: int) -> Draft:
    row = np.hstack([*draft.A, sum(draft.B)])
    draft.b[0] = moved(draft.b[0], -1, row, depth(seed))
    return draft
