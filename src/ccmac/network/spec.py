"""One grammar for networks: a name, a file, a graph or a matrix, for a problem with n agents.

Sizes are compared with n before anything is built: a name costs nothing until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.network.files import read_network
from ccmac.network.graph import Network
from ccmac.texts import DIGITS, is_file, nearest, shown

if TYPE_CHECKING:
    import networkx as nx


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
        _refuse_other_order(_sized(spec, spec.n, n), names)
        return spec
    if isinstance(spec, str | Path):
        return _named(str(spec), n)
    if isinstance(spec, np.ndarray) or is_sparse(spec):
        return _sized(spec, max(spec.shape, default=0), n, Network.from_weights)
    import networkx as nx

    if isinstance(spec, nx.Graph):
        return _sized(spec, spec.number_of_nodes(), n, lambda graph: _by_name(graph, names))
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


def _sized(
    spec: Any, size: int, n: int, make: Callable[[Any], Network] = lambda network: network
) -> Network:
    if size != n:
        raise InputError(
            f"network: has {size} agents but the problem has {n}; "
            "build the network for the problem's n"
        )
    return make(spec)


def _named(spec: str, n: int) -> Network:
    if spec.partition(":")[0] in FAMILIES:
        return build_family(parse_family(spec), n)
    if not is_file(spec):
        known = [
            *(name for name, f in FAMILIES.items() if not f.parameters),
            "grid:2x4",
            "erdos_renyi:0.5:1",
            "random_regular:4:0",
        ]
        hint = nearest(spec.partition(":")[0], FAMILIES)
        hint = f"; {hint}" if hint.startswith("did") else ""
        raise InputError(
            f"network {shown(spec)}: is neither a file nor one of {', '.join(known)}{hint}"
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
