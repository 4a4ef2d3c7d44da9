"""Exact averaging along the edges, with the same bits at every agent.

All schemes end with one sum, in one order, known to all: whoever computes it, and wherever, gets
the same bits. What agents know in common is therefore one row, in a simulation as on a cluster.

``Relay``    every row travels to every agent, which adds them up in agent order: as many rounds as
             the diameter, the least possible, and n - 1 rows sent by an agent on average
``Tree``     partial sums climb a breadth-first tree and the sum comes back: 2 x radius rounds,
             a few rows per agent (two on a ring): for wide rows
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Costs
from ccmac.network import Network, hops, neighbors
from ccmac.runtime.partition import Index, owners
from ccmac.texts import nearest, shown

Step = tuple[list[tuple[int, Index]], list[tuple[int, Index]]]  # (process, rows) out and in
FLOAT_BYTES = 8
RELAYED = 2048  # agents up to which "auto" chooses routes of all pairs
LOOKED_AT = 2**22  # pairs times neighbors at a time


class Averaging(ABC):
    """A sum over all agents in a fixed order, by ``rounds`` neighbor rounds."""

    name: str
    rounds: int
    rows_known: bool  # whether everybody gets every row, and not their sum alone
    hides: bool = False  # whether rows are masked: what everybody gets tells the sum alone
    floats_sent: int  # floats that the busiest agent sends, per float averaged
    floats_total: int  # per float averaged, by all agents together
    messages: int  # sent by all agents together
    longest: int  # rows in the longest message
    words_each: int = 1  # words of eight bytes in which a number that is summed travels
    extra: int = 0  # words of the scheme's own in every row that is summed
    routes: Index  # who sends to whom: all processes must have found the same

    @property
    def grain(self) -> float:
        """What may be lost of an entry of a sum, in addition to its own rounding."""
        return 0.0

    def grain_of(self, widths: tuple[int, ...], part: int) -> float:
        """The same for one part of the last message with parts of these widths."""
        return 0.0

    @property
    def described(self) -> str:
        """What all processes must have alike."""
        return f"{self.name}, {self.rounds} rounds"

    def taking(self, width: int) -> Averaging:
        """The scheme by which rows of ``width`` floats travel."""
        return self

    @abstractmethod
    def total(self, block: Array) -> Array:
        """The sum of all rows in this scheme's order, shape (1, width)."""

    def total_of(self, rows: Iterable[Array]) -> Array:
        """The same of rows that come one by one, in agent order."""
        return self.total(np.stack(list(rows)))


