"""Normalizing the canonical channels: spectra of K_1 K_1' and K_2 K_2', then p_j or whitening."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ccmac.angles.structural import Structural
from ccmac.errors import InputError
from ccmac.linalg.tolerances import DENSE_MARGIN
from ccmac.problem import Problem
from ccmac.realizations.canonical.channels import Consensus, CoupledLocal, SharedConsensus
from ccmac.realizations.normalized import (
    Channel,
    NormalizedChannel,
    PolynomialChannel,
    WhitenedChannel,
    dense_matrix,
    inverse_root_polynomial,
    squared_singular_range,
)
from ccmac.realizations.supplied import Certificates
from ccmac.runtime.space import Space

DENSE_ROWS = 1500
DENSE_ENTRIES = 4_000_000


@dataclass(frozen=True)
class Rule:
    """How a normalizer is chosen: ``paper``, ``tight`` or ``exact``; its accuracy or degree."""

    name: str
    accuracy: float
    degree: int | None = None


def couples(problem: Problem) -> bool:
    """Whether some A_i or B_i is given."""
    return problem.m > 0 and any(b is not None for k in "AB" for b in problem.blocks(k))


def fits_dense(problem: Problem, space: Space) -> bool:
    """Whether both channels fit a dense factorization."""
    rows = max(problem.m + sum(problem.p.values()), sum(problem.r.values()) + problem.n * problem.q)
    return rows <= DENSE_ROWS and rows * space.size <= DENSE_ENTRIES


def first_channel(
    problem: Problem,
    space: Space,
    given: Certificates,
    structural: Structural | None,
    rule: Rule,
) -> NormalizedChannel | None:
    """K^_1; None when it has no rows or only zeros."""
    channel = CoupledLocal(problem, space, coupled=couples(problem))
    if not len(channel.right) or not space.size:
        return None
    bounds = None
    if not channel.local:
        bounds = _known(given.mu_HC, given.h)
    if bounds is None and structural is not None and not fits_dense(problem, space):
        bounds = _first_bounds(structural, channel)
    return _normalized(channel, space, bounds, rule, ("K_1", "h and mu_HC"))


def _first_bounds(s: Structural, channel: CoupledLocal) -> tuple[float, float] | None:
    """Spectrum of K_1 K_1' from S_HC: exact without C, an enclosure with it.

    With t = y_0 + g, y_0 in Range(C'), and any theta <= 1:
    ||K_1 t||^2 >= (l_C - theta lambda) ||y_0||^2 + theta (mu_HC/2) ||g||^2.
    """
    slack = 1e-6 if s.estimated else DENSE_MARGIN
    if not channel.local:
        return _known(s.mu_HC and s.mu_HC * (1 - slack), s.lambda_HC * (1 + slack))
    if not channel.m:
        return _known(s.l_C and s.l_C * (1 - slack), s.u_C * (1 + slack))
    if s.mu_HC is None or s.l_C is None:
        return None
    top = s.h * (1 + slack)
    if s.rank_HC == 0:
        return s.l_C * (1 - slack), top + s.u_C
    theta = min(1.0, s.l_C / (top + s.mu_HC / 2))
    return theta * s.mu_HC / 2 * (1 - slack), top + s.u_C * (1 + slack)


def second_channel(
    problem: Problem,
    space: Space,
    given: Certificates,
    structural: Structural | None,
    rule: Rule,
) -> NormalizedChannel | None:
    """K^_2; the consensus projector itself when there is no D, None for one agent without D."""
    blocks = [b for b in problem.blocks("D") if b is not None and 0 not in b.shape]
    if not problem.q or (not blocks and problem.n == 1):
        return None
    if not blocks:
        return Consensus(space)
    bounds = _known(given.mu_D, given.d_D)
    if bounds is None and structural is not None and not fits_dense(problem, space):
        bounds = _known(structural.mu_D, structural.d_D)
    if bounds is not None:
        # 2 d_D on the consensus rows keeps both parts of the channel in [mu_D/2, 3 d_D].
        channel = SharedConsensus(problem, space, math.sqrt(2.0 * bounds[1]))
        bounds = (bounds[0] / 2, 3.0 * bounds[1])
    else:
        with space.runtime.ledger.observing():
            plain = SharedConsensus(problem, space, 0.0)
        _, top = squared_singular_range(dense_matrix(plain, space.runtime.ledger))
        if not top and problem.n > 1:
            return Consensus(space)
        channel = SharedConsensus(problem, space, math.sqrt(top))
    return _normalized(channel, space, bounds, replace(rule, degree=None), ("K_2", "d_D and mu_D"))


def _normalized(
    channel: Channel,
    space: Space,
    bounds: tuple[float, float] | None,
    rule: Rule,
    names: tuple[str, str],
) -> NormalizedChannel | None:
    size = len(channel.right) * space.size
    dense = len(channel.right) <= DENSE_ROWS and size <= DENSE_ENTRIES
    exact = rule.name == "exact" and rule.degree is None
    if exact or bounds is None:
        if not dense:
            remedy = "take rule='paper'" if exact else f"supply Certificates with {names[1]}"
            raise InputError(
                f"canonical: {names[0]} is too large for a dense factorization; {remedy}"
            )
        matrix = dense_matrix(channel, space.runtime.ledger)
        low, high = squared_singular_range(matrix)
        if high == 0.0:
            return None
        if exact:
            return WhitenedChannel(channel, matrix, space.runtime.ledger)
        bounds = (low * (1 - DENSE_MARGIN), high * (1 + DENSE_MARGIN))
        if high <= low * (1 + DENSE_MARGIN):
            bounds = (low, low)
    polynomial = inverse_root_polynomial(
        *bounds, accuracy=rule.accuracy, rule=rule.name, degree=rule.degree
    )
    return PolynomialChannel(channel, polynomial)


def _known(low: float | None, high: float | None) -> tuple[float, float] | None:
    return (low, high) if low and high else None
