"""The leaf that multiplies by the agents' own blocks: M = diag(M_1, ..., M_n), no communication.

Each M_i may be absent, dense, sparse, a multiple of the identity or an operator with ``matvec`` and
``rmatvec``. One call over all agents is one block-parallel product and charges one unit of the
family's letter. The order of summation inside a block does not depend on which other agents live
in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import is_sparse
from ccmac.ledger import Cost, Ledger

Array = NDArray[np.float64]


class LocalFamily:
    """Block-diagonal family ``unit`` in {A, B, C, D}; maps flat (or row-per-agent) arrays."""

    def __init__(
        self,
        unit: str,
        blocks: Sequence[Any],
        rows: Sequence[int],
        columns: Sequence[int],
        ledger: Ledger,
        *,
        present: bool | None = None,
    ) -> None:
        self.unit = unit
        self.blocks = list(blocks)
        self.rows = tuple(rows)
        self.columns = tuple(columns)
        self.ledger = ledger
        # Whether any agent anywhere has the block decides the charge, not who lives here.
        mine = any(b is not None and 0 not in b.shape for b in self.blocks)
        self.empty = not (mine if present is None else present)
        self._row_ends = np.concatenate([[0], np.cumsum(self.rows)]).astype(int)
        self._column_ends = np.concatenate([[0], np.cumsum(self.columns)]).astype(int)
        self._identity = _identity_multiples(self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) over the owned agents."""
        return int(self._row_ends[-1]), int(self._column_ends[-1])

    # Joined copies of the blocks are made at the first product: a fused simulation, which
    # multiplies by the blocks side by side, never needs them.
    @cached_property
    def _sparse(self) -> sp.csr_array | sp.csc_array | None:
        return _block_diagonal(self.blocks, self.rows, self.columns)

    @cached_property
    def _batched(self) -> Array | None:
        return _batch(self.blocks)

    @property
    def cost(self) -> Cost:
        """One product, forward or adjoint."""
        return Cost() if self.empty else Cost({self.unit: 1})

    def forward(self, u: Array) -> Array:
        """(M_i u_i)_i as a flat array. Cost: 1 product."""
        if self.empty:
            return np.zeros(self._row_ends[-1])
        self.ledger.charge(**{self.unit: 1})
        if self._identity is not None:
            return np.asarray((self._identity[:, None] * u.reshape(len(self.rows), -1)).ravel())
        flat = u.ravel()
        if self._sparse is not None:
            return np.asarray(self._sparse @ flat)
        if self._batched is not None:
            return np.asarray(np.matmul(self._batched, flat.reshape(len(self.rows), -1, 1)).ravel())
        return self._loop(flat, self._column_ends, self._row_ends, adjoint=False)

    def adjoint(self, v: Array) -> Array:
        """(M_i' v_i)_i as a flat array. Cost: 1 product."""
        if self.empty:
            return np.zeros(self._column_ends[-1])
        self.ledger.charge(**{self.unit: 1})
        if self._identity is not None:
            return np.asarray((self._identity[:, None] * v.reshape(len(self.rows), -1)).ravel())
        flat = v.ravel()
        if self._sparse is not None:
            return np.asarray(self._sparse.T @ flat)
        if self._batched is not None:
            stacked = flat.reshape(len(self.rows), -1, 1)
            return np.asarray(np.matmul(self._batched.swapaxes(1, 2), stacked).ravel())
        return self._loop(flat, self._row_ends, self._column_ends, adjoint=True)

    def _loop(self, flat: Array, source: Array, target: Array, *, adjoint: bool) -> Array:
        out = np.zeros(target[-1])
        for k, block in enumerate(self.blocks):
            if block is not None:
                piece = flat[source[k] : source[k + 1]]
                out[target[k] : target[k + 1]] = multiply(block, piece, adjoint=adjoint)
        return out


def multiply(block: Any, vector: Array, *, adjoint: bool = False) -> Array:
    """M v or M' v for a dense, sparse or operator block."""
    if isinstance(block, np.ndarray) or is_sparse(block):
        return np.asarray((block.T if adjoint else block) @ vector)
    return np.asarray(block.rmatvec(vector) if adjoint else block.matvec(vector)).ravel()


def identity_multiple(block: Any) -> float | None:
    """c if the block is c I (square, sparse diagonal storage with one constant), else None."""
    if not is_sparse(block) or block.shape[0] != block.shape[1] or block.shape[0] == 0:
        return None
    if block.nnz != block.shape[0]:
        return None
    diagonal = block.diagonal()
    return float(diagonal[0]) if np.all(diagonal == diagonal[0]) and diagonal[0] else None


def _identity_multiples(blocks: Sequence[Any]) -> Array | None:
    multiples = [0.0 if b is None else identity_multiple(b) for b in blocks]
    if any(c is None for c in multiples) or not any(multiples):
        return None
    return np.array(multiples, dtype=np.float64)


def _block_diagonal(
    blocks: Sequence[Any], rows: Sequence[int], columns: Sequence[int]
) -> sp.csr_array | sp.csc_array | None:
    """One matrix for the family when every present block is sparse.

    Compressed along its shorter side: long loops are fast. Sums run in the same order either way.
    """
    if not all(b is None or is_sparse(b) for b in blocks):
        return None
    filled = [
        sp.csr_array((r, c)) if b is None else sp.csr_array(b)
        for b, r, c in zip(blocks, rows, columns, strict=True)
    ]
    diagonal = sp.block_diag(filled, format="csr")
    return sp.csc_array(diagonal) if sum(columns) < sum(rows) else sp.csr_array(diagonal)


def _batch(blocks: Sequence[Any]) -> Array | None:
    """One (agents, rows, columns) array when every block is dense and of one shape."""
    if not all(isinstance(b, np.ndarray) for b in blocks):
        return None
    if len({b.shape for b in blocks}) != 1:
        return None
    return np.stack(blocks)
