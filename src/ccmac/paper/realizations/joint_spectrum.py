"""Extreme positive eigenvalues of K_1'K_1 + eta^2 K_2'K_2, for the jointly normalized stack."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ccmac.angles.principal import weighted_extremes
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import filled_in, has_entries
from ccmac.linalg.lanczos import lanczos
from ccmac.linalg.tolerances import DENSE_MARGIN, GRAM_RANK
from ccmac.paper.envelope import scalar_balance
from ccmac.problem import Problem
from ccmac.realizations.base import Interval
from ccmac.workspace.declared import CurvatureTable

if TYPE_CHECKING:
    from ccmac.paper.realizations.joint import JointSystem


@dataclass(frozen=True)
class JointSpectrum(ABC):
    """(mu_j, L_j) of both channels (None: the channel is absent) and the stack's own ends."""

    first: tuple[float, float] | None
    second: tuple[float, float] | None

    def balance(self) -> float:
        """eta*^2 = sqrt(mu_1 L_1 / (mu_2 L_2)); 1 when a channel is absent."""
        if self.first is None or self.second is None:
            return 1.0
        return scalar_balance(self.first, self.second)

    @abstractmethod
    def exact(self, balance: float) -> Interval:
        """Extreme positive eigenvalues of G."""


@dataclass(frozen=True)
class DenseSpectrum(JointSpectrum):
    """From the Gram matrices G_1 and G_2."""

    G_1: Array
    G_2: Array

    def exact(self, balance: float) -> Interval:
        low, high = _ends(self.G_1 + balance * self.G_2) or (1.0, 1.0)
        return Interval(low * (1 - DENSE_MARGIN), high * (1 + DENSE_MARGIN), "exhausted")


@dataclass(frozen=True)
class IdentitySpectrum(JointSpectrum):
    """B_i = beta_i I, C = D = 0: G splits into planes, one for each singular value s of the A_i.

    The A_i stand side by side. A plane carries |r|^2/n on r = (s, sqrt(n) mean beta, dev) and eta^2
    on (0, 0, 1), dev the length of beta's deviation from its mean: two weighted projectors at
    cosine dev/|r|.
    """

    squares: Array  # s^2, with a zero when there are more equations than singular values
    beta: Array
    agents: int

    def exact(self, balance: float) -> Interval:
        """Over all planes, and eta^2 alone on what disagreement is left."""
        n = self.agents
        deviation = float(np.linalg.norm(self.beta - self.beta.mean()))
        length = float(np.linalg.norm(self.beta))
        lows = []
        highs = []
        consensus = self.second is not None
        if consensus and n > 1 + (deviation > 0):
            lows = [balance]
            highs = [balance]
        for square in self.squares:
            a = (float(square) + length**2) / n
            if a == 0:
                continue
            cosine = min(deviation / math.sqrt(a * n), 1.0)
            low, high = weighted_extremes(a, balance, cosine) if consensus else (a, a)
            lows.append(low if 1 - cosine > GRAM_RANK else high)
            highs.append(high)
        return Interval(min(lows) * (1 - DENSE_MARGIN), max(highs) * (1 + DENSE_MARGIN))


@dataclass(frozen=True)
class RitzSpectrum(JointSpectrum):
    """Lanczos on execution vectors; the low end is halved unless the run exhausted the space."""

    ends: Callable[[float, float], Interval]

    def exact(self, balance: float) -> Interval:
        return self.ends(1.0, balance)


def joint_spectrum(
    problem: Problem, system: JointSystem, rng: np.random.Generator, table: CurvatureTable
) -> JointSpectrum:
    """The cheapest of: closed form, dense (canonical only), Lanczos (charged to this phase)."""
    space = system.space
    special: JointSpectrum | None = None
    if system.modelled is None:
        beta = table.multiples
        special = None if beta is None else _executed_identity(problem, system, beta, rng)
    else:
        special = _identity_spectrum(problem, system, table.multiple)
        if special is None and space.size <= 1200:
            with space.runtime.ledger.observing():
                G_1 = _dense(system, 1.0, 0.0)
                G_2 = _dense(system, 0.0, 1.0)
            special = DenseSpectrum(_ends(G_1), _ends(G_2), G_1, G_2)
    if special is not None:
        return special
    seed = int(rng.integers(2**31))
    whole = space.runtime.n * space.q <= 4000
    steps, keep = (120, 10**6) if whole else (60, 2)

    def ends(first: float, second: float) -> Interval:
        return _with_margin(*system.weighted(first, second).extremes(seed, steps, keep))

    first = second = None
    if system.first:
        found = ends(1.0, 0.0)
        first = (found.low, found.high)
    if system.second:
        second = (1.0, 1.0)
        if not system.D.empty:
            found = ends(0.0, 1.0)
            second = (found.low, found.high)
    return RitzSpectrum(first, second, ends)


