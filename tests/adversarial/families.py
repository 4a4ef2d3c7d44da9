"""Families of consistent problems, each a function of a random generator; ``make`` builds a case.

Every family returns a draft that a planted point satisfies exactly. What makes it hard is in its
name; sizes are small, so that the exact reference costs little.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adversarial.draft import Case, Draft
from ccmac import Network

Array = NDArray[np.float64]
Random = np.random.Generator
GENERATORS: dict[str, Callable[[Random, int], Draft]] = {}
TOLERANCES = (1e-6, 1e-6, 1e-6, 1e-4, 1e-8)


def family(make: Callable[[Random, int], Draft]) -> Callable[[Random, int], Draft]:
    """Register a generator under its name."""
    GENERATORS[make.__name__.replace("_", "-")] = make
    return make


def generate(name: str, seed: int, generators: dict[str, Callable[[Random, int], Draft]]) -> Case:
    """The case ``seed`` of a family: always the same one."""
    random = np.random.default_rng([zlib.crc32(name.encode()), seed])
    draft = generators[name](random, seed)
    tol = TOLERANCES[seed % len(TOLERANCES)]
    return Case(name, seed, draft, network(random, draft.n), tol)


def make(name: str, seed: int) -> Case:
    """A consistent case."""
    return generate(name, seed, GENERATORS)


def network(random: Random, n: int) -> Network:
    """One of the graphs on n agents."""
    kind = int(random.integers(6))
    if n >= 4 and kind == 0:
        return Network.erdos_renyi(n, 0.6, int(random.integers(1000)))
    if kind == 1 and n % 2 == 0:
        return Network.grid(2, n // 2)
    if kind == 2 and n >= 3:
        return Network.ring(n)
    if kind == 3:
        return Network.star(n)
    return Network.path(n) if kind == 4 else Network.complete(n)


# -- parts ------------------------------------------------------------------------------------
def integers(random: Random, *shape: int, top: int = 3) -> Array:
    """Integers in -top..top."""
    return random.integers(-top, top + 1, size=shape).astype(np.float64)


def base(random: Random, n: int | None = None, **sizes: int) -> Draft:
    """Blocks of small integers with well-conditioned objectives; not planted yet."""
    n = int(random.integers(1, 7)) if n is None else n
    low = sizes.get("d", 2)
    d = [int(k) for k in random.integers(low, sizes.get("d_top", low + 2) + 1, size=n)]
    q = sizes.get("q", int(random.integers(2, 5)))
    m = sizes.get("m", int(random.integers(1, 4)))
    p = sizes.get("p", 1)
    r = sizes.get("r", 1)
    common = integers(random, max(1, q // 2), q)
    draft = Draft(
        random,
        d,
        q,
        m,
        A=[integers(random, m, k) for k in d],
        B=[integers(random, m, q) for _ in d],
        C=[integers(random, min(p, max(k - 1, 0)), k) for k in d],
        D=[integers(random, r, len(common), top=2) @ common for _ in d],
        x=[integers(random, k) for k in d],
        z=integers(random, q),
    )
    return curved(draft, 3)


def curved(draft: Draft, spread: int, rotated: bool | None = None) -> Draft:
    """Hessians with eigenvalues 1 .. 2^spread, diagonal or turned by exact reflections."""
    random = draft.random
    draft.H = []
    draft.g = []
    for d in draft.d:
        size = d + draft.q
        powers = random.integers(0, spread + 1, size=size)
        if size > 1:
            powers[random.permutation(size)[:2]] = 0, spread
        H = np.diag(np.exp2(powers.astype(float)))
        if rotated or (rotated is None and random.integers(2)):
            for _ in range(2):
                H = reflected(random, H)
        draft.H.append(H)
        draft.g.append(integers(random, size, top=8))
    return draft


def reflected(random: Random, H: Array) -> Array:
    """QHQ with Q = I - vv'/2 for a v of four signs (with fewer entries: a swap of two of them)."""
    size = len(H)
    if size < 4:
        order = random.permutation(size)
        return np.asarray(H[np.ix_(order, order)])
    v = np.zeros(size)
    v[random.permutation(size)[:4]] = random.choice([-1.0, 1.0], size=4)
    Q = np.eye(size) - np.outer(v, v) / 2
    return np.asarray(Q @ H @ Q)  # all numbers stay multiples of 2^-4 below 2^30: exact


def powers(random: Random, count: int, low: int = -20, high: int = 20) -> Array:
    """Random powers of two."""
    return np.exp2(random.integers(low, high + 1, size=count).astype(float))


def small(random: Random) -> float:
    """How close to dependent: 2^-10 .. 2^-34."""
    return float(2.0 ** -int(random.integers(10, 35)))


def rescaled_rows(draft: Draft, low: int, high: int) -> Draft:
    """Every equation multiplied by a power of two of its own (before planting)."""
    random = draft.random
    coupled = powers(random, draft.m, low, high)
    for i in range(draft.n):
        draft.A[i] = coupled[:, None] * draft.A[i]
        draft.B[i] = coupled[:, None] * draft.B[i]
        draft.C[i] = powers(random, len(draft.C[i]), low, high)[:, None] * draft.C[i]
        draft.D[i] = powers(random, len(draft.D[i]), low, high)[:, None] * draft.D[i]
    return draft


def dependent_rows(random: Random, matrix: Array) -> Array:
    """The rows with one more, a combination of them."""
    return np.vstack([matrix, integers(random, 1, len(matrix), top=1) @ matrix])


