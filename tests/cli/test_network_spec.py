"""``--network``: families by name, files of edges and of weights, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ccmac.cli.network import parse_network
from ccmac.errors import InputError
from ccmac.network import Network


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
    found = parse_network(spec, 8)
    assert np.array_equal(found.weights.toarray(), expected.weights.toarray())
    assert found.name == expected.name


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2  # a comment\n\n# another\n2,3\n",
        "[[0, 1], [1, 2], [2, 3]]",
        '{"edges": [[0, 1], [1, 2], [2, 3]]}',
        json.dumps({"weights": Network.path(4).weights.toarray().tolist()}),
    ],
)
def test_files_of_a_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.txt"
    path.write_text(text)
    found = parse_network(str(path), 4)
    assert np.array_equal(found.weights.toarray(), Network.path(4).weights.toarray())


def test_weights_of_edges_make_the_weighted_laplacian(tmp_path: Path) -> None:
    path = tmp_path / "weighted.txt"
    path.write_text("0 1 2\n1 2 0.5\n")
    expected = [[2, -2, 0], [-2, 2.5, -0.5], [0, -0.5, 0.5]]
    assert np.allclose(parse_network(str(path), 3).weights.toarray(), expected)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rong", "neither a file nor one of"),
        ("ring:3", "takes no argument"),
        ("grid:2by4", "grid:ROWSxCOLUMNS"),
        ("grid", "grid:ROWSxCOLUMNS"),
        ("erdos_renyi:dense:0", "PROBABILITY"),
        ("random_regular", "DEGREE"),
        ("random_regular:3:0:9", "DEGREE"),
    ],
)
def test_bad_names(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_network(spec, 8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1\n1 9\n", "agent 9"),
        ("0 1\n1 two\n", "edge 2"),
        ("0 1\n1 2 -3\n", "edge 2"),
        ("0 1\n", "disconnected"),
        ("{", "not valid JSON"),
        ('{"nodes": 3}', "list of edges"),
        ("[[0, 1], 7]", "edge 2"),
        ('{"weights": [[1, "a"]]}', "square table"),
        ("", "disconnected"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "net"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as told:
        parse_network(str(path), 3)
    assert "\n" not in str(told.value)
