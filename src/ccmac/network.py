"""The communication graph and its gossip matrix W, and the ways to name one.

W is symmetric positive semidefinite, supported on the edges, with kernel span{1}, hence
range {r: sum_i r_i = 0} (Lemma lem:network-range); one product
with W is one synchronous neighbor round. ``condition`` is kappa_W = lambda_max / lambda_min^+
(1 for a single agent, which never communicates).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac import show
from ccmac.errors import InputError
from ccmac.inputs import Array, index, is_sparse, nonnegative, real_matrix, several, text, whole
from ccmac.texts import DIGITS, MEGABYTE, is_file, nearest, read_text, shown

if TYPE_CHECKING:  # loaded where a graph of it is given, drawn or asked for
    import networkx as nx

DENSE = 500  # agents up to which all eigenvalues of W are computed
LARGEST = 10_000_000  # agents of a named family
CHUNK = 256  # agents whose distances to all others are held at a time
Edge = tuple[int, int, float]


class Network:
    """A connected undirected graph on agents ``0..n-1`` with its gossip matrix.

    Parameters
    ----------
    weights : sparse matrix
        The gossip matrix W. Make networks with the class methods, which check it.
    name : str
        What it is called.
    nodes : sequence, optional
        The names of the agents in the graph that it was made of.

    Examples
    --------
    >>> import ccmac
    >>> ring = ccmac.Network.ring(6)
    >>> ring.diameter, round(ring.condition, 6)
    (3, 4.0)
    """

    def __init__(
        self, weights: sp.csr_array, *, name: str, nodes: Sequence[Any] | None = None
    ) -> None:
        self.weights = weights
        self.n = int(weights.shape[0])
        """Number of agents."""
        self.name = name
        self.nodes: list[Any] = list(range(self.n) if nodes is None else nodes)
        """The user's own names: agent k is node ``nodes[k]`` of the graph that was given."""

    # -- families -------------------------------------------------------------------------
    @classmethod
    def ring(cls, n: int) -> Network:
        """Cycle on n agents.

        Parameters
        ----------
        n : int
            Number of agents.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.ring(4).neighbors(0)
        [1, 3]
        """
        _check_counts(n)
        agents = np.arange(n if n > 2 else n - 1)
        return cls._linked(n, agents, (agents + 1) % n, f"ring({n})")

    @classmethod
    def path(cls, n: int) -> Network:
        """Path on n agents; kappa_W = cot^2(pi/2n).

        Parameters
        ----------
        n : int
            Number of agents.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.path(4).diameter
        3
        """
        _check_counts(n)
        return cls._linked(n, np.arange(n - 1), np.arange(1, n), f"path({n})")

    @classmethod
    def grid(cls, rows: int, cols: int) -> Network:
        """Two-dimensional grid, agents numbered row by row.

        Parameters
        ----------
        rows, cols : int
            Agents downwards and across.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.grid(2, 3).n
        6
        """
        _check_counts(rows, cols)
        _check_counts(rows * cols)
        agents = np.arange(rows * cols).reshape(rows, cols)
        lower = np.concatenate([agents[:, :-1].ravel(), agents[:-1].ravel()])
        upper = np.concatenate([agents[:, 1:].ravel(), agents[1:].ravel()])
        return cls._linked(rows * cols, lower, upper, f"grid({rows},{cols})")

    @classmethod
    def star(cls, n: int) -> Network:
        """Agent 0 in the middle.

        Parameters
        ----------
        n : int
            Number of agents, the one in the middle included.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.star(5).diameter
        2
        """
        _check_counts(n)
        return cls._linked(n, np.zeros(n - 1, dtype=int), np.arange(1, n), f"star({n})")

    @classmethod
    def complete(cls, n: int) -> Network:
        """Complete graph: everybody talks to everybody.

        Parameters
        ----------
        n : int
            Number of agents.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.complete(5).diameter
        1
        """
        _check_counts(n)
        return cls._linked(n, *np.triu_indices(n, 1), f"complete({n})")

    @classmethod
    def _linked(cls, n: int, u: NDArray[Any], v: NDArray[Any], name: str) -> Network:
        """Edges (u_k, v_k), each once."""
        both = np.concatenate([u, v]), np.concatenate([v, u])
        adjacency = sp.csr_array((np.ones(2 * len(u)), both), shape=(n, n))
        return cls(gossip(adjacency), name=name)

    @classmethod
    def erdos_renyi(cls, n: int, p: float, seed: int) -> Network:
        """Random graph; a disconnected draw is redrawn with seed + 1000 (at most 100 times).

        Parameters
        ----------
        n : int
            Number of agents.
        p : float
            Probability of each link.
        seed : int
            Of the draw.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.erdos_renyi(8, 0.5, seed=1).n
        8
        """
        _check_counts(n)
        seed = whole("network: seed", seed)
        if not nonnegative("network, edge probability p", p) <= 1.0:
            raise InputError(f"network: edge probability p = {p} lies outside 0..1")
        return cls._redrawn("gnp_random_graph", (n, p), seed, f"erdos_renyi({n},{p},{seed})")

    @classmethod
    def random_regular(cls, n: int, degree: int, seed: int) -> Network:
        """Random regular graph; a disconnected draw is redrawn with seed + 1000.

        Parameters
        ----------
        n : int
            Number of agents.
        degree : int
            Neighbors of each; n times degree must be even.
        seed : int
            Of the draw.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> len(ccmac.Network.random_regular(8, 3, seed=0).neighbors(0))
        3
        """
        _check_counts(n)
        seed = whole("network: seed", seed)
        if not whole("network: degree", degree) < n or (n * degree) % 2:
            raise InputError(
                f"network: no {degree}-regular graph on {n} agents exists; "
                "take degree < n with n*degree even"
            )
        name = f"random_regular({n},{degree},{seed})"
        return cls._redrawn("random_regular_graph", (degree, n), seed, name)

    @classmethod
    def _redrawn(cls, draw: str, sizes: tuple[float, ...], seed: int, name: str) -> Network:
        import networkx as nx

        for attempt in range(100):
            graph = getattr(nx, draw)(*sizes, seed=seed + 1000 * attempt)
            if nx.is_connected(graph):
                return cls.from_graph(graph, name=name)
        raise InputError(f"network: {name} was disconnected in 100 draws; raise the edge density")

    # -- general construction -------------------------------------------------------------
    @classmethod
    def from_graph(
        cls,
        graph: nx.Graph[Any],
        *,
        weights: str = "laplacian",
        name: str | None = None,
        nodes: Sequence[Any] | None = None,
    ) -> Network:
        """From a NetworkX graph; agents are its ``nodes`` in sorted (else insertion) order.

        ``nodes`` gives another order.

        ``weights``: ``"laplacian"`` (unweighted L) or ``"metropolis"`` (I - M, with M the
        Metropolis matrix M_ij = 1 / (1 + max(deg i, deg j))).

        Parameters
        ----------
        graph : networkx.Graph
            Connected and undirected.
        weights : {"laplacian", "metropolis"}
            The gossip matrix made of it.
        name : str, optional
            What the network is called.
        nodes : sequence, optional
            The agents' order.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> import networkx as nx
        >>> ccmac.Network.from_graph(nx.cycle_graph(5)).diameter
        2
        """
        import networkx as nx

        if not isinstance(graph, nx.Graph):
            raise InputError(
                f"network: expected a networkx graph, got {type(graph).__name__}; "
                "for a matrix use Network.from_weights"
            )
        if graph.is_directed():
            raise InputError("network: the graph is directed; gossip needs undirected edges")
        n = graph.number_of_nodes()
        if n == 0:
            raise InputError("network: the graph has no agents; add at least one node")
        order = list(graph.nodes)
        if nodes is not None:
            given = several("network, nodes", nodes, "every node of the graph, each once")
            if len(given) != n or not all(map(given.__contains__, order)):
                raise InputError("network: nodes must list every node of the graph, each once")
            order = given
        else:
            with suppress(TypeError):
                order.sort()
        if not isinstance(weights, str) or weights not in ("laplacian", "metropolis"):
            raise InputError(
                f"network: unknown weights {shown(weights)}; take 'laplacian' or 'metropolis' (a "
                "matrix: Network.from_weights)"
            )
        linked = nx.to_scipy_sparse_array(graph, nodelist=order, weight=None, dtype=float)
        links = links_of(sp.csr_array(linked))
        parts, part = sp.csgraph.connected_components(links, directed=False)
        if parts > 1:
            sizes = sorted(np.bincount(part).tolist())
            raise InputError(
                f"network: the graph is disconnected (components of {shown(sizes)} agents); "
                "add edges until every agent can reach every other"
            )
        return cls(gossip(links, weights), name=_called(name, f"graph({n})"), nodes=order)

    @classmethod
    def from_weights(cls, W: Any, *, name: str | None = None) -> Network:
        """From a gossip matrix: symmetric, positive semidefinite, kernel exactly span{1}.

        Parameters
        ----------
        W : matrix
            The gossip matrix, n by n.
        name : str, optional
            What the network is called.

        Returns
        -------
        Network

        Examples
        --------
        >>> import ccmac
        >>> ccmac.Network.from_weights([[1, -1], [-1, 1]]).n
        2
        """
        if hasattr(W, "edges"):
            raise InputError("network: W is a graph; give it to Network.from_graph, or its weights")
        matrix = canonical(real_matrix("network, W", W))
        n, columns = matrix.shape
        if n != columns or n == 0:
            raise InputError(
                f"network: W has shape {matrix.shape}; it must be square, one row per agent"
            )
        scale = float(abs(matrix).max()) if matrix.nnz else 1.0
        gap = abs(matrix - matrix.T).tocoo()
        if gap.nnz and gap.max() > 1e-10 * scale:
            i, j = (int(k[gap.data.argmax()]) for k in gap.coords)
            raise InputError(
                f"network: W is not symmetric (W[{i},{j}] != W[{j},{i}]); symmetrize it"
            )
        row_sums = np.abs(matrix @ np.ones(n))
        if row_sums.max() > 1e-8 * scale:
            worst = int(row_sums.argmax())
            raise InputError(
                f"network: W does not vanish on the constant vector (row {worst} sums to "
                f"{row_sums[worst]:.3g}); use a Laplacian, or I - M for a mixing matrix M"
            )
        off_diagonal = matrix - sp.diags_array(matrix.diagonal())
        off_diagonal.eliminate_zeros()
        components = sp.csgraph.connected_components(off_diagonal, directed=False)[0]
        if components > 1:
            raise InputError(
                f"network: W is disconnected ({components} components); "
                "its kernel must be span{1}: add edges"
            )
        network = cls(matrix, name=_called(name, f"weights({n})"))
        if n == 1:
            return network
        # No positive entry off the diagonal: a Laplacian, semidefinite by Gershgorin.
        if off_diagonal.max() > 0 and network.eigenvalues[0] < -1e-9 * scale:
            raise InputError(
                f"network: W is not positive semidefinite (eigenvalue "
                f"{network.eigenvalues[0]:.3g}); use a Laplacian, or I - M for a mixing matrix M"
            )
        low, high = network.extremes
        if low <= 1e-12 * high:
            raise InputError("network: the kernel of W is larger than span{1}; change the weights")
        return network

    # -- facts ----------------------------------------------------------------------------
    @cached_property
    def graph(self) -> nx.Graph[Any]:
        """The graph of the off-diagonal support of W."""
        import networkx as nx

        graph = nx.from_scipy_sparse_array(self.weights)
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        return graph

    @cached_property
    def eigenvalues(self) -> Array:
        """All eigenvalues of W, ascending (dense: n is the number of agents)."""
        return np.asarray(np.linalg.eigvalsh(self.weights.toarray()), dtype=np.float64)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """(lambda_min^+, lambda_max) of W; (1, 1) for one agent."""
        if self.n == 1:
            return 1.0, 1.0
        if self.n <= DENSE:
            return float(self.eigenvalues[1]), float(self.eigenvalues[-1])
        return large_extremes(self.weights)

    @property
    def condition(self) -> float:
        """Condition number kappa_W of W: its largest over its least positive eigenvalue."""
        low, high = self.extremes
        return high / low

    @property
    def known_condition(self) -> float | None:
        """kappa_W where it is found at once or has been asked for, else None."""
        return self.condition if self.n <= DENSE or "extremes" in vars(self) else None

    def hops(self, origins: Sequence[int] | None = None) -> NDArray[np.int64]:
        """Rows of the matrix of hop distances: one search of the graph per origin."""
        given = range(self.n) if origins is None else several("network, origins", origins, "agents")
        return hops(self.weights, [index("network: origin", agent, self.n) for agent in given])

    @cached_property
    def _eccentricities(self) -> NDArray[np.int64]:
        """Every agent's largest hop distance; those of a part of the agents at a time."""
        parts = (range(k, min(k + CHUNK, self.n)) for k in range(0, self.n, CHUNK))
        return np.concatenate([hops(self.weights, part).max(axis=1) for part in parts])

    @property
    def diameter(self) -> int:
        """Largest hop distance between two agents."""
        return int(self._eccentricities.max())

    @property
    def centre(self) -> tuple[int, int]:
        """(first agent of least eccentricity, that eccentricity = radius)."""
        best = int(np.argmin(self._eccentricities))
        return best, int(self._eccentricities[best])

    def neighbors(self, agent: int) -> Sequence[int]:
        """Agents that ``agent`` talks to, ascending."""
        return neighbors(self.weights, index("network: agent", agent, self.n))

    def metropolis(self) -> sp.csr_array:
        """The doubly stochastic Metropolis matrix of the graph."""
        mixed = gossip(links_of(self.weights), "metropolis")
        return canonical(sp.eye_array(self.n) - mixed)

    def plot(self, ax: Any = None) -> Any:
        """Draw agents and links; returns the axes."""
        return show.draw_network(self, ax)

    def _repr_html_(self) -> str:
        return show.card(repr(self), [f"{self.graph.number_of_edges()} links"])

    def __repr__(self) -> str:
        return f"Network({self.name}, n={self.n}, kappa_W={self.condition:.4g})"


