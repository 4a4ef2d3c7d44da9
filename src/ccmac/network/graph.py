"""The communication graph and its gossip matrix W.

W is symmetric positive semidefinite, supported on the edges, with kernel span{1}, hence
range {r: sum_i r_i = 0} (Lemma lem:network-range); one product
with W is one synchronous neighbor round. ``condition`` is kappa_W = lambda_max / lambda_min^+
(1 for a single agent, which never communicates).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac import show
from ccmac.errors import InputError
from ccmac.inputs import Array, index, nonnegative, real_matrix, several, text, whole
from ccmac.texts import shown

if TYPE_CHECKING:  # loaded where a graph of it is given, drawn or asked for
    import networkx as nx

DENSE = 500  # agents up to which all eigenvalues of W are computed
LARGEST = 10_000_000  # agents of a named family
CHUNK = 256  # agents whose distances to all others are held at a time
SCALE = 1e100  # entries of W within [1/SCALE, SCALE]: their squares neither overflow nor vanish


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
        self.name = name
        self.nodes: list[Any] = list(range(weights.shape[0]) if nodes is None else nodes)
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
        """Everybody talks to everybody.

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
        if nodes is not None and not _lists_all(nodes, graph):
            raise InputError("network: nodes must list every node of the graph, each once")
        if nodes is None:
            try:
                nodes = sorted(graph.nodes)
            except TypeError:
                nodes = list(graph.nodes)
        if weights not in ("laplacian", "metropolis"):
            raise InputError(
                f"network: unknown weights {weights!r}; take 'laplacian' or 'metropolis'"
            )
        linked = nx.to_scipy_sparse_array(graph, nodelist=list(nodes), weight=None, dtype=float)
        links = links_of(sp.csr_array(linked))
        parts, part = sp.csgraph.connected_components(links, directed=False)
        if parts > 1:
            sizes = sorted(np.bincount(part).tolist())
            raise InputError(
                f"network: the graph is disconnected (components of {shown(sizes)} agents); "
                "add edges until every agent can reach every other"
            )
        return cls(gossip(links, weights), name=_called(name, f"graph({n})"), nodes=nodes)

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
        matrix = canonical(real_matrix("network, W", W))
        n, columns = matrix.shape
        if n != columns or n == 0:
            raise InputError(
                f"network: W has shape {matrix.shape}; it must be square, one row per agent"
            )
        scale = float(abs(matrix).max()) if matrix.nnz else 1.0
        if not 1 / SCALE <= scale <= SCALE:
            raise InputError(
                f"network: the largest entry of W is {scale:.3g}; multiply W by a constant "
                "that brings it near one"
            )
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
    @property
    def n(self) -> int:
        """Number of agents."""
        return int(self.weights.shape[0])

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
        """kappa_W."""
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
        """Every agent's largest hop distance."""
        return eccentricities(self.weights)

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


def _lists_all(nodes: Any, graph: nx.Graph[Any]) -> bool:
    """Whether ``nodes`` names every node of the graph, each once."""
    try:
        return len(nodes) == len(graph) and set(nodes) == set(graph.nodes)
    except Exception:  # of what is no list, or lists what no node can be
        return False


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


def eccentricities(weights: sp.csr_array) -> NDArray[np.int64]:
    """Every agent's largest hop distance; those of a part of the agents at a time."""
    n = weights.shape[0]
    # few hops from one agent to all others: many agents are searched from at once, with one bit
    wide = n > CHUNK and hops(weights, [0]).max() <= 50
    size = 1024 if wide else CHUNK
    parts = [range(k, min(k + size, n)) for k in range(0, n, size)]
    if wide:
        return np.concatenate([flooded(weights, part) for part in parts])
    return np.concatenate([hops(weights, part).max(axis=1) for part in parts])


def flooded(weights: sp.csr_array, origins: range) -> NDArray[np.int64]:
    """Hops until all agents know of each origin, one bit each: for graphs of few hops."""
    n = weights.shape[0]
    links = sp.csr_array(abs(weights) + sp.eye_array(n))
    known_to = np.zeros((n, -(-len(origins) // 64) * 64), dtype=bool)
    known_to[list(origins), range(len(origins))] = True
    bits = np.packbits(known_to, axis=1).view(np.uint64)  # words of 64 origins
    count = np.zeros(len(origins), dtype=np.int64)
    while True:
        everybody = np.bitwise_and.reduce(bits, axis=0).view(np.uint8)
        known = np.unpackbits(everybody, count=len(origins))
        if known.all():
            return count
        count += known == 0
        bits = np.bitwise_or.reduceat(bits[links.indices], links.indptr[:-1], axis=0)


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
