"""``--network``: a family by name, or a file with edges or weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from ccmac.errors import InputError
from ccmac.network import Network

HELP = (
    "ring, path, star, complete, grid:2x4, erdos_renyi:P:SEED, random_regular:D:SEED, or a "
    "file: an edge list ('0 1' a line, a third number is a weight) or JSON."
)
SIMPLE: dict[str, Callable[[int], Network]] = {
    "ring": Network.ring,
    "path": Network.path,
    "star": Network.star,
    "complete": Network.complete,
}


def parse_network(spec: str, n: int) -> Network:
    """The network that ``spec`` names, on ``n`` agents."""
    name, *arguments = spec.split(":")
    if name in SIMPLE:
        if arguments:
            raise InputError(f"network {spec!r}: {name} takes no argument; give --network {name}")
        return SIMPLE[name](n)
    if name == "grid":
        return _grid(spec, arguments)
    if name == "erdos_renyi":
        p, seed = _numbers(spec, arguments, "erdos_renyi:PROBABILITY:SEED", (float, int))
        return Network.erdos_renyi(n, p, seed)
    if name == "random_regular":
        degree, seed = _numbers(spec, arguments, "random_regular:DEGREE:SEED", (int, int))
        return Network.random_regular(n, degree, seed)
    path = Path(spec)
    if not path.is_file():
        known = ", ".join([*SIMPLE, "grid:2x4", "erdos_renyi:0.5:1", "random_regular:4:0"])
        raise InputError(f"network {spec!r}: is neither a file nor one of {known}")
    return read_network(path, n)


def read_network(path: Path, n: int) -> Network:
    """From edge lines or JSON: ``[[0, 1], ...]``, ``{"edges": ...}`` or ``{"weights": W}``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"network {path}: cannot be read ({type(error).__name__})") from None
    if not text.lstrip().startswith(("{", "[")):
        return _from_edges(path, _edge_lines(path, text), n)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"network {path}: is not valid JSON; give edges or weights") from None
    if isinstance(content, dict) and "weights" in content:
        return Network.from_weights(_matrix(path, content["weights"]), name=path.stem)
    edges = content.get("edges") if isinstance(content, dict) else content
    if not isinstance(edges, list):
        raise InputError(f'network {path}: give a list of edges, {{"edges": ...}} or a "weights"')
    return _from_edges(path, [_edge(path, k, e) for k, e in enumerate(edges, 1)], n)


def _grid(spec: str, arguments: list[str]) -> Network:
    sides = arguments[0].split("x") if len(arguments) == 1 else []
    if len(sides) != 2 or not all(side.isdecimal() for side in sides):
        raise InputError(f"network {spec!r}: give grid:ROWSxCOLUMNS, such as grid:2x4")
    return Network.grid(int(sides[0]), int(sides[1]))


def _numbers(
    spec: str, arguments: list[str], form: str, kinds: tuple[type, ...]
) -> tuple[Any, ...]:
    """The arguments after the name; a seed that is left out is 0."""
    given = arguments if len(arguments) == len(kinds) else [*arguments, "0"]
    try:
        return tuple(kind(text) for kind, text in zip(kinds, given, strict=True))
    except ValueError:
        raise InputError(
            f"network {spec!r}: give {form} (numbers; the seed may be left out)"
        ) from None


def _edge_lines(path: Path, text: str) -> list[tuple[int, int, float]]:
    edges = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#")[0].replace(",", " ").split()
        if fields:
            edges.append(_edge(path, number, fields))
    return edges


def _edge(path: Path, number: int, fields: Any) -> tuple[int, int, float]:
    try:
        u, v, *weight = fields
        edge = int(u), int(v), float(weight[0]) if weight else 1.0
        fits = len(weight) <= 1 and min(edge[:2]) >= 0 and 0 < edge[2] < np.inf
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"network {path}: edge {number} is {fields!r}; give two agents 0, 1, ... and "
            "possibly a positive weight"
        )
    return edge


def _from_edges(path: Path, edges: list[tuple[int, int, float]], n: int) -> Network:
    """Unweighted Laplacian, or a weighted one if some edge has a weight other than one."""
    highest = max((max(u, v) for u, v, _ in edges), default=0)
    if highest >= n:
        raise InputError(
            f"network {path}: names agent {highest} but the problem has agents 0..{n - 1}"
        )
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for u, v, w in edges if u != v)
    if all(w == 1.0 for _, _, w in edges):
        return Network.from_graph(graph, name=path.stem)
    return Network.from_weights(nx.laplacian_matrix(graph).astype(np.float64), name=path.stem)


def _matrix(path: Path, rows: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"network {path}: weights must be a square table of numbers") from None
