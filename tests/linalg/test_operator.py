"""Operators against the matrices they stand for, and their prices against the ledger."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.ledger import Cost, Ledger
from ccmac.linalg.blocks import LocalFamily, dense, side_by_side
from ccmac.linalg.operator import LinearOperator, to_dense
from ccmac.network import Network
from linalg.checks import cost_test, dot_test


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4), columns=st.integers(1, 4))
def test_a_family_equals_its_matrix(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    ledger = Ledger()
    blocks = [rng.standard_normal((rows, columns)) for _ in range(3)]
    leaf = LocalFamily("A", blocks, [rows] * 3, [columns] * 3, ledger)
    assert isinstance(leaf, LinearOperator)
    np.testing.assert_allclose(to_dense(leaf), sp.block_diag(blocks).toarray(), atol=1e-13)
    dot_test(leaf, rng)
    assert dict(cost_test(leaf, ledger)) == {"A": 1}


def test_blocks_side_by_side() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 2))
    B = rng.standard_normal((3, 4))
    whole = side_by_side([A, None, sp.csr_array(B), sp.linalg.aslinearoperator(A)], 3, [2, 1, 4, 2])
    expected = np.hstack([A, np.zeros((3, 1)), B, A])
    np.testing.assert_allclose(dense(whole), expected, atol=1e-14)
    np.testing.assert_allclose(dense(whole.T), expected.T, atol=1e-14)


@pytest.mark.parametrize("network", [Network.ring(6), Network.star(5), Network.path(4)])
def test_network_range_identities(network: Network) -> None:
    """Ker(W (x) I) is consensus, Range(W (x) I) is what sums to zero (Lemma lem:network-range)."""
    W = np.kron(network.weights.toarray(), np.eye(2))
    n = network.n
    kernel = np.kron(np.ones((n, 1)) / np.sqrt(n), np.eye(2))
    np.testing.assert_allclose(W @ kernel, 0, atol=1e-13)
    values, vectors = np.linalg.eigh(W)
    positive = vectors[:, values > 1e-10]
    assert positive.shape[1] == 2 * (n - 1)
    np.testing.assert_allclose(positive @ positive.T, np.eye(2 * n) - kernel @ kernel.T, atol=1e-12)


class Wrong:
    """An adjoint that is not one, and a price that is too low."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.shape = (2, 2)
        self.cost = Cost()

    def forward(self, u: np.ndarray) -> np.ndarray:
        self.ledger.charge(A=1)
        return np.array([u[0] + u[1], u[1]])

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        return self.forward(v)


def test_the_gap_of_a_wrong_adjoint() -> None:
    """Relative to the norms of both products, the largest of three samples."""
    wrong = Wrong(Ledger())
    random = np.random.default_rng(3)
    gaps = []
    for _ in range(3):
        u = random.standard_normal(2)
        v = random.standard_normal(2)
        forward = wrong.forward(u)
        back = wrong.forward(v)
        size = np.linalg.norm(forward) * np.linalg.norm(v) + np.linalg.norm(back) * np.linalg.norm(
            u
        )
        gaps.append(abs(forward @ v - back @ u) / size)
    found = dot_test(wrong, np.random.default_rng(3), tolerance=1.0)
    assert found == pytest.approx(max(gaps))
    assert dot_test(wrong, np.random.default_rng(3), samples=1, tolerance=1.0) == gaps[0]
    assert wrong.ledger["A"] == 6 + 6 + 2


def test_checks_catch_a_wrong_operator() -> None:
    ledger = Ledger()
    with pytest.raises(AssertionError, match="adjoint is wrong"):
        dot_test(Wrong(ledger), np.random.default_rng(0))
    with pytest.raises(AssertionError, match=r"^forward charged .* declared"):
        cost_test(Wrong(ledger), ledger)
