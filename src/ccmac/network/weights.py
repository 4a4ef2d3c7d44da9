"""Gossip matrices: their storage order, hops, shortest routes and ends of the spectrum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import shown

if TYPE_CHECKING:
    import networkx as nx

WIDTH = 60  # of Lanczos, before a factorization is tried
RESTARTS = 20
CHUNK = 256  # agents whose distances to all others are held at a time
ABREAST = 1024  # the same where one bit is enough
RELAYED = 2048  # agents up to which the routes of all pairs are chosen together
LOOKED_AT = 2**22  # pairs times neighbors at a time
FEW_HOPS = 50  # from one agent to all others: then many agents are searched from at once

Index = NDArray[np.int64]


def canonical(matrix: Any) -> sp.csr_array:
    """CSR with sorted indices and float64 data: one fixed order of summation everywhere."""
    result = sp.csr_array(matrix, dtype=np.float64)
    result.sum_duplicates()
    result.eliminate_zeros()  # a stored zero is not an edge
    result.sort_indices()
    return result


def graph_weights(graph: nx.Graph[Any], nodes: Sequence[Any], kind: str) -> sp.csr_array:
    """The unweighted Laplacian of a connected graph, or I - M with its Metropolis matrix."""
    import networkx as nx

    simple: nx.Graph[Any] = nx.Graph(graph)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    if not nx.is_connected(simple):
        parts = sorted(len(c) for c in nx.connected_components(simple))
        raise InputError(
            f"network: the graph is disconnected (components of {shown(parts)} agents); "
            "add edges until every agent can reach every other"
        )
    if kind == "laplacian":
        matrix = nx.laplacian_matrix(simple, nodelist=nodes, weight="")
    elif kind == "metropolis":
        matrix = metropolis_weights(simple, nodes)
    else:
        raise InputError(f"network: unknown weights {kind!r}; take 'laplacian' or 'metropolis'")
    return canonical(matrix)


def metropolis_weights(graph: nx.Graph[Any], nodes: Sequence[Any]) -> sp.csr_array:
    """I - M for the Metropolis matrix M of the graph."""
    index = {node: k for k, node in enumerate(nodes)}
    rows = []
    cols = []
    values = []
    for u, v in graph.edges:
        weight = 1.0 / (1.0 + max(graph.degree[u], graph.degree[v]))
        i = index[u]
        j = index[v]
        rows += [i, j, i, j]
        cols += [j, i, i, j]
        values += [-weight, -weight, weight, weight]
    n = len(nodes)
    return sp.csr_array(sp.coo_array((values, (rows, cols)), shape=(n, n)))


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
    wide = n > CHUNK and hops(weights, [0]).max() <= FEW_HOPS
    size = ABREAST if wide else CHUNK
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
    asked: dict[str, Any] = {"which": "LA", "k": 1, "ncv": WIDTH, "v0": start, "tol": 1e-8}
    top = float(sp.linalg.eigsh(weights, **asked)[0][0])
    start -= start.mean()

    def flipped(v: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = v - v.mean()
        return np.asarray(top * inside - weights @ inside)

    mirrored = sp.linalg.LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    try:
        gap = sp.linalg.eigsh(mirrored, maxiter=RESTARTS, **asked)[0]
        return top - float(gap[0]), top
    except sp.linalg.ArpackNoConvergence:
        shifted = weights + sp.eye_array(n) * (1e-8 * top)
        low = sp.linalg.eigsh(shifted, k=2, sigma=0.0, v0=start, return_eigenvectors=False)
        return float(np.max(low) - 1e-8 * top), top


class Routes(NamedTuple):
    """Agent v gets row o in round hops[v, o] from its neighbor senders[v, o], one hop nearer to o.

    Up to RELAYED agents all pairs choose in turn the neighbor that sends least so far. Of more, a
    few receivers at a time take the first hops of breadth-first trees, ties broken by an order
    drawn for them, so that what is sent can be counted without a table of all pairs.
    """

    hops: Index
    senders: Index

    def in_messages(self) -> tuple[Index, Index]:
        """(the message in which each row comes to each other agent, rows in every message)."""
        v, o = np.nonzero(self.hops)
        n = self.hops.shape[1]
        senders = self.senders[v, o]
        keys = (self.hops[v, o] * n + senders) * n + v
        _, found, rows = np.unique(keys, return_inverse=True, return_counts=True)
        return found.ravel(), rows


class Load(NamedTuple):
    """Rows sent by every agent, messages (edges by rounds) and the rows in the longest of them."""

    sent: Index
    messages: int
    longest: int


def routes(weights: sp.csr_array) -> Routes:
    """Of all pairs."""
    if _complete(weights):
        return _direct(weights.shape[0])
    if weights.shape[0] <= RELAYED:
        return _balanced(weights)
    parts = [first_hops(weights, some) for some in _receivers(weights.shape[0])]
    return Routes(*(np.concatenate(side) for side in zip(*parts, strict=True)))


def load(weights: sp.csr_array, known: Routes | None = None) -> Load:
    """What :func:`routes` send; where they are not known, in memory that grows with n alone."""
    if known is not None:
        _, rows = known.in_messages()
        sent = np.bincount(known.senders[known.hops > 0], minlength=weights.shape[0])
        return Load(sent, len(rows), int(rows.max(initial=0)))
    n = weights.shape[0]
    messages = 0
    longest = 0
    if _complete(weights):
        return Load(np.full(n, n - 1), n * (n - 1), min(n - 1, 1))
    sent = np.zeros(n, dtype=np.int64)
    for some in _receivers(n):
        for v, far, senders in zip(some, *first_hops(weights, some), strict=True):
            sent += np.bincount(np.delete(senders, v), minlength=n)
            near = np.array([v, *neighbors(weights, v)])  # v itself: its own row is there
            place = np.searchsorted(near[1:], senders) + 1
            place[v] = 0
            rows = np.bincount(far * len(near) + place, minlength=len(near) + 1)[len(near) :]
            messages += int(np.count_nonzero(rows))
            longest = max(longest, int(rows.max()))
    return Load(sent, messages, longest)


def _complete(weights: sp.csr_array) -> bool:
    """Whether everybody talks to everybody."""
    return bool(weights.nnz == weights.shape[0] ** 2)


def _direct(n: int) -> Routes:
    """In a complete graph: everybody sends its own row."""
    near = 1 - np.eye(n, dtype=np.int64)
    return Routes(near, np.where(near, np.arange(n), -1))


def _receivers(n: int) -> Iterator[range]:
    size = max(LOOKED_AT // n, 1)
    return (range(k, min(k + size, n)) for k in range(0, n, size))


def first_hops(weights: sp.csr_array, receivers: range) -> Routes:
    """By breadth-first trees of the ``receivers``, in an order of agents that is drawn for them."""
    n = weights.shape[0]
    random = np.random.default_rng(receivers.start)
    order = random.permutation(n)
    place = np.argsort(order)  # of an agent in that order
    links = sp.csr_array(abs(weights))[order][:, order]
    found, before = sp.csgraph.dijkstra(
        links, unweighted=True, indices=place[receivers], return_predecessors=True
    )
    far = found.astype(np.int64)
    # The origin's path back to the receiver, by doubled steps; the first hop stands still.
    back = np.where(far > 1, before, np.arange(n))
    for _ in range(int(far.max()).bit_length()):
        back = np.take_along_axis(back, back, axis=1)
    senders = order[back[:, place]]
    senders[range(len(receivers)), receivers] = -1
    return Routes(far[:, place], senders)


def _balanced(weights: sp.csr_array) -> Routes:
    """A neighbor one hop nearer to the origin, the one that sends least so far.

    Near pairs choose first, and of equally near ones those that have no choice.
    """
    n = weights.shape[0]
    far = hops(weights, range(n))
    near = [neighbors(weights, v) for v in range(n)]
    degree = max(map(len, near))
    padded = np.array([[*each, *[v] * (degree - len(each))] for v, each in enumerate(near)])
    senders = np.where(far == 1, np.arange(n), -1)
    sent = (far == 1).sum(axis=0)
    order = np.argsort(far, axis=None, kind="stable")
    levels = np.split(order, np.cumsum(np.bincount(far.ravel()))[:-1])
    for level, pairs in enumerate(levels[2:], start=2):
        for part in np.array_split(pairs, -(-len(pairs) * degree // LOOKED_AT)):
            v, o = np.divmod(part, n)
            nearer = far[padded[v], o[:, None]] == level - 1
            only = nearer.sum(axis=1) == 1
            senders[v[only], o[only]] = chosen = padded[v[only], nearer[only].argmax(axis=1)]
            sent += np.bincount(chosen, minlength=n)
            for i in np.flatnonzero(~only):
                choice = padded[v[i], nearer[i]]
                senders[v[i], o[i]] = least = choice[sent[choice].argmin()]
                sent[least] += 1
    return Routes(far, senders)
