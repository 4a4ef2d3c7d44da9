"""Exact averaging along the edges: schedules of mixing matrices whose product is 11'/n.

Every scheme is a finite product  M_k ... M_1  of matrices supported on the graph (one neighbor
round each), so one primitive, ``mix``, executes all of them, in one process or under MPI.

``minimal_polynomial``  M_r = I - W/lambda_r over the distinct positive eigenvalues of W
``spanning_tree``       sums climb a breadth-first tree, the mean comes back: 2 x radius rounds
``chebyshev_filter``    M_r = I - W/root_r, roots of T_nu on [lambda_min^+, lambda_max]: not a
                        projector; ``error`` bounds what is left of the disagreement
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.network import Network

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Averaging:
    """A schedule of mixing matrices; ``error`` = ||product - 11'/n||."""

    name: str
    schedule: tuple[sp.csr_array, ...]
    error: float

    @property
    def rounds(self) -> int:
        """Neighbor rounds of one averaging."""
        return len(self.schedule)

    @cached_property
    def floats_sent(self) -> int:
        """Messages of the busiest agent in one averaging, per float averaged."""
        if not self.schedule:
            return 0
        sent = np.zeros(self.schedule[0].shape[0], dtype=np.int64)
        for matrix in self.schedule:
            sent += messages_sent(matrix)
        return int(sent.max())


def messages_sent(matrix: sp.csr_array) -> NDArray[np.int64]:
    """How many neighbors each agent's row goes to in one round of ``matrix``."""
    coo = matrix.tocoo()
    off = coo.row != coo.col
    return np.bincount(coo.col[off], minlength=matrix.shape[0]).astype(np.int64)


def leja_order(points: Array) -> Array:
    """Order the roots so that partial products of (1 - t/root) stay moderate."""
    left = list(np.asarray(points, dtype=np.float64))
    ordered = [left.pop(int(np.argmax(np.abs(left))))] if left else []
    while left:
        logs = [float(np.sum(np.log(np.abs(p - np.array(ordered)) + 1e-300))) for p in left]
        ordered.append(left.pop(int(np.argmax(logs))))
    return np.array(ordered)


def _from_roots(network: Network, name: str, roots: Array) -> Averaging:
    identity = sp.eye_array(network.n, format="csr")
    schedule = []
    for root in leja_order(roots):
        matrix = sp.csr_array(identity - network.weights / root)
        matrix.sort_indices()
        schedule.append(matrix)
    return Averaging(name, tuple(schedule), _error(schedule, network.n))


def _error(schedule: list[sp.csr_array], n: int) -> float:
    product = np.eye(n)
    for matrix in schedule:
        product = matrix @ product
    return float(np.linalg.norm(product - 1.0 / n, 2))


def minimal_polynomial(network: Network) -> Averaging:
    """prod_r (I - W/lambda_r): as many rounds as W has distinct positive eigenvalues."""
    return _from_roots(network, "minimal-polynomial", network.distinct_eigenvalues)


def spanning_tree(network: Network) -> Averaging:
    """Reduce to the centre along a breadth-first tree, broadcast back: 2 x radius rounds."""
    n = network.n
    if n == 1:
        return Averaging("spanning-tree", (), 0.0)
    root, radius = network.centre
    parent = dict(nx.bfs_predecessors(network.graph, root))
    depth = nx.single_source_shortest_path_length(network.graph, root)
    up, down = [], []
    for level in range(radius, 0, -1):
        members = sorted(v for v, k in depth.items() if k == level)
        climb = sp.eye_array(n, format="lil")
        fall = sp.eye_array(n, format="lil")
        for v in members:
            climb[parent[v], v] = 1.0
            fall[v, v] = 0.0
            fall[v, parent[v]] = 1.0
        up.append(_clean(climb))
        down.append(_clean(fall))
    # The root divides by n as the last thing before the broadcast.
    scale = np.ones(n)
    scale[root] = 1.0 / n
    up[-1] = _clean(sp.diags_array(scale) @ up[-1])
    schedule = up + down[::-1]
    error = _error(schedule, n) if n <= 2000 else n * float(np.finfo(float).eps)
    return Averaging("spanning-tree", tuple(schedule), error)


def _clean(matrix: Any) -> sp.csr_array:
    result: sp.csr_array = sp.csr_array(matrix)
    result.eliminate_zeros()
    result.sort_indices()
    return result


def chebyshev_filter(network: Network, degree: int) -> Averaging:
    """T_nu((c - W)/s)/T_nu(c/s) in factored form; error = 1/T_nu(c/s), c, s of spec(W)."""
    low, high = network.extremes
    centre, half = (high + low) / 2, (high - low) / 2
    roots = centre - half * np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
    return _from_roots(network, f"chebyshev-{degree}", roots)


EXACT = 1e-12


def cheapest(network: Network) -> Averaging:
    """The exact scheme of fewest rounds; the tree when the polynomial is not stable enough."""
    tree = spanning_tree(network)
    if network.n == 1 or len(network.distinct_eigenvalues) > min(tree.rounds, 64):
        return tree
    polynomial = minimal_polynomial(network)
    return polynomial if polynomial.error <= EXACT else tree


def by_name(network: Network, name: str) -> Averaging:
    """``auto``, ``minimal-polynomial``, ``spanning-tree`` or ``chebyshev-DEGREE``."""
    if name == "auto":
        return cheapest(network)
    if name == "minimal-polynomial":
        return minimal_polynomial(network)
    if name == "spanning-tree":
        return spanning_tree(network)
    kind, _, degree = name.partition("-")
    if kind == "chebyshev" and degree.isdigit() and int(degree) > 0:
        return chebyshev_filter(network, int(degree))
    raise InputError(
        f"averaging {name!r} is unknown; take auto, minimal-polynomial, spanning-tree or "
        "chebyshev-DEGREE"
    )
