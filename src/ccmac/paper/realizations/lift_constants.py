"""Numbers the certified lift needs: supplied, or computed here.

Assumption ass:spectral-certificates.

What is missing is computed from Gram matrices averaged over the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.angles.principal import cross_factor
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import dense, has_entries
from ccmac.linalg.ranks import row_space, squared_range
from ccmac.linalg.tolerances import GRAM_RANK
from ccmac.problem import Problem
from ccmac.realizations.base import Certificates
from ccmac.runtime.base import Runtime


@dataclass(frozen=True)
class LiftConstants:
    """Bars and underbars of the lemma; a zero upper bound marks an absent block.

    ``mu_HC`` = 0 with h > 0 marks S_HC = 0.
    """

    h: float = 0.0
    mu_HC: float = 0.0
    d_D: float = 0.0
    mu_D: float = 0.0
    l_C: float = 0.0
    u_C: float = 0.0
    l_W: float = 0.0
    u_W: float = 0.0
    cross_factor: float = 1.0
    source: str = "supplied"


def lift_constants(problem: Problem, runtime: Runtime, given: Certificates) -> LiftConstants:
    """Supplied numbers first; the rest computed and charged to the current phase."""
    flags = runtime.gather(_presence(problem))
    wanted = {"cross_factor"}
    for column, names in enumerate((("h", "mu_HC"), ("l_C", "u_C"), ("d_D", "mu_D"))):
        wanted |= set(names) if flags[:, column].any() else set()
    missing = {name for name in wanted if getattr(given, name) is None}
    found = LiftConstants(0, 0, 0, 0, 0, 0, *runtime.network.extremes, 1.0)
    if missing:
        found = _from_grams(problem, runtime)
    supplied: dict[str, float] = {
        name: value
        for name in (*wanted, "l_W", "u_W")
        if (value := getattr(given, name)) is not None
    }
    return replace(found, **supplied, source="proved" if missing else "supplied")


def _presence(problem: Problem) -> Array:
    """Per agent: whether H_i, C_i, D_i have an entry that is not zero."""
    groups = [((a.A, a.B), (a.C,), (a.D,)) for a in problem.agents.values()]
    rows = [[float(any(map(nonzero, blocks))) for blocks in group] for group in groups]
    return np.array(rows, dtype=np.float64)


def nonzero(block: Any) -> bool:
    """Whether a block is there and has an entry that is not zero; operators count as such."""
    if block is None or 0 in block.shape:
        return False
    return bool(abs(block).max() > 0) if has_entries(block) else True


def _from_grams(problem: Problem, runtime: Runtime) -> LiftConstants:
    """Averages of A P A', B B', B and D'D (2 m^2 + m q + q^2 floats), then dense algebra.

    Angles below sqrt(1e-10) cannot be distinguished from common directions here: supply
    ``cross_factor`` when the channels may come that close.
    """
    m = problem.m
    q = problem.q
    n = problem.n
    limit = 1000
    if max(m, q) > limit:
        raise InputError(
            f"certified: m = {m} or q = {q} exceeds {limit}; supply all of ccmac.Certificates "
            "(ccmac.geometry(problem, network=network).structural has them, .cross_factor too)"
        )
    rows = []
    scalars = []
    for i, agent in problem.agents.items():
        A = _filled(agent.A, m, problem.d[i])
        B = _filled(agent.B, m, q)
        D = _filled(agent.D, problem.r[i], q)
        C = _filled(agent.C, problem.p[i], problem.d[i])
        basis = row_space(C).basis
        kernel = A - (A @ basis) @ basis.T
        rows.append(np.concatenate([g.ravel() for g in (kernel @ kernel.T, B @ B.T, B, D.T @ D)]))
        rank, low, high = squared_range(C)
        local_ends = (low, high) if rank else (np.inf, 0.0)
        scalars.append([_top(A @ A.T + B @ B.T), _top(D.T @ D), *local_ends])
    received = runtime.piggyback(np.array(scalars, dtype=np.float64), whole=True)
    mean = runtime.average(np.stack(rows))[0]
    S_A, S_B, Bm, S_D = (
        part.reshape(shape)
        for part, shape in zip(
            np.split(mean, np.cumsum([m * m, m * m, m * q])),
            ((m, m), (m, m), (m, q), (q, q)),
            strict=True,
        )
    )
    local = received.value
    mu_D, R = _range(S_D)
    H_cos = S_B - Bm @ Bm.T + (Bm @ R) @ (Bm @ R).T
    # Rows of A within those of C leave the squares of rounding.
    mu_HC, U = _range(S_A + S_B, 1e-24 * float(local[:, 0].max()))
    chi = _cross_factor(U, S_A + S_B, H_cos) if n > 1 or mu_D else 1.0
    mu_HC, mu_D, chi = (float(v) for v in runtime.common(np.array([mu_HC, mu_D, chi])))
    h, d_D, _, u_C = (float(top) for top in local.max(axis=0))
    l_C = float(local[:, 2].min())
    # Of constants composed of several decompositions.
    up = 1 + 1e-9
    down = 1 - 1e-9
    return LiftConstants(
        h * up,
        mu_HC * down,
        d_D * up,
        mu_D * down,
        l_C * down if np.isfinite(l_C) else 0.0,
        u_C * up,
        *runtime.network.extremes,
        chi * (1 + 1e-6),
    )


def _filled(block: Any, rows: int, columns: int) -> Array:
    return np.zeros((rows, columns)) if block is None else dense(block)


def _top(gram: Array) -> float:
    return float(np.linalg.eigvalsh(gram)[-1]) if gram.size else 0.0


def _range(gram: Array, noise: float = 0.0) -> tuple[float, Array]:
    """Least positive eigenvalue (0 if none above noise) and an orthonormal basis of the range."""
    if not gram.size:
        return 0.0, np.zeros_like(gram)
    values, vectors = np.linalg.eigh(gram)
    keep = values > GRAM_RANK * max(values[-1], 0.0)
    keep &= values > noise
    return (float(values[keep][0]) if keep.any() else 0.0), vectors[:, keep]


def _cross_factor(basis: Array, H_0: Array, H_cos: Array) -> float:
    """chi from the squared sines of (H_0 - H_cos, H_0) on Range(H_0), common directions removed."""
    if not basis.shape[1]:
        return 1.0
    factor = np.linalg.cholesky(basis.T @ H_0 @ basis)
    reduced = np.linalg.solve(factor, basis.T @ (H_0 - H_cos) @ basis)
    squares = np.linalg.eigvalsh(np.linalg.solve(factor, reduced.T))
    # squares of sines below this are common directions
    apart = squares[squares > 1e-10]
    if not apart.size:
        return 1.0
    sine2 = min(float(apart[0]), 1.0)
    return cross_factor(math.sqrt(1 - sine2), math.sqrt(sine2))
