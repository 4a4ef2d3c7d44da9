"""Angles of a large sparse problem, from one sparse factorization.

With H_sin and H_cos as in :mod:`ccmac.angles.heterogeneity`, the squared cotangents of the angles
are the eigenvalues nu of  H_cos h = nu H_sin h.  H_sin contains the projections onto Ker C_i and
Ker D; instead of forming it, H_sin h = r is solved through the sparse system

    x_i + C_i' k_i = A_i' h,   C_i x_i = 0,   y + D' l = sqrt(n) Bm' h,   D y = 0,
    sum_i A_i x_i + sqrt(n) Bm y = r

which squares nothing; a shift on the multipliers lets dependent rows pass, and refinement undoes it
for the others. Lanczos on H_sin^{-1} H_cos then finds the directions of the smallest angles first,
however close together they are; the angles are read off the projections of these directions.
Cost: the factorization, and some tens of solves with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from ccmac.angles.heterogeneity import difference, mean_block
from ccmac.angles.large import coupled_gram, energy_shares
from ccmac.angles.principal import NO_ANGLES, Angles, pair_geometry, paired
from ccmac.angles.projections import (
    Projection,
    equilibrated,
    local_projections,
    onto_local,
    shared_projection,
)
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.structural import lanczos_spectrum, structural_parameters
from ccmac.inputs import Array
from ccmac.linalg.blocks import filled_in, has_entries, multiply
from ccmac.linalg.symmetric import BAND_WORK, band_work, symmetric_factor
from ccmac.linalg.tolerances import LARGE_OVERLAP
from ccmac.network import Network
from ccmac.problem import Problem

SHIFT = 1e-8
SWEEPS = 3
FEW_ROWS = 32  # below them dense decompositions are as good
COUNTS = (4, 16, 64, 256)
"""How many angles are asked for in turn, while all that were found are zero."""


@dataclass(frozen=True)
class SparseAngles:
    """The smallest angles, and h of the first that is not zero."""

    angles: Angles = NO_ANGLES
    direction: Array | None = None


class SparseProblem:
    """One problem's rows as sparse matrices, with H_sin factorized."""

    def __init__(
        self, problem: Problem, onto_C: list[Projection | None], onto_D: Projection | None
    ) -> None:
        m = problem.m
        n = problem.n
        q = problem.q
        self.problem = problem
        self.onto_C = onto_C
        self.onto_D = onto_D
        d = problem.d.values()
        A = sp.hstack(filled_in(problem.blocks("A"), repeat(m, n), d), format="csr")
        B = filled_in(problem.blocks("B"), repeat(m, n), repeat(q, n))
        mean = mean_block(problem)
        mean = sp.csr_array((m, q)) if mean is None else sp.csr_array(mean)
        lengths = spla.norm(sp.hstack([A, *B], format="csr"), axis=1)
        self.scale = 1.0 / np.where(lengths > 0, lengths, 1.0)
        rows = sp.diags_array(self.scale)
        self.mean = sp.csr_array(np.sqrt(n) * (rows @ mean))
        self.deviations = sp.csr_array(sp.hstack([rows @ difference(b, mean) for b in B]))
        C = sp.block_diag(filled_in(problem.blocks("C"), repeat(0, n), d), format="csr")
        D = sp.vstack([sp.csr_array((0, q)), *(D for D in problem.blocks("D") if D is not None)])
        own = sp.block_diag([equilibrated(C), equilibrated(D)])
        self.A = sp.csr_array(rows @ A)
        self.rows = sp.csr_array(sp.vstack([own, sp.hstack([self.A, self.mean])]))
        self.m = m
        self.size = self.rows.shape[1]

    def factorize(self) -> bool:
        """Factorize the system of the module text, if its factor is sparse enough."""
        E = self.rows
        size = self.size
        self._E_T = sp.csr_array(E.T)
        both = sp.block_array([[sp.eye_array(size), E.T], [E, sp.eye_array(len(E.indptr) - 1)]])
        if band_work(sp.csr_array(both)) > BAND_WORK:
            return False
        shift = sp.diags_array(np.repeat([0.0, -1.0 - SHIFT], [size, E.shape[0]]))
        self._factor = symmetric_factor(both + shift)
        return True

    def solve(self, r: Array) -> Array:
        """h with H_sin h = r, as far as r lies in its range."""
        E = self.rows
        size = self.size
        right = np.zeros(size + E.shape[0])
        right[-self.m :] = -r
        found = np.zeros_like(right)
        for _ in range(SWEEPS):
            w = found[:size]
            y = found[size:]
            left = right - np.concatenate([w + self._E_T @ y, E @ w])
            found += self._factor.solve(left)
        return found[-self.m :]

    def h_cos(self, h: Array, *, deviations: bool = True) -> Array:
        """H_cos h; without the deviations that of the rebalanced problem."""
        total = np.zeros(self.m)
        if self.onto_D is not None:
            total += self.mean @ self.onto_D(self.mean.T @ h)
        return total + self.deviations @ (self.deviations.T @ h) if deviations else total

    def smallest(self, tolerance: float, *, deviations: bool = True) -> SparseAngles:
        """The smallest angles: all that are zero, and some more."""

        def cosines(h: Array) -> Array:
            return self.h_cos(h, deviations=deviations)

        start = self.solve(cosines(np.random.default_rng(0).standard_normal(self.m)))
        if not np.linalg.norm(cosines(start)) > 0:
            return SparseAngles()
        shape = (self.m, self.m)
        M = spla.LinearOperator(shape, matvec=cosines, dtype=np.float64)
        inverse = spla.LinearOperator(shape, matvec=self.solve, dtype=np.float64)
        for count in COUNTS:
            k = min(count, self.m - 1)
            # H_sin h = t H_cos h near t = 0; ARPACK never multiplies by H_sin itself.
            vectors = spla.eigsh(inverse, k=k, M=M, sigma=0.0, OPinv=inverse, v0=start, tol=1e-9)[1]
            angles, directions = self._angles(vectors, deviations)
            common = angles.common(tolerance)
            if common < len(angles.sines):
                return SparseAngles(angles, directions[:, common] * self.scale)
        return SparseAngles(angles)

    def _angles(self, h: Array, deviations: bool) -> tuple[Angles, Array]:
        """Angles in the span of the columns of h, ascending, with a direction for each."""
        x = self.A.T @ h
        y = self.mean.T @ h
        inside = np.zeros_like(y)
        for k in range(h.shape[1]):
            x[:, k] -= onto_local(self.problem, self.onto_C, x[:, k])
            inside[:, k] = 0.0 if self.onto_D is None else self.onto_D(y[:, k])
        apart = self.deviations.T @ h if deviations else np.zeros((0, h.shape[1]))
        outer = len(x) + len(y)
        Q, R = np.linalg.qr(np.vstack([x, y - inside, apart, inside]))
        _, sines, right = np.linalg.svd(Q[:outer], full_matrices=False)
        angles = paired(sines, np.linalg.svd(Q[outer:], compute_uv=False))
        return angles, np.asarray(h @ np.linalg.solve(R, right[::-1].T))


