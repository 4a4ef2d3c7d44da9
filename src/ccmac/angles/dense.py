"""Principal angles by dense decompositions of the channels' row bases.

Of a stack: bases by singular value decompositions. Of a problem nothing of size n q is decomposed,
because the row space of K_2 is known: all disagreement, and 1 (x) R with R = span of the rows of
all D_i. Row h of the coupled equations, cleared of what the C_i fix, is

    g(h) = (P_{Ker C_i} A_i' h, B_i' h)_i,

and with Bm the mean of the B_i and N the complement of R its parts have the squared lengths

    outside Range(K_2'):  sum_i ||P_{Ker C_i} A_i' h||^2 + n ||P_N Bm' h||^2     = h' H_sin h
    inside it:            sum_i ||(B_i - Bm)' h||^2      + n ||P_R Bm' h||^2     = h' H_cos h

so the squared cosines are the eigenvalues of (H_cos, H_sin + H_cos); with C = D = 0 this is
Proposition prop:heterogeneity. Gram matrices would square the angles, so the rows themselves are
stacked and split by a CS decomposition. Cost: (d + n q) m^2 operations, m^2 numbers of memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from ccmac.angles.principal import (
    NO_ANGLES,
    Angles,
    overlap_tolerance,
    pair_geometry,
    paired,
    principal_angles,
    projector_sum_factor,
)
from ccmac.angles.report import Geometry, pair_fields
from ccmac.angles.structural import PositiveSpectrum, structural_parameters
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, filled_in, has_entries, identity_multiples, multiply
from ccmac.linalg.ranks import numerical_rank, row_space
from ccmac.network import Network
from ccmac.objectives import SquaredDistance
from ccmac.problem import Agent, Problem
from ccmac.problem.base import block_sum
from ccmac.stack import Stack


# -- a stack ---------------------------------------------------------------------------------------
def stack_geometry(stack: Stack, tolerance: float | None) -> Geometry:
    """Angles of every pair of channels; of three or more also the factor of the projector sum."""
    spaces = [row_space(dense(M)) for M, _ in stack.channels]
    limit = overlap_tolerance(max((s.condition for s in spaces), default=1.0), tolerance)
    ranks = tuple(s.rank for s in spaces)
    bases = [s.basis for s in spaces]
    pairwise = np.eye(len(spaces))
    worst = pair_geometry(NO_ANGLES, (0, 0), limit)
    angles = NO_ANGLES
    for k, (i, j) in enumerate(itertools.combinations(range(len(spaces)), 2)):
        between = principal_angles(bases[i], bases[j])
        pair = pair_geometry(between, (ranks[i], ranks[j]), limit)
        pairwise[i, j] = pairwise[j, i] = pair.cosine
        if k == 0 or pair.cosine > worst.cosine:
            worst = pair
            angles = between
    fields = pair_fields(worst, angles, method="dense", tolerance=limit)
    if len(spaces) != 2:
        factor = projector_sum_factor(bases, limit)
        fields |= {"cross_factor": factor, "multi_channel_factor": factor}
    return Geometry(**fields, ranks=ranks, pairwise=pairwise)


# -- a problem -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ClearedRows:
    """The rows g(h), a column for each coupled equation: F'F is the matrix named.

    ``outside``: H_sin. ``deviations`` and ``shared``: the two sums of H_cos. ``lengths`` are those
    of the user's rows (A_1 ... A_n B_1 ... B_n), before anything was projected. ``R`` is an
    orthonormal basis of the rows of all D_i.
    """

    outside: Array
    deviations: Array
    shared: Array
    lengths: Array
    rank_C: int
    R: Array

    @classmethod
    def of(cls, problem: Problem) -> ClearedRows:
        """The cleared rows of all agents of a problem."""
        n = problem.n
        m = problem.m
        mean = mean_block(problem)
        mean = None if mean is None else dense(mean)
        D = [np.zeros((0, problem.q)), *(dense(D) for D in problem.blocks("D") if D is not None)]
        R = row_space(np.vstack(D)).basis
        outside = []
        deviations = []
        squares = np.zeros(m)
        rank_C = 0
        for agent in problem.agents.values():
            C = None if agent.C is None else row_space(dense(agent.C)).basis
            rank_C += 0 if C is None else C.shape[1]
            if agent.A is not None:
                A = dense(agent.A)
                squares += np.sum(A**2, axis=1)
                outside.append(A if C is None else A - (A @ C) @ C.T)
            if agent.B is not None:
                squares += np.sum(dense(agent.B) ** 2, axis=1)
            if mean is not None and n > 1:
                deviations.append(-mean if agent.B is None else dense(agent.B) - mean)
        shared = []
        if mean is not None:
            common = np.sqrt(n) * mean
            shared = [common @ R]
            outside.append(common - (common @ R) @ R.T if R.shape[1] else common)
        parts = [folded(blocks, m) for blocks in (outside, deviations, shared)]
        return cls(parts[0], parts[1], parts[2], np.sqrt(squares), rank_C, R)

    def split(self, *, deviations: bool = True) -> Split:
        """The angles; without the deviations they are those of the rebalanced problem."""
        inside = np.vstack([self.deviations, self.shared]) if deviations else self.shared
        scale = np.where(self.lengths > 0, self.lengths, 1.0)
        whole = np.vstack([self.outside, inside]) / scale
        empty = Split(NO_ANGLES, 0, 1.0, np.zeros((len(scale), 0)), 0.0)
        if whole.size == 0:
            return empty
        left, singular, right = np.linalg.svd(whole, full_matrices=False)
        # Rows had unit length before the projections, so what one cancelled is seen as zero.
        rank = numerical_rank(singular, whole.shape, scale=1.0)
        if rank == 0:
            return empty
        sines, by_sine = _descending(left[: len(self.outside), :rank])
        cosines, by_cosine = _descending(left[len(self.outside) :, :rank])
        angles = paired(sines, cosines)
        # Ascending angles: the smallest sines come last in by_sine, the largest cosines first.
        small = angles.sines < angles.cosines
        vectors = np.where(small[:, None], by_sine[::-1], by_cosine)
        combination = (right[:rank].T / singular[:rank]) / scale[:, None]
        condition = float(singular[0] / singular[rank - 1])
        least = 1 / float(np.linalg.norm(combination, 2))
        return Split(angles, rank, condition, combination @ vectors.T, least)


@dataclass(frozen=True)
class Split:
    """Angles with a direction h (column) for each, the rank and condition of the unit rows.

    ``least`` is the least singular value of the rows g(h) as they are, where they are independent.
    """

    angles: Angles
    rank: int
    condition: float
    directions: Array
    least: float


def problem_geometry(
    problem: Problem, network: Network | None, tolerance: float | None, dense_limit: int
) -> Geometry:
    """Everything about a problem's channels, to rounding."""
    rows = ClearedRows.of(problem)
    split = rows.split()
    ranks = (rows.rank_C + split.rank, (problem.n - 1) * problem.q + rows.R.shape[1])
    limit = overlap_tolerance(split.condition, tolerance)
    angles = split.angles.fitted(min(ranks))
    pair = pair_geometry(angles, ranks, limit)
    shares: tuple[tuple[float, ...], float] = ((0.0,) * problem.n, 0.0)
    rebalanced = 1.0
    if pair.cosine > 0:
        h = split.directions[:, pair.common]
        z = [
            np.zeros(problem.q) if B is None else multiply(B, h, adjoint=True)
            for B in problem.blocks("B")
        ]
        shares = energy_shares(np.stack(z), rows.R @ (rows.R.T @ np.mean(z, axis=0)))
        uniform = rows.split(deviations=False)
        uniform_ranks = (rows.rank_C + uniform.rank, ranks[1])
        fitted = uniform.angles.fitted(min(uniform_ranks))
        rebalanced = pair_geometry(fitted, uniform_ranks, limit).cross_factor
    coupled = _spectrum(rows, split, problem.n)
    return Geometry(
        **pair_fields(pair, angles, method="dense", tolerance=limit),
        ranks=ranks,
        structural=structural_parameters(problem, coupled, network, dense_limit),
        agents=shares[0],
        shared=shares[1],
        rebalanced_cross_factor=rebalanced,
    )


