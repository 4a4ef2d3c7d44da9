"""The agents' blocks, and the leaf that multiplies by them: M = diag(M_1, ..., M_n).

A block is absent (None), dense, sparse, a multiple of the identity, or an operator with ``shape``,
``matvec`` and ``rmatvec``. One call over all agents is one block-parallel product: no
communication, one unit of the family's letter. The order of summation inside a block does not
depend on which other agents live in the same process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ccmac.inputs import Array, is_sparse
from ccmac.ledger import Cost, Ledger
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
    columns = block.shape[1]
    units = (np.eye(1, columns, j)[0] for j in range(columns))
    return math.sqrt(sum(square(multiply(block, e)) for e in units))


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
    rows = sp.csr_array(block)
    place = np.arange(block.shape[0])
    diagonal = (rows.indices == place).all() and (rows.indptr[:-1] == place).all()
    first = rows.data[0]
    return float(first) if diagonal and first and (rows.data == first).all() else None


def multiples_of(blocks: Sequence[Any]) -> Array:
    """c_i where a block is c_i I (0 where absent), NaN elsewhere."""
    known = [0.0 if b is None else identity_multiple(b) for b in blocks]
    return np.array(known, dtype=np.float64)


def identity_multiples(blocks: Sequence[Any]) -> Array | None:
    """c_i if every block is c_i I (0 where absent) and some are there, else None."""
    return common_multiples(multiples_of(blocks))


def common_multiples(multiples: Array) -> Array | None:
    """What :func:`multiples_of` found, if it is known of every block and some are there."""
    return None if np.isnan(multiples).any() or not multiples.any() else multiples


def compressed(block: Any) -> sp.csr_array | sp.csc_array:
    """Compressed along its shorter side: long loops are fast. Sums run in the same order."""
    return sp.csc_array(block) if block.shape[1] < block.shape[0] else sp.csr_array(block)


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
        multiples: Array | None = None,
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
        alike = self.rows == self.columns and len(set(self.rows)) == 1
        self._identity: Array | None = None
        if alike:  # multiples of the identity, where they are not known already
            known = multiples_of(self.blocks) if multiples is None else multiples
            self._identity = common_multiples(known)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) over the owned agents."""
        return int(self._row_ends[-1]), int(self._column_ends[-1])

    # Copies in another form are made at the first product that needs them. Sums inside a block run
    # in the same order in all of them.
    @cached_property
    def _joined(self) -> sp.csr_array | sp.csc_array | None:
        """diag(M_1, ..., M_n) of small sparse blocks: one product instead of many."""
        if not self._small:
            return None
        filled = filled_in(self.blocks, self.rows, self.columns)
        return compressed(sp.block_diag(filled, format="csr"))

    @cached_property
    def _small(self) -> bool:
        """Whether every present block is sparse, and small on the average."""
        stored = sum(b.nnz for b in self.blocks if is_sparse(b))
        # stored entries per block up to which blocks are joined
        return _all_sparse(self.blocks) and stored <= 2000 * len(self.blocks)

    @cached_property
    def abreast(self) -> sp.csr_array | sp.csc_array | None:
        """[M_1 ... M_n] of sparse blocks with equally many rows; of large ones only by columns."""
        if not _all_sparse(self.blocks) or len(set(self.rows)) > 1:
            return None
        if not self._small and sum(self.columns) >= self.rows[0]:
            return None
        filled = filled_in(self.blocks, self.rows, self.columns)
        return compressed(sp.hstack(filled, format="csr"))

    @cached_property
    def _pieces(self) -> list[Any]:
        """The blocks, each in the form that multiplies fastest."""
        return [compressed(b) if is_sparse(b) else row_major(b) for b in self.blocks]

    @cached_property
    def _batched(self) -> Array | None:
        if not all(isinstance(b, np.ndarray) for b in self.blocks):
            return None
        alike = len({b.shape for b in self.blocks}) == 1
        return np.stack([row_major(b) for b in self.blocks]) if alike else None

    @property
    def cost(self) -> Cost:
        """One product, forward or adjoint."""
        return Cost() if self.empty else Cost({self.unit: 1})

    def forward(self, u: Array) -> Array:
        """(M_i u_i)_i as a flat array. Cost: 1 product."""
        return self._product(u, self._column_ends, self._row_ends, adjoint=False)

    def adjoint(self, v: Array) -> Array:
        """(M_i' v_i)_i as a flat array. Cost: 1 product."""
        return self._product(v, self._row_ends, self._column_ends, adjoint=True)

    def _product(self, v: Array, ends: NDArray[Any], into: NDArray[Any], *, adjoint: bool) -> Array:
        """All blocks, or all transposed ones; agents' pieces of v end at ``ends``."""
        if self.empty:
            return np.zeros(into[-1])
        self.ledger.charge(**{self.unit: 1})
        if self._identity is not None:
            return np.asarray((self._identity[:, None] * v.reshape(len(self.rows), -1)).ravel())
        flat = v.ravel()
        if self._joined is not None:
            return np.asarray((self._joined.T if adjoint else self._joined) @ flat)
        if self._batched is not None:
            blocks = self._batched.swapaxes(1, 2) if adjoint else self._batched
            return np.asarray(np.matmul(blocks, flat.reshape(len(self.rows), -1, 1)).ravel())
        return _laid_out(self._images(_cut(flat, ends), adjoint=adjoint), into)

    def add_forward(self, u: Array, scale: float, out: Array) -> None:
        """out_i += scale M_i u_i, one row per agent. Cost: 1 product."""
        if not self.empty:
            image = self.forward(u).reshape(out.shape)
            image *= scale
            out += image

    def adjoint_common(self, v: Array, out: Array | None = None) -> Array:
        """(M_i' v)_i for one v, a flat array. Cost: 1 product."""
        out = np.empty(self._column_ends[-1]) if out is None else out
        if self.empty:
            out[...] = 0.0
            return out
        self.ledger.charge(**{self.unit: 1})
        if self._identity is not None:
            np.multiply.outer(self._identity, v, out=out.reshape(len(self.rows), -1))
        elif self.abreast is not None:
            out[...] = self.abreast.T @ v
        elif self._batched is not None:
            stacked = out.reshape(len(self.rows), -1, 1)
            np.matmul(self._batched.swapaxes(1, 2), v[:, None], out=stacked)
        else:
            out[...] = _laid_out(self._images(repeat(v), adjoint=True), self._column_ends)
        return out

    def _images(
        self, vectors: Iterable[Array], *, adjoint: bool = False
    ) -> Iterator[tuple[int, Array]]:
        """Products one by one, with the places of their agents."""
        for k, (block, vector) in enumerate(zip(self._pieces, vectors, strict=False)):
            if block is not None:
                yield k, multiply(block, vector, adjoint=adjoint)