def sparse_problem_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry | None:
    """Angles from a sparse factorization as in the module text; None where it would fill."""
    if not explicit(problem) or problem.m < FEW_ROWS:
        return None
    limit = LARGE_OVERLAP if tolerance is None else tolerance
    onto_C = local_projections(problem, dense_limit)
    onto_D = shared_projection(problem, dense_limit)
    system = SparseProblem(problem, onto_C, onto_D)
    if not system.factorize():
        return None
    found = system.smallest(limit)
    shares: tuple[tuple[float, ...], float] = ((0.0,) * problem.n, 0.0)
    rebalanced = 1.0
    if found.direction is not None:
        blocks = problem.blocks("B")
        z = [
            multiply(b, found.direction, adjoint=True) if b is not None else np.zeros(problem.q)
            for b in blocks
        ]
        shares = energy_shares(np.stack(z), onto_D)
        uniform = system.smallest(limit, deviations=False).angles
        rebalanced = pair_geometry(uniform, (system.size, system.size), limit).cross_factor
    pair = pair_geometry(found.angles, (system.size, system.size), limit)
    coupled = lanczos_spectrum(problem.m, coupled_gram(problem, onto_C))
    return Geometry(
        **pair_fields(pair, found.angles, method="sparse", tolerance=limit),
        ranks=(None, None if onto_D is not None else (problem.n - 1) * problem.q),
        structural=structural_parameters(problem, coupled, network, dense_limit),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
        notes=("Ranks are not computed, and only the smallest angles are listed.",),
    )


def explicit(problem: Problem) -> bool:
    """Whether all blocks show their entries."""
    blocks = [b for name in "ABCD" for b in problem.blocks(name)]
    return all(b is None or has_entries(b) for b in blocks)
