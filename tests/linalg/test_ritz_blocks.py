"""Ritz pairs from blocks: exact relations, tops of what deflations leave, spent spaces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ccmac.linalg.ritz_blocks import MARGIN, RitzBlocks, orthonormal_columns, ritz_blocks
from ccmac.linalg.tolerances import EPS


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


@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
def test_what_is_spent_does_not_depend_on_the_size(size: float) -> None:
    S = size * np.diag([3.0, 2.0, 1.0, 0.0])
    found = ritz_blocks(lambda V: S @ V, np.array([[1.0], [1.0], [1.0], [0.0]]), 4)
    assert (found.size, found.exhausted) == (3, True)
    assert found.values / size == pytest.approx([3.0, 2.0, 1.0])


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


def found_values(values: list[float], left: np.ndarray, trace: float = math.inf) -> RitzBlocks:
    size = len(values)
    eye = np.eye(size)
    return RitzBlocks(np.array(values), eye, [eye], [np.diag(values)], left, False, trace)


def test_the_trace_of_what_is_left() -> None:
    """tr S - (4 + 0.8/4) - (2 + 0.6/2), and rounding of (100 + m) eps tr S."""
    found = found_values([4.0, 2.0, 1.0], np.diag([0.8, 0.6, 0.5]), 10.0)
    rounding = EPS * 103 * 10.0
    assert found.left_trace(2) == pytest.approx(10.0 - 4.2 - 2.3 + rounding, abs=1e-15)
    assert found.left_trace(1) == pytest.approx(10.0 - 4.2)
    spent = found_values([4.0, 2.0, 1.0], np.diag([0.8, 0.6, 0.5]), 5.0)
    assert spent.left_trace(2) == pytest.approx(EPS * 103 * 5.0, rel=1e-12, abs=0.0)
    assert found_values([1.0], np.eye(1)).left_trace(1) == math.inf


def test_the_top_of_what_is_left() -> None:
    """The largest eigenvalue of D (Y'S^2 Y) D, D = values^{-1/2}; values below a tenth left out."""
    left = np.array([[9.0, 0.0, 0.0, 0.0], [0, 0.5, 0.2, 0], [0, 0.2, 0.3, 0], [0, 0, 0, 9.0]])
    found = found_values([4.0, 1.0, 0.5, 0.1], left)
    scaled = np.array([[1.5, 0.2 / math.sqrt(0.5)], [0.2 / math.sqrt(0.5), 0.55 / 0.5]])
    top = MARGIN * np.linalg.eigvalsh(scaled)[-1]
    assert found.left_top(1) == pytest.approx(top)
    proved = found_values([4.0, 1.0, 0.5, 0.1], left, 8.0)
    assert proved.left_top(1) == pytest.approx(8.0 - 4.0 - 9.0 / 4)
    assert found.shifted_excess(2, 0.5) == pytest.approx(9.0 * 0.5 / (4 * 4.5) + 0.25 / 1.5)
    assert MARGIN == 1.1


def test_values_of_a_kernel_are_lifted() -> None:
    S = np.diag([0.5, 0.25, 0.0])
    found = ritz_blocks(lambda V: S @ V, np.eye(3), 2)
    assert found.exhausted
    assert found.values[:2] == pytest.approx([0.5, 0.25], rel=1e-12)
    assert math.isclose(found.values[2], 0.5e-10, rel_tol=1e-9)
    assert found.left_top(1) == 0.5
    start = np.eye(3)[:, :1] + np.eye(3)[:, 1:2]
    one = ritz_blocks(lambda V: S @ V, start, 1)
    assert one.values == pytest.approx([0.375])
    assert one.left == pytest.approx(np.array([[0.015625]]))  # |S v - 0.375 v|^2 = 2 (1/8)^2 / 2


def test_what_is_below_a_floor_is_dropped() -> None:
    X = np.diag([1.0, 0.25, 0.2])
    assert orthonormal_columns(X).shape == (3, 3)
    assert orthonormal_columns(X, 0.25).shape == (3, 1)
    assert orthonormal_columns(X, 0.24).shape == (3, 2)
    assert orthonormal_columns(np.diag([1.0, 2e-5])).shape == (2, 2)  # squares are compared
    assert orthonormal_columns(np.diag([1.0, 5e-6])).shape == (2, 1)
    assert orthonormal_columns(np.zeros((3, 0))).shape == (3, 0)
    assert orthonormal_columns(np.zeros((3, 2))).shape == (3, 0)
