"""Networks: closed-form spectra, refusals, and the Metropolis matrix."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ccmac import Network
from ccmac.errors import InputError
from ccmac.network import large_extremes


@given(n=st.integers(2, 40))
def test_path(n: int) -> None:
    network = Network.path(n)
    assert network.condition == pytest.approx(1 / math.tan(math.pi / (2 * n)) ** 2, rel=1e-9)
    assert network.diameter == n - 1
    assert network.centre == ((n - 1) // 2, n // 2)


@given(n=st.integers(3, 40))
def test_ring(n: int) -> None:
    network = Network.ring(n)
    exact = 2 - 2 * np.cos(2 * np.pi * np.arange(1, n // 2 + 1) / n)
    assert network.condition == pytest.approx(exact.max() / exact.min(), rel=1e-9)
    assert network.centre == (0, n // 2)
    assert network.diameter == n // 2


@given(n=st.integers(3, 30))
def test_star_and_complete(n: int) -> None:
    star = Network.star(n)
    assert star.condition == pytest.approx(n)
    assert star.diameter == 2
    assert star.centre == (0, 1)
    complete = Network.complete(n)
    assert complete.condition == pytest.approx(1.0)
    assert complete.diameter == 1


def test_grid_spectrum_is_the_sum_of_two_paths() -> None:
    rows = 3
    cols = 5
    network = Network.grid(rows, cols)
    line = [2 - 2 * np.cos(np.pi * np.arange(k) / k) for k in (rows, cols)]
    exact = np.sort(np.add.outer(*line).ravel())
    np.testing.assert_allclose(network.eigenvalues, exact, atol=1e-12)
    assert network.diameter == rows + cols - 2
    assert list(network.neighbors(0)) == [1, 5]


def test_random_families_repeat_and_are_connected() -> None:
    for make in (
        lambda seed: Network.erdos_renyi(12, 0.3, seed),
        lambda seed: Network.random_regular(12, 3, seed),
    ):
        first = make(1)
        again = make(1)
        other = make(2)
        assert (first.weights != again.weights).nnz == 0
        assert (first.weights != other.weights).nnz > 0
        assert nx.is_connected(first.graph)
    degrees = dict(Network.random_regular(12, 3, 1).graph.degree).values()
    assert set(degrees) == {3}


@given(seed=st.integers(0, 50), n=st.integers(2, 12))
def test_metropolis_is_doubly_stochastic_on_the_edges(seed: int, n: int) -> None:
    network = Network.erdos_renyi(n, 0.6, seed)
    M = network.metropolis().toarray()
    assert (M >= -1e-15).all()
    np.testing.assert_allclose(M.sum(axis=0), 1.0)
    np.testing.assert_array_equal(M, M.T)
    degree = dict(network.graph.degree)
    for i, j in network.graph.edges:
        assert M[i, j] == pytest.approx(1 / (1 + max(degree[i], degree[j])))
    edges = {frozenset(e) for e in network.graph.edges}
    off = {frozenset((i, j)) for i, j in zip(*np.nonzero(M), strict=True) if i != j}
    assert off == edges
    mixing = Network.from_graph(network.graph, weights="metropolis")
    np.testing.assert_allclose(mixing.weights.toarray(), np.eye(n) - M, atol=1e-15)


@given(seed=st.integers(0, 50), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_from_weights_accepts_any_weighted_laplacian(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    adjacency = np.triu(rng.uniform(0.5, 2.0, (6, 6)), 1)
    adjacency = scale * (adjacency + adjacency.T)
    W = np.diag(adjacency.sum(axis=1)) - adjacency
    network = Network.from_weights(W)
    values = np.linalg.eigvalsh(W)
    assert network.condition == pytest.approx(values[-1] / values[1], rel=1e-8)
    tilted = W.copy()
    tilted[0, 1] += 0.1 * scale
    with pytest.raises(InputError, match=r"not symmetric \(W\[0,1\] != W\[1,0\]\)"):
        Network.from_weights(tilted)


LAPLACIAN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
TWO_PAIRS = np.kron(np.eye(2), [[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (TWO_PAIRS, "disconnected"),
        (np.zeros((2, 2)), "disconnected"),
        (np.eye(3), "does not vanish on the constant vector"),
        (np.eye(3) - LAPLACIAN / 4, "does not vanish .* I - M"),
        (-LAPLACIAN, "not positive semidefinite"),
        (
            np.array([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]]),
            "kernel of W is larger",
        ),
        (np.ones((2, 3)), "must be square"),
        (np.zeros((0, 0)), "must be square"),
        (np.ones(3), "1 dimension"),
        (LAPLACIAN * np.nan, "NaN"),
        (LAPLACIAN * 1j, "complex"),
        (sp.csr_array(LAPLACIAN * 1j), "complex"),
        ([["a", "b"], ["c", "d"]], "not numeric"),
        (None, "not numeric"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "give it to Network.from_graph"),
    ],
)
def test_bad_weights(W: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^network.*{message}") as caught:
        Network.from_weights(W)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("graph", "more", "message"),
    [
        (nx.DiGraph([(0, 1)]), {}, "directed"),
        (nx.Graph([(0, 1)]), {"weights": LAPLACIAN}, "Network.from_weights"),
        (nx.Graph([(0, 1)]), {"nodes": [0, "1"]}, "every node of the graph, each once"),
    ],
)
def test_bad_graphs(graph: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^network.*{message}"):
        Network.from_graph(graph, **more)


def test_parallel_links_count_once_and_loops_not_at_all() -> None:
    plain = nx.Graph([(0, 1), (1, 2)])
    for graph in (nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), nx.Graph([(0, 0), (0, 1), (1, 2)])):
        W = Network.from_graph(graph).weights
        assert np.array_equal(W.toarray(), Network.from_graph(plain).weights.toarray())


def test_large_networks_use_sparse_eigenvalues() -> None:
    low, high = Network.star(2500).extremes
    assert low == pytest.approx(1.0, rel=1e-6)
    assert high == pytest.approx(2500.0, rel=1e-9)


MANY = [
    Network.random_regular(300, 4, seed=1),
    Network.erdos_renyi(400, 0.03, seed=2),
    Network.grid(16, 17),
    Network.ring(301),
    Network.star(280),
]


@pytest.mark.parametrize("network", MANY, ids=lambda network: network.name)
def test_spectra_and_distances_of_large_graphs_equal_those_of_small_ones(network: Network) -> None:
    dense = np.linalg.eigvalsh(network.weights.toarray())
    assert large_extremes(network.weights) == pytest.approx((dense[1], dense[-1]), rel=1e-9)
    expected = network.hops().max(axis=1)
    assert network.diameter == expected.max()