def _spectrum(rows: ClearedRows, split: Split, n: int) -> PositiveSpectrum:
    """Of S_HC, from the rows g(h) as they are."""
    if not split.rank:
        return PositiveSpectrum(0.0, 0.0, 0)
    singular = sla.svdvals(np.vstack([rows.outside, rows.deviations, rows.shared]))
    independent = split.rank == len(rows.lengths)
    low = split.least if independent else singular[split.rank - 1]
    return PositiveSpectrum(float(low**2) / n, float(singular[0] ** 2) / n, split.rank)


def fits(problem: Problem, limit: int) -> bool:
    """Whether dense decompositions of the coupled rows are affordable."""
    room = 50 * limit**2
    columns = sum(problem.d.values()) + (problem.n + 1) * problem.q
    side = min(problem.m, columns)
    sizes = [(problem.p[i], d) for i, d in problem.d.items()]
    sizes.append((sum(problem.r.values()), problem.q))
    return (
        side <= limit
        and columns * side**2 <= room * limit
        and problem.m * max(problem.q, columns if problem.m > columns else 0) <= room
        and all(min(size) <= limit and size[0] * size[1] <= room for size in sizes)
    )


def by_fewer_rows(
    problem: Problem, network: Network | None, tolerance: float | None, limit: int
) -> Geometry | None:
    """The geometry where B_i = beta_i I and there are more equations than entries of x, else None.

    [A_1 ... A_n] = Q [R_1 ... R_n]: the equations along Q become R_i x_i + beta_i z, and all others
    say beta_i z alike, so that one of them stands for all.
    """
    beta = identity_multiples(problem.blocks("B"))
    n = problem.n
    m = problem.m
    d = sum(problem.d.values())
    explicit = all(A is None or has_entries(A) for A in problem.blocks("A"))
    if beta is None or any(problem.r.values()) or not explicit or d >= m or d > limit:
        return None
    widths = problem.d.values()
    whole = sp.hstack(filled_in(problem.blocks("A"), repeat(m, n), widths), format="csr")
    R = folded((whole[start : start + 4096].T for start in range(0, m, 4096)), d)
    R = np.vstack([R, np.zeros((d + 1, d))])[: d + 1]
    A = np.split(R, np.cumsum(list(widths))[:-1], axis=1)
    eye = sp.eye_array(d + 1, format="csr")
    agents = [
        Agent(SquaredDistance(), A=A[k], B=beta[k] * eye, C=agent.C)
        for k, agent in enumerate(problem.agents.values())
    ]
    found = problem_geometry(Problem(agents), network, tolerance, limit)
    omitted = m - d - 1
    mean = float(beta.mean())
    angle = np.arctan2(np.sqrt(n) * abs(mean), np.linalg.norm(beta - mean))
    assert found.structural is not None
    return replace(
        found,
        ranks=(_more(found.ranks[0], omitted), _more(found.ranks[1], (n - 1) * omitted)),
        common_dimension=_more(found.common_dimension, omitted * (angle < found.tolerance)),
        structural=replace(found.structural, rank_HC=_more(found.structural.rank_HC, omitted)),
    )


