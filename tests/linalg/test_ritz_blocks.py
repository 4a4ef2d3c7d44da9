"""Ritz pairs from blocks: exact relations, tops of what deflations leave, spent spaces."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac.linalg.ritz_blocks import MARGIN, orthonormal_columns, ritz_blocks


def operator(seed: int, m: int = 300, rank: int = 120, decay: float = 0.95) -> np.ndarray:
    random = np.random.default_rng(seed)
    F = np.linalg.qr(random.standard_normal((m, rank)))[0] * np.sqrt(decay ** np.arange(rank))
    return F @ F.T


def left(S: np.ndarray, W: np.ndarray) -> np.ndarray:
    return S - S @ W @ np.linalg.solve(W.T @ S @ W, W.T @ S)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_ritz_pairs_and_tops_are_not_missed(seed: int) -> None:
    S = operator(seed)
    start = S @ np.random.default_rng(seed).standard_normal((300, 12))
    found = ritz_blocks(lambda V: S @ V, start, 3, float(np.trace(S)))
    basis, images = found.pairs(found.size)
    assert found.size == 36
    assert np.allclose(basis @ basis.T, np.eye(36), atol=1e-10)
    assert np.allclose(images, basis @ S, atol=1e-10)
    assert np.allclose(basis @ images.T, np.diag(found.values), atol=1e-9)
    gaps = images - found.values[:, None] * basis
    assert np.allclose(gaps @ gaps.T, found.left, atol=1e-9)
    for r in (4, 12):
        top = float(np.linalg.eigvalsh(left(S, basis[:r].T))[-1])
        assert top <= found.left_top(r) <= found.left_trace(r)
        assert found.left_top(r) <= 1.001 * MARGIN * top
        shifted = float(np.linalg.eigvalsh(left(S + 0.05 * np.eye(300), basis[:r].T))[-1])
        assert shifted <= found.left_top(r) + 0.05 + found.shifted_excess(r, 0.05) + 1e-12


def test_a_spent_space_leaves_what_rounding_leaves() -> None:
    S = operator(7, rank=20)
    start = S @ np.random.default_rng(0).standard_normal((300, 12))
    found = ritz_blocks(lambda V: S @ V, start, 3, float(np.trace(S)))
    assert found.exhausted
    assert found.size == 20
    assert found.left_top(20) <= 1e-10


def test_repeated_eigenvalues_are_not_forgotten() -> None:
    """The identity on 50 dimensions: a block of 8 is spent at once and has seen 8 of them."""
    S = np.diag([1.0] * 50 + [0.0] * 250)
    start = S @ np.random.default_rng(0).standard_normal((300, 8))
    found = ritz_blocks(lambda V: S @ V, start, 3, 50.0)
    assert found.exhausted
    assert found.left_top(8) == pytest.approx(1.0)


def test_dependent_columns_are_dropped() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    Q = orthonormal_columns(np.hstack([X, X @ np.ones((3, 2)), np.zeros((40, 1))]))
    assert Q.shape == (40, 3)
    assert np.allclose(Q.T @ Q, np.eye(3), atol=1e-13)
    assert np.allclose(Q @ (Q.T @ X), X)
