"""Quasi-Newton steps from inner products alone (the two-loop recursion without vectors).

Vectors s_1..s_M (steps), y_1..y_M (changes of the gradient) and g (the gradient) are known through
their Gram matrix; the direction -H g comes out as coefficients in them, so that nothing but scalars
has to be agreed upon. Pairs are kept in a ring: pair number p sits in place p mod M.
"""

from __future__ import annotations

import numpy as np

from ccmac.inputs import Array

MEMORY = 20
SIZE = 2 * MEMORY + 1
GRADIENT = 2 * MEMORY


def places(pairs: int) -> list[tuple[int, int]]:
    """Where (s, y) of the kept pairs sit, oldest first."""
    slots = [p % MEMORY for p in range(max(0, pairs - MEMORY), pairs)]
    return [(slot, MEMORY + slot) for slot in slots]


def direction(gram: Array, pairs: int, first: float) -> Array:
    """Coefficients of -H g; H starts from <s, y>/<y, y> of the last pair, or from ``first``."""
    kept = places(pairs)
    c = np.zeros(SIZE)
    c[GRADIENT] = -1.0
    weights = []
    for s, y in reversed(kept):
        weights.append(float(c @ gram[:, s]) / gram[s, y])
        c[y] -= weights[-1]
    if kept:
        s, y = kept[-1]
        first = float(gram[s, y] / gram[y, y])
    c *= first
    for (s, y), weight in zip(kept, reversed(weights), strict=True):
        c[s] += weight - float(c @ gram[:, y]) / gram[s, y]
    return c


def replaced(
    gram: Array, products: Array, squares: Array, *, pair: int | None, gradient: bool
) -> Array:
    """The Gram matrix after a new pair of number ``pair`` and a new gradient, where there are such.

    ``products`` are those of the kept vectors with the new (s, y, g), ``squares`` those of the new
    ones with each other.
    """
    whole = np.block([[gram, products], [products.T, squares]])
    index = np.arange(SIZE)
    if gradient:
        index[GRADIENT] = SIZE + 2
    if pair is not None:
        index[[pair % MEMORY, MEMORY + pair % MEMORY]] = SIZE, SIZE + 1
    return np.asarray(whole[np.ix_(index, index)])
