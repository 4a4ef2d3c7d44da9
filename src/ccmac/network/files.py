"""A network in a file: lines of edges, or JSON with edges or weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.network.graph import Network
from ccmac.texts import DIGITS, MEGABYTE, loads, read_text, shown

BYTES = 32 * MEGABYTE
EDGES = 2_000_000
Edge = tuple[int, int, float]


def read_network(path: Path, n: int) -> Network:
    """From edge lines or JSON: ``[[0, 1], ...]``, ``{"edges": ...}`` or ``{"weights": W}``."""
    where = f"network {path}"
    try:
        text = read_text(path, where, BYTES)
    except FileNotFoundError:
        raise InputError(f"{where}: is not there") from None
    if not text.lstrip().startswith(("{", "[")):
        return _from_edges(where, _lines(text), n, path.stem)
    try:
        content = loads(text)
    except ValueError:
        raise InputError(f"{where}: is not valid JSON; give edges or weights") from None
    if isinstance(content, dict) and "weights" in content:
        return Network.from_weights(_matrix(where, content["weights"], n), name=path.stem)
    edges = content.get("edges") if isinstance(content, dict) else content
    if not isinstance(edges, list):
        raise InputError(f'{where}: give a list of edges, {{"edges": ...}} or a "weights"')
    return _from_edges(where, enumerate(edges, 1), n, path.stem)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#")[0].replace(",", " ").split()
        if fields:
            yield number, fields


def _from_edges(where: str, entries: Iterator[tuple[int, Any]], n: int, name: str) -> Network:
    """Unweighted Laplacian, or a weighted one if some edge has a weight other than one."""
    edges = []
    for number, fields in entries:
        edge = _edge(where, number, fields)
        if max(edge[:2]) >= n:
            raise InputError(
                f"{where}: names agent {shown(max(edge[:2]))} but the problem has agents 0..{n - 1}"
            )
        edges.append(edge)
        if len(edges) > EDGES:
            raise InputError(f"{where}: has more than {EDGES:,} edges")
    import networkx as nx

    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for u, v, w in edges if u != v)
    if all(w == 1.0 for _, _, w in edges):
        return Network.from_graph(graph, name=name)
    return Network.from_weights(nx.laplacian_matrix(graph).astype(np.float64), name=name)


def _edge(where: str, number: int, fields: Any) -> Edge:
    try:
        u, v, *rest = fields
        edge = _agent(u), _agent(v), _weight(rest)
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: edge {number} is {shown(fields)}; give two agents 0, 1, ... and "
            "possibly a positive weight"
        ) from None
    return edge


def _agent(value: Any) -> int:
    """A whole number that is not negative, as text or as it stands in JSON; 0.9 is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
        return int(value)
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _weight(rest: list[Any]) -> float:
    if not rest:
        return 1.0
    [value] = rest
    if isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError
    return float(value)


def _matrix(where: str, rows: Any, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The size is compared first; texts and truth values are not numbers."""
    try:
        if len(rows) == n and all(isinstance(row, list) and len(row) == n for row in rows):
            table = np.array(rows)
            if table.dtype.kind in "iuf":
                return table.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"{where}: weights must be a square table of numbers, one row per agent ({n} of them)"
    ) from None
