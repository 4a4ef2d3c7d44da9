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
from ccmac.network.weights import (
    canonical,
    eccentricities,
    graph_weights,
    hops,
    large_extremes,
    metropolis_weights,
    neighbors,
)
from ccmac.texts import shown

if TYPE_CHECKING:  # loaded where a graph of it is given, drawn or asked for
    import networkx as nx

DENSE = 500  # agents up to which all eigenvalues of W are computed
LARGEST = 10_000_000  # agents of a named family
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
        return cls(canonical(sp.diags_array(adjacency.sum(axis=1)) - adjacency), name=name)

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
        matrix = graph_weights(graph, nodes, weights)
        return cls(matrix, name=_called(name, f"graph({n})"), nodes=nodes)

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
        laplacian = metropolis_weights(self.graph, range(self.n))
        return canonical(sp.eye_array(self.n) - laplacian)

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
