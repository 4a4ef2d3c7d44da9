"""Structural parameters of the channels (Equation eq:normalization-structural).

The names are those of Table tab:notation-reference.

    h    = max_i lambda_max(A_i A_i' + B_i B_i')
    S_HC = (1/n) sum_i (A_i P_{Ker C_i} A_i' + B_i B_i')
    d_D  = max_i lambda_max(D_i' D_i)
    S_D  = (1/n) sum_i D_i' D_i

with mu their least positive eigenvalues and k_1 = h / mu_HC, k_2 = d_D / mu_D. Absent blocks have
ratio one. Values that an iteration delivered are named in ``estimated``; what is not known is
None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse.linalg as spla

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries, side_by_side
from ccmac.linalg.lanczos import top_ritz
from ccmac.linalg.ranks import squared_range
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.problem.base import has


@dataclass(frozen=True)
class Structural:
    """Spectral constants of the blocks; ``kappa_W`` only when a network is given."""

    h: float
    mu_HC: float | None
    lambda_HC: float
    rank_HC: int | None
    k_1: float | None
    d_D: float
    mu_D: float | None
    lambda_D: float
    rank_D: int | None
    k_2: float | None
    l_C: float | None
    u_C: float
    rank_C: int | None
    kappa_C: float | None
    kappa_W: float | None
    estimated: tuple[str, ...] = ()


@dataclass(frozen=True)
class PositiveSpectrum:
    """Least positive and largest eigenvalue of a positive semidefinite matrix, and its rank."""

    low: float | None
    high: float
    rank: int | None
    estimated: bool = False


def structural_parameters(
    problem: Problem, coupled: PositiveSpectrum, network: Network | None, dense_limit: int
) -> Structural:
    """All constants; ``coupled`` is the spectrum of S_HC, found with the angles."""
    agents = problem.agents.values()
    n = problem.n
    tops = [_top([a.A, a.B], dense_limit) for a in agents]
    local = [s for a in agents if (s := spectrum([a.C], dense_limit)).rank != 0]
    D = [a.D for a in agents if has(a.D)]
    tops_D = [_top([block], dense_limit) for block in D]
    shared = spectrum(D, dense_limit)
    h = max((s.high for s in tops), default=0.0)
    d_D = max((s.high for s in tops_D), default=0.0)
    mu_D = None if shared.low is None else shared.low / n
    lows = [s.low for s in local if s.low is not None]
    l_C = min(lows, default=0.0) if len(lows) == len(local) else None
    u_C = max((s.high for s in local), default=0.0)
    ranks = [s.rank for s in local if s.rank is not None]
    known = {
        ("mu_HC", "lambda_HC"): [coupled],
        ("h",): tops,
        ("l_C", "u_C"): local,
        ("d_D",): tops_D,
        ("mu_D", "lambda_D"): [shared],
    }
    estimated = [
        n for names, found in known.items() for n in names if any(s.estimated for s in found)
    ]
    return Structural(
        h=h,
        mu_HC=coupled.low,
        lambda_HC=coupled.high,
        rank_HC=coupled.rank,
        k_1=1.0 if coupled.rank == 0 else coupled.low and h / coupled.low,
        d_D=d_D,
        mu_D=mu_D,
        lambda_D=shared.high / n,
        rank_D=shared.rank,
        k_2=1.0 if shared.rank == 0 else mu_D and d_D / mu_D,
        l_C=l_C,
        u_C=u_C,
        rank_C=sum(ranks) if len(ranks) == len(local) else None,
        kappa_C=1.0 if not local else l_C and u_C / l_C,
        kappa_W=None if network is None else network.condition,
        estimated=tuple(chain.from_iterable(estimated)),
    )


def spectrum(blocks: Sequence[Any], dense_limit: int) -> PositiveSpectrum:
    """Positive squared singular values of the blocks one under the other; rank as everywhere."""
    present = [b for b in blocks if has(b)]
    if not present:
        return PositiveSpectrum(0.0, 0.0, 0)
    rows = sum(b.shape[0] for b in present)
    columns = present[0].shape[1]
    if min(rows, columns) <= dense_limit and rows * columns <= 50 * dense_limit**2:
        rank, low, high = squared_range(np.vstack([dense(b) for b in present]))
        return PositiveSpectrum(low, high, rank)
    stacked = [spla.aslinearoperator(b).T for b in present]
    transposed = side_by_side(stacked, columns, [b.shape[0] for b in present])
    return lanczos_spectrum(min(rows, columns), _small_gram(transposed))


def lanczos_spectrum(
    size: int, gram: Callable[[Array], Array], *, low_end: bool = True
) -> PositiveSpectrum:
    """Both ends (or only the high one) of a positive semidefinite operator by Lanczos.

    The high end is approached from below and good to about 1e-9; the low end, approached from
    above, is None (and the rank too) when it may be zero or did not converge.
    """
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((size, min(size, 2))))[0]
    top = top_ritz(gram, start, lambda value, residual, _: residual <= 1e-5 * value)
    high = float(top.values[0])
    if high <= 0:
        return PositiveSpectrum(0.0, 0.0, 0)
    if not low_end:
        return PositiveSpectrum(None, high, None, estimated=True)
    # The residual is added: no eigenvalue may end up below zero in the flipped operator.
    ceiling = high + top.residual
    flipped = top_ritz(
        lambda v: ceiling * v - gram(v),
        start,
        lambda value, residual, _: residual <= 1e-5 * max(ceiling - value, 1e-4 * ceiling),
    )
    low = ceiling - float(flipped.values[0])
    # The difference of two ends, each good to 1e-10: less is not distinguishable from zero.
    if low <= 1e-7 * high or flipped.residual > 1e-2 * low:
        return PositiveSpectrum(None, high, None, estimated=True)
    return PositiveSpectrum(low, high, size, estimated=True)


def _top(blocks: Sequence[Any], dense_limit: int) -> PositiveSpectrum:
    """The high end of [M_1 M_2]'s spectrum only."""
    present = [b for b in blocks if has(b)]
    if not present:
        return PositiveSpectrum(0.0, 0.0, 0)
    rows = present[0].shape[0]
    if rows <= dense_limit and all(has_entries(b) for b in present):
        gram = np.sum([dense(b @ b.T) for b in present], axis=0)
        return PositiveSpectrum(None, float(sla.eigvalsh(gram)[-1]), None)
    widths = [b.shape[1] for b in present]
    whole = side_by_side(present, rows, widths)
    return lanczos_spectrum(min(rows, sum(widths)), _small_gram(whole), low_end=False)


def _small_gram(M: Any) -> Callable[[Array], Array]:
    """M M' or M'M, whichever is smaller."""
    if M.shape[0] <= M.shape[1]:
        return lambda v: np.asarray(M.matvec(M.rmatvec(v)))
    return lambda u: np.asarray(M.rmatvec(M.matvec(u)))
