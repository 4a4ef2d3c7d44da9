"""More families of consistent problems: corners of sizes, scales, copies, types and curvature."""

from __future__ import annotations

import numpy as np

from adversarial.draft import Draft
from adversarial.families import Random, base, curved, family, integers, powers


@family
def blank_rows(random: Random, seed: int) -> Draft:
    """Rows that say 0 = 0, in the coupled equation, in C and in D."""
    draft = base(random, p=2, r=2)
    blank = int(random.integers(draft.m))
    for i in range(draft.n):
        draft.A[i][blank], draft.B[i][blank] = 0.0, 0.0
        for block in (draft.C[i], draft.D[i]):
            if len(block) and random.integers(2):
                block[int(random.integers(len(block)))] = 0.0
    return draft.plant(drift=False)


@family
def tiny(random: Random, seed: int) -> Draft:
    """One or two agents, no or one entry in x, z and every right-hand side."""
    n = 1 + seed % 2
    draft = base(random, n, d=1, d_top=1, q=1, m=int(random.integers(2)), p=0, r=1)
    for i in range(n):
        if random.integers(2):
            draft.D[i] = np.zeros((0, 1))
        if not random.integers(3):
            draft.d[i], draft.x[i] = 0, np.zeros(0)
            draft.A[i], draft.C[i] = np.zeros((draft.m, 0)), np.zeros((0, 0))
        elif random.integers(2):
            draft.C[i] = integers(random, 1, 1)
    if not random.integers(4):
        draft.q, draft.z = 0, np.zeros(0)
        draft.B, draft.D = [np.zeros((draft.m, 0))] * n, [np.zeros((0, 0))] * n
    return curved(draft, 2).plant()


@family
def identical(random: Random, seed: int) -> Draft:
    """All agents alike, right-hand sides included or not."""
    draft = base(random, int(random.integers(2, 9)), d=3, d_top=3, p=int(random.integers(3)))
    for name in ("A", "B", "C", "D", "x", "H", "g"):
        values = getattr(draft, name)
        setattr(draft, name, [values[0].copy() for _ in values])
    return draft.plant(drift=bool(seed % 2))


@family
def tiny_curvature(random: Random, seed: int) -> Draft:
    """A few eigenvalues of 2^-26 .. 2^-10 in some agents' Hessians, the rest 1 .. 8."""
    draft = base(random)
    for i in range(draft.n):
        if i == 0 or random.integers(2):
            size = len(draft.H[i])
            scale = np.ones(size)
            picked = random.permutation(size)[: int(random.integers(1, 3))]
            scale[picked] = powers(random, len(picked), -13, -5)
            draft.H[i] = scale[:, None] * np.diag(np.diag(draft.H[i])) * scale
    return draft.plant()


@family
def free_shared(random: Random, seed: int) -> Draft:
    """F does not know z: only equations, and where they leave it free nothing, determine it."""
    draft = base(random, int(random.integers(1, 5)))
    if seed % 2:  # determined
        draft.D = [np.eye(draft.q) for _ in draft.d]
    for i, d in enumerate(draft.d):
        draft.H[i][d:], draft.H[i][:, d:] = 0.0, 0.0
        draft.H[i][:d, :d] = np.eye(d) * 2.0 ** int(random.integers(4))
        draft.g[i][d:] = 0.0
    return draft.plant()


@family
def number_types(random: Random, seed: int) -> Draft:
    """Blocks of integers as 64, 32 and 8 bit integers, dense and sparse, in any order."""
    draft = base(random, int(random.integers(1, 7)), p=2, r=2)
    draft.storage = str(random.choice(["int64", "int32", "int8", "int_csr", "strided", "readonly"]))
    return draft.plant()


@family
def cancelling(random: Random, seed: int) -> Draft:
    """B_i and b_i up to 2^24 whose sums are small or zero."""
    draft = base(random, int(random.integers(2, 7)))
    for name in ("B", "A"):
        if name == "A" and not random.integers(3):
            continue
        moves = [2.0**20 * integers(random, *M.shape) for M in getattr(draft, name)]
        if name == "B":
            moves[-1] = -sum(moves[:-1]) - (sum(draft.B) if seed % 2 else 0.0)
            draft.B = [B + move for B, move in zip(draft.B, moves, strict=True)]
    return draft.plant()


@family
def determined(random: Random, seed: int) -> Draft:
    """As many independent equations as unknowns, or more: nothing is left to choose."""
    draft = base(random, int(random.integers(1, 5)), p=0)
    extra = seed % 2
    draft.C = [integers(random, d + extra, d) + 7 * np.eye(d + extra, d) for d in draft.d]
    draft.D = [integers(random, draft.q, draft.q) + 7 * np.eye(draft.q) for _ in draft.d]
    return draft.plant()


@family
def crowd(random: Random, seed: int) -> Draft:
    """Twenty agents with few variables each."""
    draft = base(random, int(random.integers(15, 25)), d=1, d_top=2, q=2, m=2, p=0)
    return draft.plant()