def _called(name: str | None, otherwise: str) -> str:
    return otherwise if name is None else text("network, name", name) or otherwise


def _check_counts(*counts: int) -> None:
    for count in counts:
        whole("network: the number of agents", count, 1)
        if count > LARGEST:
            raise InputError(f"network: {shown(count)} agents are more than {LARGEST:,}")


# -- matrices of graphs ----------------------------------------------------------------------------
def canonical(matrix: Any) -> sp.csr_array:
    """CSR with sorted indices and float64 data: one fixed order of summation everywhere."""
    result = sp.csr_array(matrix, dtype=np.float64)
    result.sum_duplicates()
    result.eliminate_zeros()  # a stored zero is not an edge
    result.sort_indices()
    return result


def links_of(matrix: sp.csr_array) -> sp.csr_array:
    """One where two agents are linked, whatever the weight of the link."""
    links = canonical(matrix - sp.diags_array(matrix.diagonal()))
    links.data[:] = 1.0
    return links


def gossip(links: sp.csr_array, kind: str = "laplacian") -> sp.csr_array:
    """The Laplacian of the links, or I - M with M_ij = 1 / (1 + max(deg i, deg j))."""
    if kind == "metropolis":
        degrees = np.diff(links.indptr)
        larger = np.maximum(np.repeat(degrees, degrees), degrees[links.indices])
        links = sp.csr_array((1.0 / (1.0 + larger), links.indices, links.indptr), links.shape)
    return canonical(sp.diags_array(links.sum(axis=1)) - links)


