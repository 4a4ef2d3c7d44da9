"""What one neighbor round moves between processes, worked out once per mixing matrix.

For rank r with rows I_r of a matrix M the *halo* is the set of columns that M[I_r, :] touches
outside I_r. A round sends exactly those rows of the block, once per pair of ranks, and multiplies.

Every output row is a sum over the stored entries of M in their stored order, whichever columns are
local: the sums are those of ``M @ block`` in one process, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.runtime.partition import Index, owners


@dataclass(frozen=True)
class Halo:
    """One rank's part of one round.

    ``matrix`` multiplies the ``own`` rows of the block followed by the halo in agent order, which
    is also the order of the ranks it comes from.
    """

    peers: tuple[int, ...]
    send_rows: Index  # local rows to send, peer after peer
    send_counts: tuple[int, ...]  # rows to each peer
    receive_counts: tuple[int, ...]  # rows from each peer
    own: Index  # local rows that the product reads
    matrix: sp.csr_array  # local x (own, halo)


def rank_neighbors(network: Network, ends: Index, rank: int) -> tuple[int, ...]:
    """Ranks that hold a neighbor of an agent of ``rank``, ascending."""
    columns = _columns(network.weights, ends, rank)
    return tuple(int(r) for r in np.unique(owners(columns, ends)) if r != rank)


def root_tree(network: Network, ends: Index) -> tuple[dict[int, int], dict[int, int]]:
    """Parent and depth of every process in a breadth-first tree from the root."""
    graph = nx.empty_graph(len(ends) - 1)
    graph.add_edges_from((r, p) for r in graph for p in rank_neighbors(network, ends, r))
    return dict(nx.bfs_predecessors(graph, 0)), nx.single_source_shortest_path_length(graph, 0)


def check_support(network: Network, matrix: sp.csr_array) -> None:
    """Refuse a matrix that would carry data between agents that share no edge."""
    n = network.n
    if matrix.shape != (n, n):
        raise InputError(f"mix: the matrix has shape {matrix.shape}; {n} agents need {(n, n)}")
    joined: sp.csr_array = (abs(network.weights) + sp.eye_array(n)).astype(bool)
    rows, columns = (matrix.astype(bool) > joined).nonzero()
    if len(rows):
        raise InputError(
            f"mix: entry ({rows[0]}, {columns[0]}) of the matrix joins agents that are "
            f"not neighbors in {network.name}; keep its support on the edges"
        )


def plan(matrix: sp.csr_array, peers: tuple[int, ...], ends: Index, rank: int) -> Halo:
    """Plan one round of ``matrix``; ``peers`` hold all neighbors."""
    start = int(ends[rank])
    stop = int(ends[rank + 1])
    local = matrix[start:stop]  # entries in their stored order
    read = np.unique(local.indices).astype(np.int64)
    inside = (read >= start) & (read < stop)
    own = read[inside]
    halo = read[~inside]
    position = np.zeros(matrix.shape[0], dtype=np.int64)
    position[own], position[halo] = np.arange(len(own)), len(own) + np.arange(len(halo))
    renumbered = (local.data, position[local.indices], local.indptr)
    sent = [_sent_to(matrix, ends, rank, peer) for peer in peers]
    received = np.bincount(owners(halo, ends), minlength=len(ends) - 1)
    return Halo(
        peers=peers,
        send_rows=np.concatenate([*sent, np.zeros(0, dtype=np.int64)]) - start,
        send_counts=tuple(len(rows) for rows in sent),
        receive_counts=tuple(int(received[peer]) for peer in peers),
        own=own - start,
        matrix=sp.csr_array(renumbered, shape=(stop - start, len(read))),
    )


def _columns(matrix: sp.csr_array, ends: Index, rank: int) -> Index:
    """Columns that the rows of ``rank`` touch, ascending."""
    rows = matrix[int(ends[rank]) : int(ends[rank + 1])]
    return np.asarray(np.unique(rows.indices), dtype=np.int64)


def _sent_to(matrix: sp.csr_array, ends: Index, rank: int, peer: int) -> Index:
    """Agents of ``rank`` whose rows ``peer`` reads, ascending."""
    columns = _columns(matrix, ends, peer)
    return np.compress((columns >= ends[rank]) & (columns < ends[rank + 1]), columns)


def rows_of(table: Array, rows: Index) -> Array:
    """These rows: a view where they are adjacent."""
    if len(rows) == rows[-1] - rows[0] + 1:
        return table[rows[0] : rows[-1] + 1]
    return table[rows]
