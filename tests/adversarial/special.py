"""More families of consistent problems: curvature, chi, absent blocks, storages, weak f_i."""

from __future__ import annotations

import numpy as np

from adversarial.draft import Draft
from adversarial.families import Random, base, curved, family, integers


@family
def curvature(random: Random, seed: int) -> Draft:
    """kappa_f from 2^4 to 2^26, diagonal and turned Hessians."""
    return curved(base(random, p=int(random.integers(0, 2))), int(random.integers(4, 27))).plant()


@family
def cross_factor(random: Random, seed: int) -> Draft:
    """chi up to 1e5: B_i far from their mean."""
    draft = base(random, int(random.integers(2, 7)), r=int(random.integers(0, 2)))
    strength = 2.0 ** int(random.integers(1, 10))
    moves = [strength * integers(random, draft.m, draft.q, top=2) for _ in draft.d]
    moves[-1] = -sum(moves[:-1])
    draft.B = [B + move for B, move in zip(draft.B, moves, strict=True)]
    return draft.plant()


@family
def absent(random: Random, seed: int) -> Draft:
    """Blocks left out, with no rows, or zero, agent by agent."""
    draft = base(random, int(random.integers(1, 10)))
    for i in range(draft.n):
        for name in "ABCD":
            blocks = getattr(draft, name)
            kind = int(random.integers(6))
            if kind == 0:
                blocks[i] = np.zeros((0 if name in "CD" else draft.m, blocks[i].shape[1]))
                draft.left_out.add((i, name))
            elif kind == 1 and name in "CD":
                blocks[i] = blocks[i][:0]
            elif kind == 2:
                blocks[i] = np.zeros_like(blocks[i])
    return draft.plant()


@family
def whole_family_absent(random: Random, seed: int) -> Draft:
    """Some of A, B, C, D with nobody (None, or no rows, or zero), m = 0 included."""
    draft = base(random, m=0) if seed % 4 == 3 else base(random)
    for name in "ABCD":
        kind = int(random.integers(4))
        for i in range(draft.n):
            blocks = getattr(draft, name)
            if kind == 0:
                blocks[i] = np.zeros((0 if name in "CD" else draft.m, blocks[i].shape[1]))
                draft.left_out.add((i, name))
            elif kind == 1:
                blocks[i] = blocks[i][:0] if name in "CD" else np.zeros_like(blocks[i])
    return draft.plant()


@family
def no_shared(random: Random, seed: int) -> Draft:
    """q = 0: nothing is shared."""
    draft = base(random, q=1, r=0)
    draft.q, draft.z = 0, np.zeros(0)
    draft.B = [np.zeros((draft.m, 0)) for _ in draft.d]
    draft.D = [np.zeros((0, 0)) for _ in draft.d]
    if seed % 2:
        draft.left_out |= {(i, name) for i in range(draft.n) for name in "BD"}
    return curved(draft, 3).plant()


@family
def no_local(random: Random, seed: int) -> Draft:
    """d_i = 0 for some agents, or for all of them."""
    draft = base(random, int(random.integers(1, 7)))
    for i in range(draft.n):
        if seed % 3 == 0 or random.integers(2):
            draft.d[i], draft.x[i] = 0, np.zeros(0)
            draft.A[i], draft.C[i] = np.zeros((draft.m, 0)), np.zeros((0, 0))
            if seed % 2:
                draft.left_out |= {(i, "A"), (i, "C")}
    return curved(draft, 3).plant()


@family
def storages(random: Random, seed: int) -> Draft:
    """Every storage, mixed among agents and blocks; entries partly zero."""
    draft = base(random, int(random.integers(1, 10)), p=2, r=2)
    for name in "ABCD":
        setattr(draft, name, [M * (random.random(M.shape) < 0.6) for M in getattr(draft, name)])
    draft.storage = None
    return draft.plant()


@family
def label_owner(random: Random, seed: int) -> Draft:
    """Only the sum of the f_i is strongly convex in z: one agent alone knows its curvature."""
    draft = base(random, int(random.integers(2, 8)))
    owner = int(random.integers(draft.n))
    spread = int(random.integers(0, 8))
    for i, d in enumerate(draft.d):
        weights = np.ones(d + draft.q)
        weights[:d] = 2.0 ** int(random.integers(0, 4))
        own = np.exp2(random.integers(0, spread + 1, size=draft.q).astype(float))
        weights[d:] = own if i == owner else 0.0
        draft.H[i] = np.diag(weights)
        if i != owner:
            draft.g[i][d:] = 0.0
    return draft.plant()


@family
def flat(random: Random, seed: int) -> Draft:
    """All-zero or linear quadratics, and zero curvature in some entries; often unbounded."""
    draft = base(random, int(random.integers(1, 5)))
    kind = seed % 4
    price = integers(random, draft.m)
    for i, d in enumerate(draft.d):
        if kind < 2:
            draft.H[i] = np.zeros_like(draft.H[i])
        else:
            draft.H[i] = np.diag((random.random(d + draft.q) < 0.5).astype(float))
        if kind == 0:
            draft.g[i] = np.zeros(d + draft.q)
        elif kind != 3:  # bounded: the slope is balanced by prices
            own = integers(random, len(draft.C[i])) @ draft.C[i]
            shared = integers(random, len(draft.D[i])) @ draft.D[i]
            draft.g[i] = np.concatenate([price @ draft.A[i] + own, price @ draft.B[i] + shared])
    return draft.plant()


@family
def priced(random: Random, seed: int) -> Draft:
    """B_i = beta_i I, z-blocks h_i I (some zero), no own equations: z follows from the price."""
    n = int(random.integers(1, 7))
    q = int(random.integers(2, 9))
    draft = base(random, n, d=int(random.integers(1, 6)), q=q, m=q, p=0, r=0)
    draft.C = [C[:0] for C in draft.C]
    draft.D = [D[:0] for D in draft.D]
    draft.left_out = {(i, name) for i in range(n) for name in "CD"}
    scale = 2.0 ** int(random.integers(-12, 13)) if seed % 2 else 1.0
    draft.A = [scale * A for A in draft.A]
    beta = integers(random, n, top=9)
    beta[0] += 1.0 - beta.sum() if random.integers(2) else not beta.sum()
    draft.B = [b * np.eye(q) for b in beta]
    draft = curved(draft, int(random.integers(0, 17)))
    for i, d in enumerate(draft.d):
        h = 2.0 ** int(random.integers(-8, 9)) * (i == 0 or random.integers(2))
        draft.H[i][d:, :], draft.H[i][:, d:] = 0.0, 0.0
        draft.H[i][d:, d:] = h * np.eye(q)
    draft.storage = "csr_array"
    return draft.plant()
