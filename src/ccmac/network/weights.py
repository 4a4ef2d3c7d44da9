"""Gossip matrices: their storage order, hop distances and ends of the spectrum, at any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import shown

if TYPE_CHECKING:
    import networkx as nx

WIDTH, RESTARTS = 60, 20  # of Lanczos, before a factorization is tried
CHUNK = 256  # agents whose distances to all others are held at a time
ABREAST = 1024  # the same where one bit is enough
FEW_HOPS = 50  # from one agent to all others: then many agents are searched from at once


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
    rows, cols, values = [], [], []
    for u, v in graph.edges:
        weight = 1.0 / (1.0 + max(graph.degree[u], graph.degree[v]))
        i, j = index[u], index[v]
        rows += [i, j, i, j]
        cols += [j, i, i, j]
        values += [-weight, -weight, weight, weight]
    n = len(nodes)
    return sp.csr_array(sp.coo_array((values, (rows, cols)), shape=(n, n)))


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
    """Hops until all agents have heard of each origin, one bit each: for graphs of few hops."""
    n = weights.shape[0]
    links = sp.csr_array(abs(weights) + sp.eye_array(n))
    heard = np.zeros((n, -(-len(origins) // 64) * 64), dtype=bool)
    heard[list(origins), range(len(origins))] = True
    bits = np.packbits(heard, axis=1).view(np.uint64)  # words of 64 origins
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
