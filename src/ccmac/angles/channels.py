"""Projectors onto the row spaces of the canonical channels of a large problem.

    Range(K_1') = Range(C') (+) Range(P_{Ker C} [A B]')      (orthogonal, C acting on x alone)
    Range(K_2') = disagreement (+) 1 (x) Range(S_D)

The local parts are projected agent by agent, so that a badly conditioned C or D does not slow the
iteration on the coupled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.angles.heterogeneity import transposed_product
from ccmac.angles.projectors import Projection, equilibrated, least_squares, projector
from ccmac.problem import Problem

Array = NDArray[np.float64]


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
    rows = [sp.csr_array(_entries(D)) for D in present]
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
    m, q = problem.m, problem.q
    blocks = [*problem.blocks("A"), *shared]
    widths = [*problem.d.values(), *(q for _ in shared)]
    if all(b is None or isinstance(b, np.ndarray) or hasattr(b, "tocsr") for b in blocks):
        filled = [
            sp.csr_array((m, k)) if b is None else sp.csr_array(b)
            for b, k in zip(blocks, widths, strict=True)
        ]
        rows = equilibrated(sp.hstack(filled, format="csr"))
        columns = sp.csr_array(rows.T)
        return spla.LinearOperator(
            rows.shape, matvec=lambda u: rows @ u, rmatvec=lambda y: columns @ y, dtype=np.float64
        )
    ends = np.concatenate([[0], np.cumsum(widths)]).astype(int)

    def forward(u: Array) -> Array:
        total = np.zeros(m)
        for block, a, b in zip(blocks, ends, ends[1:], strict=False):
            if block is not None:
                total += np.asarray(block @ u[a:b]).ravel()
        return total

    def adjoint(y: Array) -> Array:
        pieces = [
            np.zeros(k) if block is None else transposed_product(block, y)
            for block, k in zip(blocks, widths, strict=True)
        ]
        return np.concatenate(pieces)

    shape = (m, int(ends[-1]))
    return spla.LinearOperator(shape, matvec=forward, rmatvec=adjoint, dtype=np.float64)


def _entries(block: Any) -> Any:
    if isinstance(block, np.ndarray) or hasattr(block, "tocsr"):
        return block
    return np.stack([np.ravel(block.rmatvec(unit)) for unit in np.eye(block.shape[0])])