def _dense(system: JointSystem, first: float, second: float) -> Array:
    linear = system.homogeneous().weighted(first, second)
    columns = [linear.residual(unit)[0] for unit in np.eye(system.space.size)]
    matrix = np.stack(columns, axis=1) if columns else np.zeros((0, 0))
    return (matrix + matrix.T) / 2


def _ends(gram: Array) -> tuple[float, float] | None:
    values = np.linalg.eigvalsh(gram)
    positive = (
        values[values > GRAM_RANK * values[-1]] if len(values) and values[-1] > 0 else values[:0]
    )
    return (float(positive[0]), float(positive[-1])) if len(positive) else None


def _identity_spectrum(
    problem: Problem, system: JointSystem, beta: Array
) -> IdentitySpectrum | None:
    """``beta``: the beta_i where B_i = beta_i I, NaN where it is not."""
    if not (system.C.empty and system.D.empty) or system.coupling.A.empty:
        return None
    blocks = problem.blocks("A")
    explicit = all(b is None or has_entries(b) for b in blocks)
    if not explicit or sum(problem.d.values()) > 3000 or np.isnan(beta).any():
        return None
    values = np.linalg.eigvalsh(_gram(blocks, problem))
    rank = int(np.count_nonzero(values > GRAM_RANK * max(values[-1], 0.0)))
    squares: Array = np.asarray(values[len(values) - rank :], dtype=np.float64)
    if problem.m > rank:
        squares = np.concatenate([[0.0], squares])
    return _planes(system, squares, beta)


def _executed_identity(
    problem: Problem, system: JointSystem, beta: Array, rng: np.random.Generator
) -> IdentitySpectrum | None:
    """From the ends of s^2 alone: both eigenvalues of a plane grow with s.

    The lower end is 0 when there are more equations than variables x; the upper one is n lambda_max
    of S = (1/n) sum H_i H_i' less |beta|^2, by Lanczos with its residual as margin.
    """
    runtime = system.runtime
    coupling = system.coupling
    if not (system.C.empty and system.D.empty) or coupling.A.empty:
        return None
    variables = runtime.total(np.array([[float(d)] for d in problem.d.values()]))[0]
    spread = float(np.linalg.norm(beta - beta.mean())) / float(np.linalg.norm(beta))
    if variables >= problem.m or 1 - spread <= GRAM_RANK:
        return None

    def contribution(v: Array) -> Array:
        return coupling.contributions(*coupling.adjoint(v))[0]

    start = rng.standard_normal((1, coupling.width))
    krylov = lanczos(runtime, contribution, start, 30)
    values, vectors = np.linalg.eigh(krylov.tridiagonal())
    top = float(values[-1]) + float(krylov.beta[-1] * abs(vectors[-1, -1]))
    square = max(problem.n * top - float(beta @ beta), 0.0)
    return _planes(system, np.array([0.0, square]), beta)


def _planes(system: JointSystem, squares: Array, beta: Array) -> IdentitySpectrum:
    n = system.runtime.n
    lengths = (squares + beta @ beta) / n
    positive = lengths[lengths > 0]
    first = (float(positive.min()), float(positive.max())) if positive.size else None
    second = (1.0, 1.0) if system.consensus else None
    return IdentitySpectrum(first, second, squares, beta, n)


def _gram(blocks: list[Any], problem: Problem) -> Array:
    """[A_1 .. A_n]'[A_1 .. A_n], total d x total d."""
    filled = filled_in(blocks, repeat(problem.m, len(blocks)), problem.d.values())
    row = sp.csr_array(sp.hstack(filled, format="csr"))
    return np.asarray((row.T @ row).toarray())


def _with_margin(low: float, high: float, exhausted: bool) -> Interval:
    if exhausted:
        return Interval(low * (1 - 1e-6), high * (1 + 1e-6), "exhausted")
    if low <= 0:
        raise InputError(
            "joint: Lanczos cannot tell the least eigenvalue from zero; rescale blocks"
        )
    return Interval(0.5 * low, 1.1 * high, "estimated")
