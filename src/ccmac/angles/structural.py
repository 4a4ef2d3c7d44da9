"""Structural parameters of the channels (eq. normalization-structural).

    h    = max_i lambda_max(A_i A_i' + B_i B_i')
    S_HC = (1/n) sum_i (A_i P_{Ker C_i} A_i' + B_i B_i')
    d_D  = max_i lambda_max(D_i' D_i)
    S_D  = (1/n) sum_i D_i' D_i

with mu their least positive eigenvalues and k_1 = h / mu_HC, k_2 = d_D / mu_D. Absent blocks have
ratio one. Values that an iteration delivered are named in ``estimated``; what could not be told
is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse.linalg as spla

from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries, identity_multiple
from ccmac.linalg.families import side_by_side
from ccmac.linalg.lanczos import below, top_ritz
from ccmac.linalg.ranks import numerical_rank, squared_range
from ccmac.linalg.tolerances import LANCZOS_LOW, LANCZOS_LOW_RESIDUAL, RITZ
from ccmac.network import Network
from ccmac.problem import Problem


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


_ZERO = PositiveSpectrum(0.0, 0.0, 0)


def structural_parameters(
    problem: Problem, coupled: PositiveSpectrum, network: Network | None, dense_limit: int
) -> Structural:
    """All constants; ``coupled`` is the spectrum of S_HC, found with the angles."""
    notes = ["mu_HC", "lambda_HC"] if coupled.estimated else []
    agents = list(problem.agents.values())
    sizes = [_top([a.A, a.B], dense_limit) for a in agents]
    h = max((value for value, _ in sizes), default=0.0)
    notes += ["h"] if any(flag for _, flag in sizes) else []
    local = [spectrum([a.C], dense_limit) for a in agents if _present(a.C)]
    l_C, u_C, rank_C, kappa_C = _local(local)
    notes += ["l_C", "u_C"] if any(s.estimated for s in local) else []
    shared = [a.D for a in agents if _present(a.D)]
    tops = [_top([D], dense_limit) for D in shared]
    d_D = max((value for value, _ in tops), default=0.0)
    whole = spectrum(shared, dense_limit)
    notes += ["mu_D", "lambda_D"] if whole.estimated else []
    mu_D = None if whole.low is None else whole.low / problem.n
    return Structural(
        h=h,
        mu_HC=coupled.low,
        lambda_HC=coupled.high,
        rank_HC=coupled.rank,
        k_1=_ratio(h, coupled),
        d_D=d_D,
        mu_D=mu_D,
        lambda_D=whole.high / problem.n,
        rank_D=whole.rank,
        k_2=_ratio(d_D, PositiveSpectrum(mu_D, whole.high, whole.rank)),
        l_C=l_C,
        u_C=u_C,
        rank_C=rank_C,
        kappa_C=kappa_C,
        kappa_W=None if network is None else network.condition,
        estimated=tuple(notes),
    )


def spectrum(blocks: Sequence[Any], dense_limit: int) -> PositiveSpectrum:
    """Positive squared singular values of the blocks one under the other; rank as everywhere."""
    present = [b for b in blocks if _present(b)]
    if not present:
        return _ZERO
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
    above, is None (and with it the rank) when it cannot be told from zero or did not converge.
    """
    if size <= 40:
        values = np.linalg.eigvalsh(np.stack([gram(unit) for unit in np.eye(size)], axis=1))
        rank = numerical_rank(values[::-1], (size,))
        return PositiveSpectrum(float(values[-rank]), float(values[-1]), rank) if rank else _ZERO
    start = np.random.default_rng(0).standard_normal((size, 2))
    top = top_ritz(gram, start, np.asarray, enough=lambda value: RITZ * value)
    high = float(top.values[0])
    if high <= 0:
        return _ZERO
    if not low_end:
        return PositiveSpectrum(None, high, None, estimated=True)
    # The residual is added: no eigenvalue may end up below zero in the flipped operator.
    ceiling = high + float(top.residuals[0])
    flipped = top_ritz(lambda v: ceiling * v - gram(v), start, np.asarray, enough=below(ceiling))
    low = ceiling - float(flipped.values[0])
    residual = float(flipped.residuals[0])
    if low <= LANCZOS_LOW * high or residual > LANCZOS_LOW_RESIDUAL * low:
        return PositiveSpectrum(None, high, None, estimated=True)
    return PositiveSpectrum(low, high, size, estimated=True)


def _top(blocks: Sequence[Any], dense_limit: int) -> tuple[float, bool]:
    """(sigma_max([M_1 M_2])^2, whether Lanczos found it)."""
    present = [b for b in blocks if _present(b)]
    if not present:
        return 0.0, False
    widths = [b.shape[1] for b in present]
    rows = present[0].shape[0]
    columns = sum(widths)
    explicit = all(has_entries(b) for b in present)
    if explicit and rows <= dense_limit:
        grams = np.stack([dense(b @ b.T) for b in present])
        return float(sla.eigvalsh(grams.sum(axis=0))[-1]), False
    if explicit and columns <= dense_limit and len(present) == 1:
        return float(sla.eigvalsh(dense(present[0].T @ present[0]))[-1]), False
    multiple = identity_multiple(present[-1])
    if len(present) == 2 and multiple is not None:
        value, estimated = _top(present[:1], dense_limit)
        return value + multiple**2, estimated
    whole = side_by_side(present, rows, widths)
    found = lanczos_spectrum(min(rows, columns), _small_gram(whole), low_end=False)
    return found.high, found.estimated


def _small_gram(M: Any) -> Callable[[Array], Array]:
    """M M' or M'M, whichever is smaller."""
    if M.shape[0] <= M.shape[1]:
        return lambda v: np.asarray(M.matvec(M.rmatvec(v)))
    return lambda u: np.asarray(M.rmatvec(M.matvec(u)))


def _present(block: Any) -> bool:
    return block is not None and 0 not in block.shape


def _ratio(top: float, spectrum: PositiveSpectrum) -> float | None:
    if spectrum.rank == 0:
        return 1.0
    return None if spectrum.low is None else top / spectrum.low


def _local(
    spectra: Sequence[PositiveSpectrum],
) -> tuple[float | None, float, int | None, float | None]:
    """(l_C, u_C, rank, kappa_C) over the agents whose C_i is not zero."""
    live = [s for s in spectra if s.rank != 0]
    if not live:
        return 0.0, 0.0, 0, 1.0
    high = max(s.high for s in live)
    ranks = [s.rank for s in live]
    rank = None if None in ranks else sum(r for r in ranks if r is not None)
    lows = [s.low for s in live if s.low is not None]
    if len(lows) < len(live):
        return None, high, rank, None
    return min(lows), high, rank, high / min(lows)
