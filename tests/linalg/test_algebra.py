"""Operators against the matrices they stand for, and their prices against the ledger."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmac.ledger import Cost, Ledger
from ccmac.linalg.algebra import add, compose, scale, select, stack
from ccmac.linalg.checks import cost_test, dot_test
from ccmac.linalg.families import LocalFamily
from ccmac.linalg.gossip import Gossip
from ccmac.linalg.operator import LinearOperator, to_dense, to_scipy
from ccmac.network import Network
from ccmac.runtime import InProcess


def family(
    rng: np.random.Generator, unit: str, ledger: Ledger, rows: int, columns: int
) -> LocalFamily:
    blocks = [rng.standard_normal((rows, columns)) for _ in range(3)]
    return LocalFamily(unit, blocks, [rows] * 3, [columns] * 3, ledger)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4), columns=st.integers(1, 4))
def test_expressions_equal_their_matrices(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    ledger = Ledger()
    A, B = (family(rng, unit, ledger, rows, columns) for unit in "AB")
    C = family(rng, "C", ledger, 2, rows)
    size = 3 * columns + 2
    x = select(size, 2, size)
    expression = stack(compose(C, add(A, scale(-2.0, B)), x), compose(A, x))
    dense_A, dense_B, dense_C = (
        sp.block_diag([sp.csr_array(b) for b in leaf.blocks]).toarray() for leaf in (A, B, C)
    )
    pick = np.eye(size)[2:]
    expected = np.vstack([dense_C @ (dense_A - 2 * dense_B) @ pick, dense_A @ pick])
    np.testing.assert_allclose(to_dense(expression), expected, atol=1e-13)
    dot_test(expression, rng)
    assert dict(cost_test(expression, ledger)) == {"A": 2, "B": 1, "C": 1}


def test_gossip_is_the_kronecker_product_and_charges_one_round() -> None:
    rng = np.random.default_rng(0)
    runtime = InProcess(Network.ring(5))
    gossip = Gossip(runtime, 3)
    expected = np.kron(runtime.network.weights.toarray(), np.eye(3))
    np.testing.assert_allclose(to_dense(gossip), expected, atol=1e-14)
    dot_test(gossip, rng)
    assert cost_test(gossip, runtime.ledger) == Cost(rounds=1, bytes=2 * 3 * 8)
    modelled = Gossip(runtime, 3, modelled=True)
    np.testing.assert_allclose(to_dense(modelled), expected, atol=1e-14)
    assert cost_test(modelled, runtime.ledger) == Cost(modelled_rounds=1)


@pytest.mark.parametrize("network", [Network.ring(6), Network.star(5), Network.path(4)])
def test_network_range_identities(network: Network) -> None:
    """Ker(W (x) I) is consensus, Range(W (x) I) is what sums to zero (Lemma network-range)."""
    W = to_dense(Gossip(InProcess(network), 2))
    n = network.n
    kernel = np.kron(np.ones((n, 1)) / np.sqrt(n), np.eye(2))
    np.testing.assert_allclose(W @ kernel, 0, atol=1e-13)
    values, vectors = np.linalg.eigh(W)
    positive = vectors[:, values > 1e-10]
    assert positive.shape[1] == 2 * (n - 1)
    np.testing.assert_allclose(positive @ positive.T, np.eye(2 * n) - kernel @ kernel.T, atol=1e-12)


def test_one_agent_does_not_gossip() -> None:
    runtime = InProcess(Network.path(1))
    gossip = Gossip(runtime, 4)
    assert not cost_test(gossip, runtime.ledger)
    np.testing.assert_array_equal(gossip.forward(np.ones(4)), np.zeros(4))


def test_scipy_at_the_border() -> None:
    rng = np.random.default_rng(1)
    ledger = Ledger()
    leaf = family(rng, "A", ledger, 2, 3)
    assert isinstance(leaf, LinearOperator)
    outside = to_scipy(leaf)
    u, v = rng.standard_normal(9), rng.standard_normal(6)
    np.testing.assert_array_equal(outside @ u, leaf.forward(u))
    np.testing.assert_array_equal(outside.rmatvec(v), leaf.adjoint(v))


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


def test_checks_catch_a_wrong_operator() -> None:
    ledger = Ledger()
    with pytest.raises(AssertionError, match="adjoint is wrong"):
        dot_test(Wrong(ledger), np.random.default_rng(0))
    with pytest.raises(AssertionError, match="declared"):
        cost_test(Wrong(ledger), ledger)


def test_sizes_must_fit() -> None:
    rng = np.random.default_rng(0)
    A, B = family(rng, "A", Ledger(), 2, 3), family(rng, "B", Ledger(), 3, 3)
    for build, parts in (
        (compose, (A, A)),
        (add, (A, B)),
        (stack, (A, Gossip(InProcess(Network.path(1)), 2))),
    ):
        with pytest.raises(ValueError, match="sizes"):
            build(*parts)
    with pytest.raises(ValueError, match="is no range"):
        select(3, 2, 5)
