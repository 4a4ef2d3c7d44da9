"""Which coupled rows concern which agents: known to all with the first message of a problem.

Agent i has the rows where A_i or B_i has an entry. Where they are few, what agents tell of their
coupled rows is told of these alone. b_i does not count: right-hand sides may change later.
Cost: m/48 floats in the first averaging, for problems of at least LEAST rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import has_entries, stored_rows
from ccmac.problem import Problem

Supports = NDArray[np.bool_]

LEAST = 32  # rows below which zeros are not worth a word
FEW = 0.5  # share of all rows that the longest support may have
BITS = 48  # in one float, exactly


def told(problem: Problem, multiples: Array) -> Array:
    """The rows of the owned agents, 48 to a float; ``multiples`` c_i where B_i = c_i I."""
    m = problem.m if problem.m >= LEAST else 0
    rows = np.zeros((len(problem.agents), m), dtype=bool)
    for k, agent in enumerate(problem.agents.values()):
        if m:
            rows[k] = bool(multiples[k] > 0 or multiples[k] < 0) or (
                _touched(agent.A, m) | _touched(agent.B, m)
            )
    return words(rows)


def heard(told: Array, m: int) -> Supports | None:
    """Rows by agents (n, m); None where somebody's are too many to leave others out."""
    rows = bits(told, m)
    return rows if rows.sum(axis=1).max() <= FEW * m else None


def words(rows: Supports) -> Array:
    """Yes and no, 48 to a float."""
    count, width = rows.shape
    padded = np.zeros((count, -(-width // BITS) * BITS))
    padded[:, :width] = rows
    return np.asarray(padded.reshape(count, -1, BITS) @ np.exp2(np.arange(BITS)))


def bits(told: Array, width: int) -> Supports:
    """What :func:`words` says."""
    whole = told.astype(np.int64)[:, :, None] >> np.arange(BITS)
    return (whole & 1).astype(bool).reshape(len(told), -1)[:, :width]


def _touched(block: Any, m: int) -> Supports:
    """Rows with entries."""
    if block is None or not has_entries(block):
        return np.full(m, block is not None)
    if is_sparse(block):
        return stored_rows(block)
    return np.asarray((block != 0).any(axis=1))


class Packing:
    """Arrays with one row for each coupled row, sent on an agent's own rows alone."""

    def __init__(self, supports: Supports | None, n: int, m: int) -> None:
        self.supports, self.shape = supports, (n, m)
        self.length = m if supports is None else int(supports.sum(axis=1).max(initial=0))

    def packed(self, values: Array, agent: int) -> Array:
        """``values`` on the agent's rows, padded to :attr:`length`; flat."""
        if self.supports is None:
            return values.ravel()
        own = values[self.supports[agent]]
        out = np.zeros((self.length, *values.shape[1:]))
        out[: len(own)] = own
        return out.ravel()

    def outside(self, values: Array, agent: int) -> bool:
        """Whether anything lies in other rows."""
        return self.supports is not None and bool(values[~self.supports[agent]].any())

    def unpacked(self, told: Array, *width: int) -> Array:
        """All agents' arrays from what they told, shape (n, m, *width)."""
        n, m = self.shape
        if self.supports is None:
            return told.reshape(n, m, *width)
        out, told = np.zeros((n, m, *width)), told.reshape(n, self.length, *width)
        for there, rows, values in zip(out, self.supports, told, strict=True):
            there[rows] = values[: int(rows.sum())]
        return out
