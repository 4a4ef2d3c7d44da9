"""One agent's block: dense, sparse, a multiple of the identity, or an operator.

An operator has ``shape``, ``matvec`` and ``rmatvec``; None is an absent block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.extended import norm, square


def has_entries(block: Any) -> bool:
    """Dense or sparse, not an operator."""
    return isinstance(block, np.ndarray) or is_sparse(block)


def entries(block: Any) -> Array:
    """Of a dense or sparse block, those that are stored."""
    return np.asarray(block.data if is_sparse(block) else block)


def multiply(block: Any, vector: Array, *, adjoint: bool = False) -> Array:
    """M v or M' v for a dense, sparse or operator block."""
    if has_entries(block):
        return np.asarray((block.T if adjoint else block) @ vector)
    return np.asarray(block.rmatvec(vector) if adjoint else block.matvec(vector)).ravel()


def dense(block: Any) -> Array:
    """A block as an ndarray (operators are probed column by column)."""
    if isinstance(block, np.ndarray):
        return np.asarray(block, dtype=np.float64)
    if is_sparse(block):
        return np.asarray(block.toarray(), dtype=np.float64)
    columns = [multiply(block, e) for e in np.eye(block.shape[1])]
    return np.stack(columns, axis=1) if columns else np.zeros(block.shape)


def frobenius(block: Any) -> float:
    """||M||_F, 0 of an absent block; operators are probed column by column, none of them kept."""
    if block is None:
        return 0.0
    if has_entries(block):
        return norm(entries(block))
    e = np.zeros(block.shape[1])
    squares = 0.0
    for j in range(len(e)):
        e[j] = 1.0
        squares += square(multiply(block, e))
        e[j] = 0.0
    return math.sqrt(squares)


def plus(M: Any, other: Any) -> Any:
    """M + other, sparse while both are."""
    if is_sparse(M) and is_sparse(other):
        return sp.csr_array(M + other)
    return np.asarray(M + other)


def identity_multiple(block: Any) -> float | None:
    """c if the block is c I (square, sparse diagonal storage with one constant), else None."""
    if block.shape[0] != block.shape[1] or block.shape[0] == 0 or not is_sparse(block):
        return None
    if block.nnz != block.shape[0]:
        return None
    rows = sp.csr_array(block) if block.format != "csr" else block
    place = _places(block.shape[0])
    first = rows.data[0]
    other = np.count_nonzero  # the fastest way to ask whether any is
    if other(rows.indices != place) or other(rows.indptr[:-1] != place):
        return None
    return float(first) if first and not other(rows.data != first) else None


@lru_cache(maxsize=1)
def _places(size: int) -> NDArray[np.int32]:
    """0, 1, 2, ...: of one size at a time, for the blocks of many agents."""
    return np.arange(size, dtype=np.int32)


def multiples_of(blocks: Sequence[Any]) -> Array:
    """c_i where a block is c_i I (0 where absent), NaN elsewhere."""
    known = [0.0 if b is None else identity_multiple(b) for b in blocks]
    return np.array([np.nan if c is None else c for c in known], dtype=np.float64)


def identity_multiples(blocks: Sequence[Any]) -> Array | None:
    """c_i if every block is c_i I (0 where absent) and some are there, else None."""
    return common_multiples(multiples_of(blocks))


def common_multiples(multiples: Array) -> Array | None:
    """What :func:`multiples_of` found, if it is known of every block and some are there."""
    return None if np.isnan(multiples).any() or not multiples.any() else multiples


def compressed(block: Any) -> sp.csr_array | sp.csc_array:
    """Compressed along its shorter side: long loops are fast. Sums run in the same order."""
    return sp.csc_array(block) if block.shape[1] < block.shape[0] else sp.csr_array(block)


def some_columns(matrix: sp.csc_array, start: int, stop: int) -> sp.csc_array:
    """A view of some columns: slices are copies, and the constructor copies views of much more."""
    first = matrix.indptr[start]
    last = matrix.indptr[stop]
    view = sp.csc_array((matrix.shape[0], stop - start))
    view.indptr = matrix.indptr[start : stop + 1] - first
    view.indices = matrix.indices[first:last]
    view.data = matrix.data[first:last]
    return view


def row_major(block: Any) -> Any:
    """One storage order: BLAS chooses its order of summation by it."""
    return np.ascontiguousarray(block) if isinstance(block, np.ndarray) else block


def filled_in(
    blocks: Sequence[Any], rows: Iterable[int], columns: Iterable[int]
) -> list[sp.csr_array]:
    """The blocks as sparse matrices, not copied where they are; absent ones have no entries."""
    return [
        sp.csr_array((r, c)) if b is None else b if isinstance(b, sp.csr_array) else sp.csr_array(b)
        for b, r, c in zip(blocks, rows, columns, strict=True)
    ]


def powers(lengths: Array) -> Array:
    """Powers of two that bring lengths near one (1 for zero)."""
    safe = np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.exp2(-np.round(np.log2(safe))))