class Relay(Averaging):
    """Agent v gets row o in round ``hops[v, o]`` from its neighbor ``senders[v, o]``.

    Rows of more than ``most`` floats take another scheme, if one is given.
    """

    name = "relay"
    rows_known = True

    def __init__(self, network: Network, wide: Averaging | None = None, most: float = inf) -> None:
        self.network = network
        self.wide = wide
        self.most = most
        self.rounds = network.diameter
        n = network.n
        if _complete(network.weights):  # many agents in one process do without a table of pairs
            self.floats_sent = n - 1
            self.floats_total = self.messages = n * (n - 1)
            self.longest = min(n - 1, 1)
            return
        v, o = np.nonzero(self.paths.hops)
        senders = self.routes[v, o]
        sent = np.bincount(senders, minlength=n)
        self.floats_sent, self.floats_total = int(sent.max()), len(v)
        # rows in every message: one for each round and edge
        _, rows = np.unique((self.paths.hops[v, o] * n + senders) * n + v, return_counts=True)
        self.messages, self.longest = len(rows), int(rows.max(initial=0))

    @property
    def described(self) -> str:
        return f"{super().described}, rows of at most {self.most:g} floats"

    def taking(self, width: int) -> Averaging:
        return self if self.wide is None or width <= self.most else self.wide

    @cached_property
    def paths(self) -> Routes:
        """Of all pairs, agents by origins."""
        return routes(self.network.weights)

    @cached_property
    def routes(self) -> Index:  # type: ignore[override]
        return self.paths.senders

    def arrivals(self, ends: Index, rank: int) -> list[dict[int, Index]]:
        """Round by round, rows that first reach a process: {process they come from: rows}.

        ``ends`` splits the agents into processes. A process that several of a row's paths enter
        gets the row once, by the first of them.
        """
        mine = np.arange(ends[rank], ends[rank + 1])
        far, senders = self.paths
        origins = np.setdiff1d(np.arange(len(far)), mine)
        first = np.argmin(far[mine][:, origins], axis=0)
        when = far[mine[first], origins]
        source = owners(senders[mine[first], origins], ends)
        rounds: list[dict[int, Index]] = []
        for k in range(1, self.rounds + 1):
            peers = np.unique(source[when == k])
            rounds.append({int(p): origins[(when == k) & (source == p)] for p in peers})
        return rounds

    def steps(self, ends: Index, rank: int) -> list[Step]:
        """Round by round, rows of all agents' table that a process sends and receives."""
        arrivals = [self.arrivals(ends, r) for r in range(len(ends) - 1)]
        return [
            (
                [(p, there[k][rank]) for p, there in enumerate(arrivals) if rank in there[k]],
                list(arrivals[rank][k].items()),
            )
            for k in range(self.rounds)
        ]

    def total(self, block: Array) -> Array:
        """((row_0 + row_1) + row_2) + ..."""
        return self.total_of(block)

    def total_of(self, rows: Iterable[Array]) -> Array:
        """Nothing but the sum is kept."""
        each = iter(rows)
        total = next(each) + 0.0  # no sum is -0.0
        for row in each:
            total += row
        return total[None]


class Tree(Averaging):
    """Sums climb a breadth-first tree to the centre of the graph, level by level."""

    name = "tree"
    rows_known = False

    def __init__(self, network: Network) -> None:
        n = self.n = network.n
        self.root, radius = network.centre
        self.rounds = 2 * radius
        adjacency = sp.csr_array(abs(network.weights))
        order, parent = sp.csgraph.breadth_first_order(adjacency, self.root, directed=False)
        depth = hops(network.weights, [self.root])[0]
        children = np.bincount(parent[order[1:]], minlength=n)
        # Everybody but the root sends once upwards; everybody sends down to all children.
        self.floats_sent = int((children + (np.arange(n) != self.root)).max()) if n > 1 else 0
        self.floats_total = self.messages = 2 * (n - 1)
        self.longest = min(n - 1, 1)
        self.levels = [np.flatnonzero(depth == level) for level in range(radius, 0, -1)]
        self.parent = self.routes = parent.astype(np.int64)

    @cached_property
    def _additions(self) -> list[tuple[Index, Index]]:
        """(parents, children) in order: first children of a level, second children, ..."""
        steps = []
        for members in self.levels:
            parents = self.parent[members]
            # How many of the parent's children come before: members are in agent order.
            order = np.argsort(parents, kind="stable")
            starts = np.searchsorted(parents[order], parents[order])
            turns = np.empty(len(members), dtype=np.int64)
            turns[order] = np.arange(len(members)) - starts
            steps += [
                (parents[turns == turn], members[turns == turn])
                for turn in range(int(turns.max()) + 1)
            ]
        return steps

    def total(self, block: Array) -> Array:
        """An agent's own row first, then its children's sums in agent order."""
        # floats of a row from which it is added by itself
        if block.shape[1] > 1024:
            return self.total_of(block)
        sums = block + 0.0  # no sum is -0.0
        for parents, children in self._additions:
            sums[parents] += sums[children]
        return sums[[self.root]]

    def total_of(self, rows: Iterable[Array]) -> Array:
        """Without copies of long rows."""
        sums = [row + 0.0 for row in rows]
        for parents, children in self._additions:
            for parent, child in zip(parents, children, strict=True):
                sums[parent] += sums[child]
        return sums[self.root][None]

    @cached_property
    def schedule(self) -> tuple[sp.csr_array, ...]:
        """One matrix per round: after the last, every row is the sum."""
        up = [self._matrix(members, climb=True) for members in self.levels]
        down = [self._matrix(members, climb=False) for members in reversed(self.levels)]
        return (*up, *down)

    def _matrix(self, members: Index, *, climb: bool) -> sp.csr_array:
        """``members`` add themselves to their parents, or copy them."""
        rows: list[list[int]] = [[v] for v in range(self.n)]
        for v in members:
            if climb:
                rows[self.parent[v]].append(int(v))
            else:
                rows[v] = [int(self.parent[v])]
        indices = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        # The order of the entries is the order of the sum: indices stay unsorted.
        return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(self.n, self.n))


