"""Projections onto the row spaces of large channels: from a dense basis, or by LSMR.

K_1 = [A B; C 0]          Range(K_2') = disagreement (+) 1 (x) R,  R = sum_i Range(D_i')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import dense, filled_in, has_entries, side_by_side
from ccmac.linalg.ranks import row_space
from ccmac.problem import Problem

Projection = Callable[[Array], Array]


def projector(M: Any, dense_limit: int) -> Projection:
    """u -> P u onto Range(M'): a dense basis where the block is small, else LSMR."""
    rows, columns = M.shape
    if rows == 0 or columns == 0:
        return np.zeros_like
    room = 1e6 if is_sparse(M) else 50 * dense_limit**2
    if min(rows, columns) <= dense_limit and rows * columns <= room:
        Q = row_space(dense(M)).basis
        return lambda u: np.asarray(Q @ (Q.T @ u))
    if not has_entries(M):
        return _iterative(spla.aslinearoperator(M).T)
    matrix = sp.csr_array(M)
    lengths = spla.norm(matrix, axis=1)
    flat = sp.csr_array(sp.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ matrix)
    flat_T = sp.csr_array(flat.T)
    # An operator that holds both orders: SciPy would copy the matrix in every adjoint product.
    both = spla.LinearOperator(
        flat_T.shape, matvec=lambda y: flat_T @ y, rmatvec=lambda u: flat @ u, dtype=np.float64
    )
    return _iterative(both)


def _iterative(transposed: Any) -> Projection:
    """The point of Range(M') nearest to u, given M' as an operator, by LSMR."""

    def project(u: Array) -> Array:
        if not np.any(u):
            return np.zeros_like(u)
        # A few hundred eps lie above stagnation.
        y = spla.lsmr(transposed, u, atol=1e-12, btol=1e-12, conlim=0.0, maxiter=20_000)[0]
        return np.asarray(transposed.matvec(y))

    return project


# -- the channels of a problem ---------------------------------------------------------------------
def first_channel(problem: Problem, shared: Sequence[Any]) -> Any:
    """K_1 with ``shared`` as the blocks that act on the part after x; sparse, or an operator.

    Given the B_i it is the canonical channel; given sqrt(n) mean B alone, that of the rebalanced
    problem seen through one common z.
    """
    m = problem.m
    blocks = [*problem.blocks("A"), *shared]
    widths = [*problem.d.values(), *(problem.q for _ in shared)]
    local = [C if C is None or has_entries(C) else dense(C) for C in problem.blocks("C")]
    C = sp.block_diag(filled_in(local, repeat(0, problem.n), problem.d.values()), format="csr")
    C = sp.csr_array(sp.hstack([C, sp.csr_array((C.shape[0], sum(widths) - C.shape[1]))]))
    if all(b is None or has_entries(b) for b in blocks):
        coupled = sp.hstack(filled_in(blocks, repeat(m, len(blocks)), widths))
        return sp.csr_array(sp.vstack([coupled, C]))
    H = side_by_side(blocks, m, widths)
    return spla.LinearOperator(
        (m + C.shape[0], C.shape[1]),
        matvec=lambda u: np.concatenate([H.matvec(u), C @ u]),
        rmatvec=lambda v: H.rmatvec(v[:m]) + C.T @ v[m:],
        dtype=np.float64,
    )


def shared_projection(problem: Problem, dense_limit: int) -> Projection | None:
    """The projection onto R, the row space of all D_i; None without D."""
    present = [D for D in problem.blocks("D") if D is not None and D.shape[0]]
    rows = [sp.csr_array(D if has_entries(D) else dense(D)) for D in present]
    return projector(sp.vstack(rows, format="csr"), dense_limit) if rows else None


def second_projection(d: int, n: int, q: int, onto_D: Projection | None) -> Projection:
    """The projection onto Range(K_2'), disagreement and R."""

    def project(u: Array) -> Array:
        result = np.zeros_like(u)
        z = u[d:].reshape(n, q)
        mean = z.mean(axis=0)
        free = mean if onto_D is None else mean - onto_D(mean)
        result[d:] = (z - free).ravel()
        return result

    return project
