"""Projections onto the row spaces of large channels: dense, factored or iterative, by their size.

The canonical channels of a problem are projected part by part,

    Range(K_1') = Range(C') (+) Range(P_{Ker C} [A B]')      (orthogonal, C acting on x alone)
    Range(K_2') = disagreement (+) 1 (x) Range(S_D)

the local parts agent by agent, so that a badly conditioned C or D does not slow the iteration on
the coupled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import dense, filled_in, has_entries
from ccmac.linalg.families import side_by_side
from ccmac.linalg.ranks import row_space
from ccmac.linalg.symmetric import BAND_WORK, band_work, symmetric_factor
from ccmac.linalg.tolerances import FACTORED_SHIFT, FACTORED_TRIAL, LSMR
from ccmac.problem import Problem

Projection = Callable[[Array], Array]
LARGE_BASIS = 1_000_000
SPARSE = 20
"""Entries from which a dense basis gives way to a factorization of one in SPARSE filled."""


def projector(M: Any, dense_limit: int) -> Projection:
    """u -> P u onto Range(M'): a dense basis, a sparse factorization, or LSMR, by size and fill."""
    rows, columns = M.shape
    if rows == 0 or columns == 0:
        return np.zeros_like
    small = min(rows, columns) <= dense_limit and rows * columns <= 50 * dense_limit**2
    sparse = is_sparse(M) and rows * columns > LARGE_BASIS and SPARSE * M.nnz < rows * columns
    if small and not sparse:
        return _based(M)
    if not has_entries(M):
        transposed = spla.aslinearoperator(M).T
        return lambda u: least_squares(transposed, u)
    flat = equilibrated(M)
    M_T = sp.csr_array(flat.T)
    found = _factored(flat, M_T)
    if found is None:
        found = _based(M) if small else lambda u: least_squares(_both_ways(M_T, flat), u)
    return found


def _based(M: Any) -> Projection:
    """Q Q' for an orthonormal basis Q of Range(M')."""
    Q = row_space(dense(M)).basis
    return lambda u: np.asarray(Q @ (Q.T @ u))


def least_squares(transposed: Any, u: Array) -> Array:
    """The point of Range(M') nearest to u, given M' as an operator, by LSMR."""
    if not np.any(u):
        return np.zeros_like(u)
    y = spla.lsmr(transposed, u, atol=LSMR, btol=LSMR, conlim=0.0, maxiter=20_000)[0]
    return np.asarray(transposed.matvec(y))


def equilibrated(M: Any) -> sp.csr_array:
    """M, dense or sparse, as a sparse matrix with rows of unit length."""
    matrix = sp.csr_array(M)
    lengths = spla.norm(matrix, axis=1)
    return sp.csr_array(sp.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ matrix)


def _both_ways(M: sp.csr_array, M_T: sp.csr_array) -> Any:
    """An operator that holds both orders: SciPy would copy the matrix in every adjoint product."""
    return spla.LinearOperator(
        M.shape, matvec=lambda u: M @ u, rmatvec=lambda y: M_T @ y, dtype=np.float64
    )


def _factored(M: sp.csr_array, M_T: sp.csr_array) -> Projection | None:
    """M' (M M' + shift)^{-1} M with refinement, if the factor of M M' is sparse.

    The shift lets dependent rows pass; two sweeps undo its effect on the rest, and a trial tells
    whether they did.
    """
    gram = sp.csc_array(M @ M_T)
    if band_work(sp.csr_array(gram)) > BAND_WORK:
        return None
    factor = symmetric_factor(gram + FACTORED_SHIFT * sp.eye_array(gram.shape[0]))

    def project(u: Array) -> Array:
        rest = u.copy()
        for _ in range(2):
            rest -= M_T @ factor.solve(M @ rest)
        return u - rest

    trial = np.random.default_rng(0).standard_normal(M.shape[1])
    left = float(np.linalg.norm(M @ (trial - project(trial))))
    return project if left <= FACTORED_TRIAL * float(np.linalg.norm(trial)) else None


# -- the canonical channels of a problem -----------------------------------------------------------
def local_projections(problem: Problem, dense_limit: int) -> list[Projection | None]:
    """Onto Range(C_i') for every agent; None where there is no C_i."""
    return [
        None if C is None or 0 in C.shape else projector(C, dense_limit)
        for C in problem.blocks("C")
    ]


def onto_local(problem: Problem, onto: Sequence[Projection | None], u: Array) -> Array:
    """P_C u for u = (x, anything): zero outside x."""
    result = np.zeros_like(u)
    start = 0
    for d, P in zip(problem.d.values(), onto, strict=True):
        if P is not None:
            result[start : start + d] = P(u[start : start + d])
        start += d
    return result


def coupled_projection(
    problem: Problem, shared: Sequence[Any], onto: Sequence[Projection | None]
) -> Projection:
    """Onto Range(K_1') with ``shared`` as the blocks acting on the part after x.

    Given the B_i it is the canonical channel; given sqrt(n) mean B alone, that of the rebalanced
    problem seen through one common z. Cost: one LSMR run on m unknowns.
    """
    H = _coupled_rows(problem, shared)
    free = all(P is None for P in onto)

    def outside(u: Array) -> Array:
        return u if free else u - onto_local(problem, onto, u)

    reduced = spla.LinearOperator(
        (H.shape[1], H.shape[0]),
        matvec=lambda y: outside(H.rmatvec(y)),
        # LSMR only hands back what it got from matvec and from a right side outside already.
        rmatvec=H.matvec,
        dtype=np.float64,
    )

    def project(u: Array) -> Array:
        local = np.zeros_like(u) if free else onto_local(problem, onto, u)
        return np.asarray(local + least_squares(reduced, u - local))

    return project


def shared_projection(problem: Problem, dense_limit: int) -> Projection | None:
    """Onto Range(S_D); None without D."""
    present = [D for D in problem.blocks("D") if D is not None and D.shape[0]]
    if not present:
        return None
    rows = [sp.csr_array(D if has_entries(D) else dense(D)) for D in present]
    return projector(sp.csr_array(sp.vstack(rows, format="csr")), dense_limit)


def consensus_projection(d: int, n: int, q: int, onto_D: Projection | None) -> Projection:
    """Onto Range(K_2'): disagreement, and 1 (x) Range(S_D)."""

    def project(u: Array) -> Array:
        result = np.zeros_like(u)
        z = u[d:].reshape(n, q)
        mean = z.mean(axis=0)
        free = mean if onto_D is None else mean - onto_D(mean)
        result[d:] = (z - free).ravel()
        return result

    return project


def _coupled_rows(problem: Problem, shared: Sequence[Any]) -> Any:
    """[A_1 ... A_n, shared blocks] as an operator; rows of unit length where entries are known."""
    m = problem.m
    blocks = [*problem.blocks("A"), *shared]
    widths = [*problem.d.values(), *(problem.q for _ in shared)]
    if not all(b is None or has_entries(b) for b in blocks):
        return side_by_side(blocks, m, widths)
    filled = filled_in(blocks, repeat(m, len(blocks)), widths)
    rows = equilibrated(sp.hstack(filled, format="csr"))
    return _both_ways(rows, sp.csr_array(rows.T))