def cheapest(network: Network, costs: Costs) -> Averaging:
    """Relaying where that takes fewer rounds; then rows whose bytes cost more than the rounds climb
    the tree, whose busiest agent sends two rows on a ring instead of n - 1.

    Relaying is left where an agent would send more than by talking to all its neighbors in every
    round of the tree.
    """
    tree = Tree(network)
    n = network.n
    most = tree.rounds * max(len(network.neighbors(v)) for v in range(n))
    few = n <= RELAYED or _complete(network.weights)
    if n - 1 > most or network.diameter >= tree.rounds or not few:
        return tree
    relay = Relay(network)
    if relay.floats_sent > most:
        return tree
    sent = costs.byte * FLOAT_BYTES * (relay.floats_sent - tree.floats_sent)
    saved = costs.round * (tree.rounds - relay.rounds)
    return Relay(network, tree, saved / sent) if sent > 0 else relay


def by_name(network: Network, name: str, costs: Costs | None = None) -> Averaging:
    """The scheme of that name; ``auto``: message by message, by the unit costs."""
    from ccmac.runtime.masked import Masked

    if name == "auto":
        return cheapest(network, costs or Costs())
    schemes: dict[str, type[Relay | Tree]]
    schemes = {"relay": Relay, "tree": Tree, "masked": Masked}
    if name not in schemes:
        raise InputError(
            f"averaging {shown(name)} is unknown; {nearest(str(name), ('auto', *schemes))}"
        )
    return schemes[name](network)


def messages_sent(matrix: sp.csr_array) -> NDArray[np.int64]:
    """How many neighbors each agent's row goes to in one round of ``matrix``."""
    coo = matrix.tocoo()
    return np.bincount(coo.col[coo.row != coo.col], minlength=matrix.shape[0]).astype(np.int64)


# -- who relays what -------------------------------------------------------------------------------
class Routes(NamedTuple):
    """Agent v gets row o in round hops[v, o] from its neighbor senders[v, o], one hop nearer to o
    (-1 for its own).
    """

    hops: Index
    senders: Index


def routes(weights: sp.csr_array) -> Routes:
    """Of all pairs: from a neighbor one hop nearer to the origin, the one that sends least so far.

    Near pairs choose first, and of equally near ones those that have no choice.
    """
    n = weights.shape[0]
    if _complete(weights):
        near = 1 - np.eye(n, dtype=np.int64)
        return Routes(near, np.where(near, np.arange(n), -1))
    far = hops(weights, range(n))
    nearby = [neighbors(weights, v) for v in range(n)]
    degree = max(map(len, nearby))
    padded = np.array([[*each, *[v] * (degree - len(each))] for v, each in enumerate(nearby)])
    senders = np.where(far == 1, np.arange(n), -1)
    sent = (far == 1).sum(axis=0)
    for level in range(2, int(far.max()) + 1):
        pairs = np.flatnonzero(far == level)
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


def _complete(weights: sp.csr_array) -> bool:
    """Whether everybody talks to everybody."""
    return bool(weights.nnz == weights.shape[0] ** 2)