def near(random: Random, matrix: Array, t: float) -> Array:
    """The rows with one more that differs by t times integers from a combination of them."""
    extra = integers(random, 1, len(matrix), top=1) @ matrix
    return np.vstack([matrix, extra + t * integers(random, 1, matrix.shape[1])])


# -- families ---------------------------------------------------------------------------------
@family
def ordinary(random: Random, seed: int) -> Draft:
    """Nothing special."""
    return base(random, p=int(random.integers(0, 3)), r=int(random.integers(0, 3))).plant()


@family
def redundant(random: Random, seed: int) -> Draft:
    """Dependent and repeated rows in the coupled equation, every C_i and every D_i."""
    draft = base(random, p=2, r=2)
    mix = integers(random, 1, draft.m, top=1)
    for i in range(draft.n):
        draft.A[i] = np.vstack([draft.A[i], mix @ draft.A[i]])
        draft.B[i] = np.vstack([draft.B[i], mix @ draft.B[i]])
        draft.C[i] = dependent_rows(random, draft.C[i])
        draft.D[i] = dependent_rows(random, draft.D[i])
    draft.m += 1
    return draft.plant()


@family
def overlapping(random: Random, seed: int) -> Draft:
    """A coupled row that lies in the rows of the C_i and D_i."""
    draft = base(random, p=2, r=2)
    for i in range(draft.n):
        draft.A[i] = dependent_overlap(random, draft.A[i], draft.C[i])
        draft.B[i] = dependent_overlap(random, draft.B[i], draft.D[i])
    draft.m += 1
    return draft.plant()


def dependent_overlap(random: Random, matrix: Array, rows: Array) -> Array:
    """The matrix with one more row, a combination of ``rows``."""
    return np.vstack([matrix, integers(random, 1, len(rows), top=1) @ rows])


@family
def near_local(random: Random, seed: int) -> Draft:
    """Nearly dependent rows inside C_i."""
    draft = base(random, d=3, p=1)
    t = small(random)
    for i in range(draft.n):
        if i == 0 or random.integers(2):
            draft.C[i] = near(random, draft.C[i], t)
    return draft.plant()


@family
def near_shared(random: Random, seed: int) -> Draft:
    """Nearly dependent rows inside one D_i."""
    draft = base(random, q=4)
    t = small(random)
    i = int(random.integers(draft.n))
    draft.D[i] = near(random, draft.D[i], t)
    return draft.plant()


@family
def near_across(random: Random, seed: int) -> Draft:
    """D_i of different agents that nearly agree."""
    draft = base(random, int(random.integers(2, 7)), q=4)
    t = small(random)
    row = integers(random, 1, 4)
    draft.D = [row + (t * integers(random, 1, 4) if i else 0.0) for i in range(draft.n)]
    return draft.plant()


@family
def near_coupled(random: Random, seed: int) -> Draft:
    """Nearly dependent coupled rows."""
    draft = base(random, m=2)
    t = small(random)
    mix = integers(random, 1, 2, top=1)
    for i in range(draft.n):
        extra = mix @ draft.A[i] + t * integers(random, 1, draft.d[i])
        draft.A[i] = np.vstack([draft.A[i], extra])
        extra = mix @ draft.B[i] + t * integers(random, 1, draft.q)
        draft.B[i] = np.vstack([draft.B[i], extra])
    draft.m = 3
    return draft.plant()


@family
def near_mixed(random: Random, seed: int) -> Draft:
    """A coupled row that nearly lies in the rows of the C_i and D_i."""
    draft = base(random, p=1, r=1)
    t = small(random)
    for i in range(draft.n):
        extra = dependent_overlap(random, draft.A[i], draft.C[i])
        extra[-1] += t * integers(random, draft.d[i])
        draft.A[i] = extra
        extra = dependent_overlap(random, draft.B[i], draft.D[i])
        extra[-1] += t * integers(random, draft.q)
        draft.B[i] = extra
    draft.m += 1
    return draft.plant()


@family
def two_agents(random: Random, seed: int) -> Draft:
    """A_i = [1], B_i = [1 1], D_0 = [1 2], D_1 = [1 2 + t], half squares; t = 2^-10 .. 2^-34."""
    draft = base(random, 2, d=1, d_top=1, q=2, m=1, p=0)
    t = 2.0 ** -(10 + seed % 25)
    draft.A, draft.B = [np.ones((1, 1))] * 2, [np.ones((1, 2))] * 2
    draft.D = [np.array([[1.0, 2.0]]), np.array([[1.0, 2.0 + t]])]
    draft.H = [np.eye(3)] * 2
    return draft.plant()


@family
def row_scales(random: Random, seed: int) -> Draft:
    """Every equation in its own units, 2^-20 .. 2^20."""
    draft = base(random, p=2, r=2)
    return rescaled_rows(draft, -20, 20).plant(drift=False)


@family
def block_scales(random: Random, seed: int) -> Draft:
    """Whole blocks in other units, and objectives scaled as a whole."""
    draft = base(random, int(random.integers(1, 5)))
    top = 20 if seed % 2 else 6
    for i in range(draft.n):
        draft.A[i] = draft.A[i] * powers(random, 1, -top, top)
        draft.B[i] = draft.B[i] * powers(random, 1, -top // 2, top // 2)
        draft.C[i] = draft.C[i] * powers(random, 1, -top, top)
        draft.D[i] = draft.D[i] * powers(random, 1, -top, top)
    unit = powers(random, 1, -top, top)[0]
    draft.H = [unit * H for H in draft.H]
    draft.g = [unit * g for g in draft.g]
    return draft.plant(drift=False)