# -- parts -----------------------------------------------------------------------------------------
def mean_block(problem: Problem) -> Any:
    """Bm = (1/n) sum_i B_i; None when B = 0."""
    total = block_sum(problem.blocks("B"))
    return None if total is None else total / problem.n


def energy_shares(z: Array, shared: Array) -> tuple[tuple[float, ...], float]:
    """Each agent's share, and D's, of what lies in Range(K_2') of a direction with parts z_i.

    ``shared`` is P_R of the mean of the z_i.
    """
    own = np.sum((z - z.mean(axis=0)) ** 2, axis=1)
    common = len(z) * float(np.sum(shared**2))
    total = (float(own.sum()) + common) or 1.0
    return tuple(float(e) for e in own / total), common / total


def folded(blocks: Iterable[Any], columns: int) -> Array:
    """F with F'F = sum of block block', of at most ``columns`` rows."""
    rows = np.zeros((0, columns))
    for block in blocks:
        rows = np.vstack([rows, dense(block).T])
        if len(rows) > 2 * columns:
            rows = np.asarray(np.linalg.qr(rows, mode="r"))
    return rows if len(rows) <= columns else np.asarray(np.linalg.qr(rows, mode="r"))


def _more(count: int | None, extra: int) -> int | None:
    return None if count is None else int(count + extra)


def _descending(block: Array) -> tuple[Array, Array]:
    """All singular values, zeros included, and right singular vectors as rows."""
    missing = max(block.shape[1] - block.shape[0], 0)
    padded = np.vstack([block, np.zeros((missing, block.shape[1]))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    return values, right