def neighbors(weights: sp.csr_array, agent: int) -> list[int]:
    """Agents that ``agent`` talks to, ascending."""
    row = weights.indices[weights.indptr[agent] : weights.indptr[agent + 1]]
    return [int(j) for j in row if j != agent]


def hops(weights: sp.csr_array, origins: Sequence[int]) -> NDArray[np.int64]:
    """Hop distances from each origin to all agents, one row per origin."""
    found = sp.csgraph.dijkstra(abs(weights), unweighted=True, indices=list(origins))
    return np.asarray(found, dtype=np.int64).reshape(len(origins), weights.shape[0])


def large_extremes(weights: sp.csr_array) -> tuple[float, float]:
    """(lambda_min^+, lambda_max) of a large W, the same ones every time.

    Well-connected graphs, whose factors fill, have a wide gap above 0 that Lanczos finds at once;
    long ones, where it would not end, have sparse factors.
    """
    n = weights.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    asked: dict[str, Any] = {"which": "LA", "k": 1, "ncv": 60, "v0": start, "tol": 1e-8}
    top = float(sp.linalg.eigsh(weights, **asked)[0][0])
    start -= start.mean()

    def flipped(v: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = v - v.mean()
        return np.asarray(top * inside - weights @ inside)

    mirrored = sp.linalg.LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    try:
        gap = sp.linalg.eigsh(mirrored, maxiter=20, **asked)[0]
        return top - float(gap[0]), top
    except sp.linalg.ArpackNoConvergence:
        shifted = weights + sp.eye_array(n) * (1e-8 * top)
        low = sp.linalg.eigsh(shifted, k=2, sigma=0.0, v0=start, return_eigenvectors=False)
        return float(np.max(low) - 1e-8 * top), top


# -- names, files, graphs and matrices ---------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A named family: the numbers that follow its name, and how it is built for n agents.

    ``parameters`` names them with their type. A seed that is left out is 0.
    """

    make: Callable[..., Network]
    parameters: Mapping[str, type] = field(default_factory=dict)


FAMILIES: dict[str, Family] = {
    "ring": Family(Network.ring),
    "path": Family(Network.path),
    "star": Family(Network.star),
    "complete": Family(Network.complete),
    "grid": Family(lambda n, rows, cols: Network.grid(rows, cols), {"rows": int, "cols": int}),
    "erdos_renyi": Family(Network.erdos_renyi, {"p": float, "seed": int}),
    "random_regular": Family(Network.random_regular, {"degree": int, "seed": int}),
}
EXAMPLES = "ring, path, star, complete, grid:2x4, erdos_renyi:0.5:1 or random_regular:4:0"
HELP = (
    "ring, path, star, complete, grid:2x4, erdos_renyi:P:SEED, random_regular:D:SEED, or a "
    "file: an edge list ('0 1' on each line, a third number is a weight)."
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
            f"network: has {shown(size)} agents but the problem has {n}; "
            "build the network for the problem's n"
        )


def _named(spec: str, n: int) -> Network:
    if spec.partition(":")[0] in FAMILIES:
        return build_family(parse_family(spec), n)
    if not is_file(spec):
        hint = nearest(spec.partition(":")[0], FAMILIES)
        raise InputError(f"network {shown(spec)}: is neither a file nor one of {EXAMPLES}; {hint}")
    return read_network(Path(spec), n)


def parse_family(spec: str) -> dict[str, Any]:
    """``grid:2x4`` as ``{"family": "grid", "rows": 2, "cols": 4}``."""
    name, sign, rest = spec.partition(":")
    kinds = FAMILIES[name].parameters
    given = re.split("[:x]", rest) if sign else []
    if "seed" in kinds and len(given) < len(kinds):
        given.append("0")
    try:
        pairs = zip(kinds.items(), given, strict=True)
        return {"family": name} | {key: _number(kind, text) for (key, kind), text in pairs}
    except ValueError:
        raise InputError(
            f"network {shown(spec)}: {name} takes {' and '.join(kinds) or 'no numbers'}, as in "
            f"{EXAMPLES} (a seed may be left out)"
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
        _same_size(parameters["rows"] * parameters["cols"], n)
    return FAMILIES[name].make(n, **parameters)


# -- files -----------------------------------------------------------------------------------------
def read_network(path: Path, n: int) -> Network:
    """From edge lines: unweighted Laplacian, or a weighted one if some edge has another weight."""
    where = f"network {path}"
    try:
        text = read_text(path, where, 32 * MEGABYTE)
    except FileNotFoundError:
        raise InputError(f"{where}: is not there") from None
    edges = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#")[0].replace(",", " ").split()
        if not fields:
            continue
        edge = _edge(where, number, fields)
        if max(edge[:2]) >= n:
            raise InputError(
                f"{where}: names agent {shown(max(edge[:2]))} but the problem has agents 0..{n - 1}"
            )
        edges.append(edge)
    import networkx as nx

    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for u, v, w in edges if u != v)
    if all(w == 1.0 for _, _, w in edges):
        return Network.from_graph(graph, name=path.stem)
    return Network.from_weights(nx.laplacian_matrix(graph).astype(np.float64), name=path.stem)


def _edge(where: str, number: int, fields: list[str]) -> Edge:
    """Two agents, and possibly a weight."""
    try:
        u, v, *rest = fields
        [weight] = rest or ["1"]
        edge = int(u), int(v), float(weight)
        if min(edge) < 0 or not 0 < edge[2] < math.inf:
            raise ValueError
        return edge
    except ValueError:
        raise InputError(
            f"{where}: line {number} is {shown(fields)}; give two agents 0, 1, ... and "
            "possibly a positive weight"
        ) from None
