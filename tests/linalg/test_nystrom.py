"""Nystrom sketches stay below what they approximate, and their norms bound the true ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.linalg.nystrom import Nystrom, random_signs
from ccmac.linalg.tolerances import EPS


def spread(seed: int, m: int, rank: int, decades: float) -> np.ndarray:
    """Positive semidefinite with eigenvalues over so many decades."""
    random = np.random.default_rng(seed)
    Q = np.linalg.qr(random.standard_normal((m, rank)))[0]
    return (Q * np.logspace(0, -decades, rank)) @ Q.T


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(8, 40),
    size=st.integers(1, 12),
    decades=st.floats(0, 12),
    c=st.sampled_from([1e-6, 1e-3, 1.0]),
    repeated=st.booleans(),
)
def test_a_sketch_stays_below(
    seed: int, m: int, size: int, decades: float, c: float, repeated: bool
) -> None:
    S = spread(seed, m, max(1, m // 2), decades)
    W = random_signs(m, min(size, m), seed)
    if repeated:
        W = np.hstack([W, W[:, :1] * (1 + 1e-9)])
    found = Nystrom.of(W, S @ W, EPS * m * np.linalg.norm(S))
    M = found.plus(c)
    assert M.share > 0.9
    B = M.B
    whole = B @ B.T + c * np.eye(m)
    least = np.linalg.eigvalsh(S + c * np.eye(m) - M.share * whole)[0]
    assert least >= -100 * m * EPS
    v = np.random.default_rng(seed).standard_normal(m)
    exact = math.sqrt(v @ np.linalg.solve(whole, v))
    assert exact * (1 - 1e-8) <= M.norm(v) <= exact * (1 + 1e-6)
    assert M.solve(v) == pytest.approx(np.linalg.solve(whole, v), rel=1e-6, abs=1e-8 / c)


def test_enough_vectors_give_the_matrix_itself() -> None:
    S = spread(0, 30, 6, 3.0)
    W = random_signs(30, 10, 0)
    found = Nystrom.of(W, S @ W, EPS)
    B = found.B
    assert pytest.approx(S, abs=1e-7) == B @ B.T


def test_no_vectors() -> None:
    M = Nystrom(np.zeros((4, 0))).plus(2.0)
    v = np.arange(4.0)
    assert M.solve(v) == pytest.approx(v / 2)
    assert M.norm(v) == pytest.approx(np.linalg.norm(v) / math.sqrt(2))
    assert M.share == 1.0