def _cut(flat: Array, ends: NDArray[np.int64]) -> list[Array]:
    """The agents' pieces of a flat array."""
    return np.split(flat, ends[1:-1])


def _laid_out(images: Iterable[tuple[int, Array]], ends: NDArray[np.int64]) -> Array:
    """A flat array of the images in their agents' places, zero elsewhere."""
    out = np.zeros(ends[-1])
    for k, image in images:
        out[ends[k] : ends[k + 1]] = image
    return out


def side_by_side(blocks: Sequence[Any], rows: int, columns: Sequence[int]) -> spla.LinearOperator:
    """[M_1 M_2 ...] as a SciPy operator; None is a block of zeros."""
    ends = np.concatenate([[0], np.cumsum(columns)]).astype(int)

    def forward(u: Array) -> Array:
        total = np.zeros(rows)
        for block, piece in zip(blocks, _cut(u.ravel(), ends), strict=True):
            if block is not None:
                total += multiply(block, piece)
        return total

    def adjoint(v: Array) -> Array:
        parts = [(k, multiply(b, v, adjoint=True)) for k, b in enumerate(blocks) if b is not None]
        return _laid_out(parts, ends)

    shape = (rows, int(ends[-1]))
    return spla.LinearOperator(shape, matvec=forward, rmatvec=adjoint, dtype=np.float64)


def _all_sparse(blocks: Sequence[Any]) -> bool:
    return all(b is None or is_sparse(b) for b in blocks)


def blas_threads(size: int, threads: int | None) -> AbstractContextManager[Any]:
    """At most ``threads`` while it is open; None: one for blocks of fewer than 1,000
    rows, which several only slow down."""
    if threads is None and size >= 1_000:
        return nullcontext()
    found: AbstractContextManager[Any] = ThreadpoolController().limit(
        limits=threads or 1, user_api="blas"
    )
    return found
