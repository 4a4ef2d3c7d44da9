"""Structural parameters of the channels (Equation eq:normalization-structural).

The names are those of Table tab:notation-reference.

    h    = max_i lambda_max(A_i A_i' + B_i B_i')
    S_HC = (1/n) sum_i (A_i P_{Ker C_i} A_i' + B_i B_i')
    d_D  = max_i lambda_max(D_i' D_i)
    S_D  = (1/n) sum_i D_i' D_i

with mu their least positive eigenvalues and k_1 = h / mu_HC, k_2 = d_D / mu_D. Absent blocks have
ratio one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from ccmac.linalg.blocks import dense
from ccmac.linalg.ranks import squared_range
from ccmac.network import Network
from ccmac.problem import Problem
from ccmac.problem.base import has


@dataclass(frozen=True)
class Structural:
    """Spectral constants of the blocks; ``kappa_W`` only when a network is given."""

    h: float
    mu_HC: float
    lambda_HC: float
    rank_HC: int
    k_1: float
    d_D: float
    mu_D: float
    lambda_D: float
    rank_D: int
    k_2: float
    l_C: float
    u_C: float
    rank_C: int
    kappa_C: float
    kappa_W: float | None


@dataclass(frozen=True)
class PositiveSpectrum:
    """Least positive and largest eigenvalue of a positive semidefinite matrix, and its rank."""

    low: float
    high: float
    rank: int


def structural_parameters(
    problem: Problem, coupled: PositiveSpectrum, network: Network | None
) -> Structural:
    """All constants; ``coupled`` is the spectrum of S_HC, found with the angles."""
    agents = problem.agents.values()
    n = problem.n
    local = [s for a in agents if (s := spectrum([a.C])).rank]
    D = [a.D for a in agents if has(a.D)]
    shared = spectrum(D)
    h = max((_top([a.A, a.B]) for a in agents), default=0.0)
    d_D = max((spectrum([block]).high for block in D), default=0.0)
    mu_D = shared.low / n
    l_C = min((s.low for s in local), default=0.0)
    u_C = max((s.high for s in local), default=0.0)
    return Structural(
        h=h,
        mu_HC=coupled.low,
        lambda_HC=coupled.high,
        rank_HC=coupled.rank,
        k_1=h / coupled.low if coupled.rank else 1.0,
        d_D=d_D,
        mu_D=mu_D,
        lambda_D=shared.high / n,
        rank_D=shared.rank,
        k_2=d_D / mu_D if shared.rank else 1.0,
        l_C=l_C,
        u_C=u_C,
        rank_C=sum(s.rank for s in local),
        kappa_C=u_C / l_C if local else 1.0,
        kappa_W=None if network is None else network.condition,
    )


def spectrum(blocks: Sequence[Any]) -> PositiveSpectrum:
    """Positive squared singular values of the blocks one under the other; rank as everywhere."""
    present = [b for b in blocks if has(b)]
    if not present:
        return PositiveSpectrum(0.0, 0.0, 0)
    rank, low, high = squared_range(np.vstack([dense(b) for b in present]))
    return PositiveSpectrum(low, high, rank)


def _top(blocks: Sequence[Any]) -> float:
    """The largest eigenvalue of M M', M the blocks side by side."""
    present = [dense(b) for b in blocks if has(b)]
    if not present:
        return 0.0
    M = np.hstack(present)
    gram = M @ M.T if M.shape[0] <= M.shape[1] else M.T @ M
    return float(sla.eigvalsh(gram)[-1])
