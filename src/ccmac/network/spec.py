"""Networks as people name them: a name, a file, a graph or a matrix, for a problem of n agents.

Sizes are compared with n before anything is built: a name costs nothing until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.network.graph import Network
from ccmac.texts import DIGITS, MEGABYTE, is_file, loads, nearest, read_text, shown

if TYPE_CHECKING:
    import networkx as nx

BYTES = 32 * MEGABYTE
EDGES = 2_000_000
Edge = tuple[int, int, float]


@dataclass(frozen=True)
class Family:
    """A named family: the numbers that follow its name, and how it is built for n agents.

    ``parameters`` names them with their type. A seed that is left out is 0.
    """

    form: str
    make: Callable[..., Network]
    parameters: Mapping[str, type] = field(default_factory=dict)
    separator: str = ":"


FAMILIES: dict[str, Family] = {
    "ring": Family("ring", Network.ring),
    "path": Family("path", Network.path),
    "star": Family("star", Network.star),
    "complete": Family("complete", Network.complete),
    "grid": Family(
        "grid:ROWSxCOLUMNS",
        lambda n, rows, cols: Network.grid(rows, cols),
        {"rows": int, "cols": int},
        "x",
    ),
    "erdos_renyi": Family(
        "erdos_renyi:PROBABILITY:SEED", Network.erdos_renyi, {"p": float, "seed": int}
    ),
    "random_regular": Family(
        "random_regular:DEGREE:SEED", Network.random_regular, {"degree": int, "seed": int}
    ),
}
HELP = (
    "ring, path, star, complete, grid:2x4, erdos_renyi:P:SEED, random_regular:D:SEED, or a "
    "file: an edge list ('0 1' on each line, a third number is a weight) or JSON."
)


def as_network(spec: Any, n: int, names: Sequence[str | None] = ()) -> Network:
    """The network that ``spec`` describes, on ``n`` agents.

    A :class:`Network`, a name (:data:`HELP`), the path of a file, a NetworkX graph (agent k is
    ``network.nodes[k]``) or a weight matrix W, dense or sparse. None is the complete graph. Where
    agents have ``names`` and the nodes of a graph are called alike, names decide who is who.

    Parameters
    ----------
    spec : Network, str, networkx.Graph, matrix or None
        A network, its name ("ring", "grid:2x4"), a file, a graph, weights; None is complete.
    n : int
        The number of agents.
    names : sequence of str or None
        The agents' names, which nodes of a graph may carry.

    Returns
    -------
    Network

    Examples
    --------
    >>> import ccmac
    >>> ccmac.network.as_network("grid:2x3", 6)
    Network(grid(2,3), n=6, kappa_W=5)
    """
    if spec is None:
        return Network.complete(n)
    if isinstance(spec, Network):
        _same_size(spec.n, n)
        _refuse_other_order(spec, names)
        return spec
    if isinstance(spec, str | Path):
        return _named(str(spec), n)
    if isinstance(spec, np.ndarray) or is_sparse(spec):
        _same_size(max(spec.shape, default=0), n)
        return Network.from_weights(spec)
    import networkx as nx

    if isinstance(spec, nx.Graph):
        _same_size(spec.number_of_nodes(), n)
        return _by_name(spec, names)
    raise InputError(
        f"network: is a {type(spec).__name__}; give a Network, a name such as 'ring', a file, a "
        "networkx graph or a weight matrix"
    )


def _by_name(graph: nx.Graph[Any], names: Sequence[str | None]) -> Network:
    """Nodes in the order of the agents that are called alike, else in their own."""
    nodes = {str(node): node for node in graph.nodes}
    missing = [name for name in names if name not in nodes]
    if not names or len(missing) == len(names):
        return Network.from_graph(graph)
    if missing:
        raise InputError(
            f"network: has no node {shown(missing[0])}, but nodes for other agents; name the nodes "
            "as the agents are named"
        )
    return Network.from_graph(graph, nodes=[nodes[str(name)] for name in names])


def _refuse_other_order(network: Network, names: Sequence[str | None]) -> None:
    called = [str(node) for node in network.nodes]
    if set(called) != set(names):
        return
    for k, (node, name) in enumerate(zip(called, names, strict=True)):
        if node != name:
            raise InputError(
                f"network: agent {k} is {shown(name)} in the problem but {shown(node)} in the "
                "network; pass the graph itself, or Network.from_graph(graph, nodes=names)"
            )


def _same_size(size: int, n: int) -> None:
    if size != n:
        raise InputError(
            f"network: has {size} agents but the problem has {n}; "
            "build the network for the problem's n"
        )


def _named(spec: str, n: int) -> Network:
    if spec.partition(":")[0] in FAMILIES:
        return build_family(parse_family(spec), n)
    if not is_file(spec):
        hint = nearest(spec.partition(":")[0], FAMILIES)
        raise InputError(
            f"network {shown(spec)}: is neither a file nor one of ring, path, star, complete, "
            f"grid:2x4, erdos_renyi:0.5:1, random_regular:4:0; {hint}"
        )
    return read_network(Path(spec), n)


def parse_family(spec: str) -> dict[str, Any]:
    """``grid:2x4`` as ``{"family": "grid", "rows": 2, "cols": 4}``."""
    name, _, rest = spec.partition(":")
    family = FAMILIES[name]
    if not family.parameters:
        if rest or spec.endswith(":"):
            raise InputError(f"network {shown(spec)}: {name} takes no argument; give {name}")
        return {"family": name}
    given = rest.split(family.separator)
    if "seed" in family.parameters and len(given) < len(family.parameters):
        given.append("0")
    try:
        pairs = zip(family.parameters.items(), given, strict=True)
        return {"family": name} | {key: _number(kind, text) for (key, kind), text in pairs}
    except ValueError:
        raise InputError(
            f"network {shown(spec)}: give {family.form}, as in grid:2x4 or random_regular:4:0 "
            "(numbers; a seed may be left out)"
        ) from None


def _number(kind: type, text: str) -> Any:
    if len(text) > DIGITS or (kind is int and not text.isdecimal()):
        raise ValueError
    value = kind(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def build_family(chosen: Mapping[str, Any], n: int) -> Network:
    """The graph of ``{"family": "grid", "rows": 2, "cols": 4}`` on n agents."""
    parameters = dict(chosen)
    name = parameters.pop("family")
    if name == "grid":
        rows = parameters["rows"]
        cols = parameters["cols"]
        if rows * cols != n:
            raise InputError(
                f"network: a {shown(rows)} x {shown(cols)} grid has {shown(rows * cols)} agents "
                f"but the problem has {n}; build the network for the problem's n"
            )
    return FAMILIES[name].make(n, **parameters)


# -- files -----------------------------------------------------------------------------------------
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
    """Two agents, as texts or as they stand in JSON (0.9 is none), and possibly a weight."""
    try:
        u, v, *rest = fields
        [weight] = rest or [1.0]
        if isinstance(weight, bool) or not 0 < float(weight) < math.inf:
            raise ValueError
        return _agent(u), _agent(v), float(weight)
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: edge {number} is {shown(fields)}; give two agents 0, 1, ... and "
            "possibly a positive weight"
        ) from None


def _agent(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
        return int(value)
    if type(value) is not int or value < 0:
        raise ValueError
    return value


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
