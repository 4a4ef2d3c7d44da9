"""Blocks of common vectors: one averaging carries the images of many, at the rounds of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Costs
from ccmac.runtime.base import FLOAT_BYTES, Runtime

PIECE = 16  # columns of a block that are computed at a time, at the least
TOGETHER = 2**25  # floats that all agents compute at a time, where more columns are no more
LARGEST = 64  # vectors of a block
HALVING = 32  # vectors that halve the iterations, as seen on real data
FLOATS = 2**27  # that all agents may put into one averaging
OPENING = 192  # the same, where solves come again
GROWN = 256  # vectors that a sketch grows to with them
SPARE = 8  # random vectors beyond the columns that see all of their range
HELD = 2**26  # floats of a sketch that every agent holds, where solves come again


def planned_size(runtime: Runtime, m: int, costs: Costs, *, again: int = 0) -> int:
    """Vectors of a sketch: the least of round k + byte (r + k) where k halves every HALVING.

    Where solves come again, of an operator of rank ``again`` at most: those that they all need
    together, in several averagings if one cannot hold them.
    """
    round_cost = costs.round * runtime.averaging.taking(m).rounds
    wide = runtime.averaging.taking(LARGEST * m)
    row_cost = costs.byte * FLOAT_BYTES * wide.floats_sent * m
    if not round_cost:
        return 0
    most = min(LARGEST, m // 4, FLOATS // (m * runtime.n))
    if again:
        most = min(GROWN, again + SPARE, m // 4, HELD // m)
    return min(most, int(HALVING * math.log2(1 + round_cost / row_cost)) if row_cost else most)


def in_averagings(runtime: Runtime, m: int, size: int) -> list[int]:
    """How many of ``size`` vectors travel in each averaging."""
    most = max(FLOATS // (m * runtime.n), PIECE)
    return [min(most, size - k) for k in range(0, size, most)]


def block_mean(
    runtime: Runtime, own: Callable[[Array], Iterable[Array]], W: Array, extra: Array | None = None
) -> tuple[Array, Array]:
    """Means over agents of their images of W (m x r), and of the rows ``extra``: one averaging.

    ``own`` gives the images of some columns, (m, columns) agent by agent.
    """
    m, r = W.shape
    piece = max(PIECE, TOGETHER // (m * runtime.n))
    parts = [np.ascontiguousarray(W[:, k : k + piece]) for k in range(0, r, piece)]
    flat = (map(np.ravel, own(part)) for part in parts)
    first = 0 if extra is None else extra.shape[1]
    given = [] if extra is None else [extra]
    [mean] = runtime.average_in_pieces(chain(given, flat), first + W.size)
    ends = np.cumsum([part.size for part in parts])[:-1]
    images = [cut.reshape(m, -1) for cut in np.split(mean[first:], ends)]
    return images[0] if len(images) == 1 else np.hstack(images), mean[None, :first]
