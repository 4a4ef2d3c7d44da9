"""Whether gathered equations that look dependent are: their rank to the last digit.

    rank K = sum_i rank C_i + rank [A_1 N_1 .. A_n N_n  Bbar; 0  D],    N_i a basis of ker C_i

holds modulo a prime as well, where everything is exact (:mod:`ccmac.linalg.modular`). Every agent
tells a basis of A_i ker C_i and its B_i, both modulo two primes in one float, how many entries its
rows have and how many of them look rounded, and by how much the rank of C_i exceeds what a
decomposition found: l (min(l, d) + q + 2) + 1 floats with the next averaging, l as in
:mod:`ccmac.workspace.reduced`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ccmac.inputs import Array
from ccmac.linalg import modular
from ccmac.linalg.ranks import digits
from ccmac.workspace.supports import Packing

Blocks = tuple[int, int, Array, Array, Array]


def told(blocks: Iterable[Blocks], packing: Packing, wide: int) -> Array:
    """What the agents of this process say; ``blocks`` are (agent, excess, A, B, C) of each."""
    rows = []
    for i, excess, A, B, C in blocks:
        images, shared = [], []
        for prime in modular.PRIMES:
            image = np.zeros((len(A), wide), dtype=np.int64)
            found = modular.image_of_kernel(A, C, prime)
            image[:, : found.shape[1]] = found
            images.append(image)
            shared.append(modular.residues(B, prime))
        counts = np.stack(digits(np.hstack([A, B])), axis=1).astype(np.float64)
        parts = modular.packed((images[0], images[1])), modular.packed((shared[0], shared[1]))
        own = [packing.packed(part, i) for part in (*parts, counts)]
        rows.append(np.concatenate([*own, [excess]]))
    return np.stack(rows)


def heard(
    gathered: Array, packing: Packing, wide: int, D: Array
) -> tuple[int, int, tuple[Array, Array]]:
    """(rank of the coupled and shared rows on the kernels, by how much the ranks of the C_i exceed
    those decomposed, :func:`digits` of the rows).

    From what all agents said; ``D`` is known to all.
    """
    (n, m), (r, q) = packing.shape, D.shape
    ends = packing.length * np.cumsum([wide, q, 2])
    images, shared, counts, excess = np.split(gathered, ends, axis=1)
    parts = zip(
        modular.PRIMES, modular.unpacked(packing.unpacked(images, wide)),
        modular.unpacked(packing.unpacked(shared, q)), strict=True,
    )  # fmt: skip
    ranks = []
    for prime, image, B in parts:
        coupled = image.transpose(1, 0, 2).reshape(m, n * wide)
        upper = np.hstack([coupled, B.sum(axis=0) % prime])
        lower = np.hstack([np.zeros((r, n * wide), dtype=np.int64), modular.residues(D, prime)])
        ranks.append(modular.rank_modulo(np.vstack([upper, lower]), prime))
    entries, rounded = np.add.reduce(packing.unpacked(counts, 2)).T
    own = digits(D)
    all_rows = np.concatenate([entries, own[0]]), np.concatenate([rounded, own[1]])
    return max(ranks), int(excess.sum()), all_rows
