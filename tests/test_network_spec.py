"""How networks are named: families, files, graphs, matrices; and what is refused."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from ccmac.errors import InputError
from ccmac.network import Network, as_network


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("ring", Network.ring(8)),
        ("path", Network.path(8)),
        ("star", Network.star(8)),
        ("complete", Network.complete(8)),
        ("grid:2x4", Network.grid(2, 4)),
        ("erdos_renyi:0.5:1", Network.erdos_renyi(8, 0.5, 1)),
        ("erdos_renyi:0.5", Network.erdos_renyi(8, 0.5, 0)),
        ("random_regular:4:0", Network.random_regular(8, 4, 0)),
    ],
)
def test_families(spec: str, expected: Network) -> None:
    found = as_network(spec, 8)
    assert np.array_equal(found.weights.toarray(), expected.weights.toarray())
    assert found.name == expected.name


@pytest.mark.parametrize(
    "text", ["0 1\n1 2  # a comment\n\n# another\n2,3\n", "0 1 1.0\n1 2 1\n2 3\n"]
)
def test_files_of_a_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.txt"
    path.write_text(text)
    found = as_network(str(path), 4)
    assert np.array_equal(found.weights.toarray(), Network.path(4).weights.toarray())


def test_weights_of_edges_make_the_weighted_laplacian(tmp_path: Path) -> None:
    path = tmp_path / "weighted.txt"
    path.write_text("0 1 2\n1 2 0.5\n")
    expected = [[2, -2, 0], [-2, 2.5, -0.5], [0, -0.5, 0.5]]
    assert np.allclose(as_network(str(path), 3).weights.toarray(), expected)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rong", "neither a file nor one of"),
        ("ring:3", "ring takes no numbers"),
        ("grid:2by4", "grid takes rows and cols"),
        ("grid", "grid takes rows and cols"),
        ("erdos_renyi:dense:0", "takes p and seed"),
        ("random_regular", "takes degree and seed"),
        ("random_regular:3:0:9", "takes degree and seed"),
        ("rinf", "did you mean 'ring'"),
        ("grid:3000x3000", "9000000 agents but the problem has 4"),
        ("grid:99999999999999999999x99999999999999999999", "a whole number of about 40 digits"),
        (f"grid:{'9' * 5000}x2", "grid takes rows and cols"),
        (f"random_regular:2:{'9' * 5000}", "takes degree and seed"),
        ("random_regular:-2:0", "takes degree and seed"),
        ("erdos_renyi:nan:0", "takes p and seed"),
        ("random_regular:99999999999999:0", "no 99999999999999-regular graph"),
        ("grid:0x0", "0 agents"),
        ("x" * 5000, "neither a file"),
        ("a\0b", "neither a file"),
        (Network.ring(5), "has 5 agents but the problem has 4"),
        (nx.path_graph(3), "has 3 agents but the problem has 4"),
        (nx.DiGraph([(0, 1), (1, 2), (2, 3)]), "directed"),
        (np.zeros((5, 5)), "has 5 agents"),
        (np.zeros(4), "dimension"),
        (np.eye(4), "row 0 sums to 1"),
        (np.array([["a"] * 4] * 4), "not numeric"),
        (1e300 * Network.ring(4).weights, r"beyond 1e\+50"),
        (4, "is a int; give a Network"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_short_line(spec: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as told:
        as_network(spec, 4)
    assert len(str(told.value)) < 300
    assert "\n" not in str(told.value)


def test_graphs_keep_the_names_of_their_nodes() -> None:
    graph = nx.Graph([("north", "south"), ("south", "east"), ("east", "west")])
    network = as_network(graph, 4)
    assert network.nodes == ["east", "north", "south", "west"]
    neighbors = {network.nodes[j] for j in network.neighbors(network.nodes.index("south"))}
    assert neighbors == {"north", "east"}
    assert Network.ring(4).nodes == [0, 1, 2, 3]
    assert as_network(nx.relabel_nodes(graph, {"east": 7}), 4).nodes == [
        "north",
        "south",
        7,
        "west",
    ]


def test_matrices_and_networks_pass_through() -> None:
    ring = Network.ring(4)
    assert as_network(ring, 4) is ring
    for weights in (ring.weights, ring.weights.toarray()):
        assert np.array_equal(as_network(weights, 4).weights.toarray(), ring.weights.toarray())
    assert as_network(None, 4).name == "complete(4)"


def test_a_large_laplacian_needs_no_dense_matrix() -> None:
    weights = Network.star(3000).weights
    network = as_network(weights, 3000)
    assert "eigenvalues" not in vars(network)
    assert network.condition == pytest.approx(3000, rel=1e-6)
