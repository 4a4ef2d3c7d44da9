"""More families of consistent problems: corners of sizes, scales, copies, types and curvature."""

from __future__ import annotations

import numpy as np

from adversarial.draft import Draft
from adversarial.families import (
    Array,
    Random,
    base,
    curved,
    family,
    integers,
    near,
    powers,
    rescaled_rows,
)

DEEP = (35, 46)  # 2^-35 .. 2^-45: beyond what a bound can stand, above what rounding makes


@family
def near_deep(random: Random, seed: int) -> Draft:
    """Rows of C, of D or of the coupled equation that differ by 2^-35 .. 2^-45 only."""
    return _near_rows(random, base(random, p=1, r=1), DEEP, seed % 3)


@family
def near_flat(random: Random, seed: int) -> Draft:
    """The same, 2^-10 .. 2^-45, where F is flat in some entries and may lie far below F*."""
    draft = base(random, p=1, r=1)
    price = integers(random, draft.m)
    for i, d in enumerate(draft.d):
        bent = (random.random(d + draft.q) < 0.5).astype(float)
        own = integers(random, 1) @ draft.C[i]
        shared = integers(random, 1) @ draft.D[i]
        draft.H[i] = np.diag(bent)
        draft.g[i] = bent * integers(random, d + draft.q, top=9)
        draft.g[i] += np.concatenate([price @ draft.A[i] + own, price @ draft.B[i] + shared])
    return _near_rows(random, draft, (10, 46), seed % 3)


def _near_rows(random: Random, draft: Draft, exponents: tuple[int, int], kind: int) -> Draft:
    """One row more in C, in D or in the coupled equation, nearly a combination of the others."""
    t = float(2.0 ** -int(random.integers(*exponents)))
    i = int(random.integers(draft.n))
    if kind == 0:
        draft.C[i] = near(random, draft.C[i], t)
    elif kind == 1:
        draft.D[i] = near(random, draft.D[i], t)
    else:
        mix = integers(random, 1, draft.m, top=1)
        for k in range(draft.n):
            draft.A[k] = np.vstack(
                [draft.A[k], mix @ draft.A[k] + t * integers(random, draft.d[k])]
            )
            draft.B[k] = np.vstack([draft.B[k], mix @ draft.B[k]])
        draft.m += 1
    return draft.plant()


def nudge(random: Random, row: Array, point: Array, t: float) -> None:
    """One entry of a row off by t, or by its last digit if that is more; 0 in the planted point,
    so that right-hand sides are exact.
    """
    k = int(random.integers(len(row)))
    row[k] += max(t, float(np.spacing(abs(row[k]))))
    point[k] = 0.0


@family
def last_digits(random: Random, seed: int) -> Draft:
    """One row more in C, D or the coupled equation, off a combination by 2^-40 .. 2^-60 or the
    last digit of one entry: what rounding makes of dependent rows, and yet they are not.
    """
    draft = base(random, p=2, r=2)
    t = float(2.0 ** -int(random.integers(40, 61)))
    i = int(random.integers(draft.n))
    kind = seed % 3
    for name, size in (("C", len(draft.C[i])), ("D", len(draft.D[i])), ("AB", draft.m)):
        mix = integers(random, 1, size, top=1)
        mix[0, 0] = 1.0
        if kind == ("C", "D", "AB").index(name):
            for block in name:
                values = getattr(draft, block)
                for k in range(draft.n) if name == "AB" else [i]:
                    values[k] = np.vstack([values[k], mix @ values[k]])
    if kind == 2 and seed % 2:
        nudge(random, draft.B[i][-1], draft.z, max(t, 2.0**-46))  # the sum is exact too
    elif kind == 1:
        nudge(random, draft.D[i][-1], draft.z, t)
    else:
        nudge(random, (draft.A if kind else draft.C)[i][-1], draft.x[i], t)
    draft.m = len(draft.A[0])
    return draft.plant()


@family
def perturbed_copies(random: Random, seed: int) -> Draft:
    """Every agent holds the same rows of D; one entry of one copy is off by 2^-10 .. 2^-52."""
    draft = base(random, int(random.integers(2, 7)), q=4)
    rows = integers(random, 2, 4)
    t = float(2.0 ** -int(random.integers(10, 53)))
    draft.D = [rows.copy() for _ in draft.d]
    i, j = (int(random.integers(top)) for top in (draft.n, 2))
    nudge(random, draft.D[i][j], draft.z, t)
    return draft.plant()


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
def objective_units(random: Random, seed: int) -> Draft:
    """All objectives times 2^-60 .. 2^60; every other time each agent's in units of its own."""
    draft = base(random)
    whole = powers(random, 1, -60, 60)[0]
    for i in range(draft.n):
        unit = whole * (powers(random, 1, -6, 6)[0] if seed % 2 else 1.0)
        draft.H[i], draft.g[i] = unit * draft.H[i], unit * draft.g[i]
    return draft.plant()


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
def large_points(random: Random, seed: int) -> Draft:
    """A solution whose entries differ by 2^40, and right-hand sides that cancel in their sum."""
    draft = base(random, int(random.integers(1, 5)))
    draft.x = [np.where(v == 0, 1.0, v) * powers(random, len(v), -20, 20) for v in draft.x]
    draft.z = draft.z * powers(random, draft.q, -20, 20)
    for i, d in enumerate(draft.d):  # the planted point is near the minimiser
        draft.H[i] = np.diag(np.diag(draft.H[i]))
        draft.g[i] = np.diag(draft.H[i]) * np.concatenate([draft.x[i], draft.z])
        draft.g[i][:d] += integers(random, d)
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


@family
def everything(random: Random, seed: int) -> Draft:
    """Scales, near-dependence, absent blocks and curvature at once, in any storage."""
    draft = curved(base(random, p=2, r=2), int(random.integers(1, 14)))
    i = int(random.integers(draft.n))
    if random.integers(2):
        draft.D[i] = near(random, draft.D[i], float(2.0 ** -int(random.integers(8, 30))))
    if random.integers(2):
        draft.C[i] = near(random, draft.C[i], float(2.0 ** -int(random.integers(8, 30))))
    draft = rescaled_rows(draft, -10, 10)
    for k in range(draft.n):
        for name in "CD":
            if not random.integers(4):
                blocks = getattr(draft, name)
                blocks[k] = blocks[k][:0]
    draft.storage = None
    return draft.plant(drift=False)
