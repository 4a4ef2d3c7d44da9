"""Gossip matrices of graphs, in one storage order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp


def canonical(matrix: Any) -> sp.csr_array:
    """CSR with sorted indices and float64 data: one fixed order of summation everywhere."""
    result = sp.csr_array(matrix, dtype=np.float64)
    result.sum_duplicates()
    result.eliminate_zeros()  # a stored zero is not an edge
    result.sort_indices()
    return result


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
