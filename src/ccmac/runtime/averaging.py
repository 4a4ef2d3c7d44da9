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
from collections.abc import Callable, Iterable, Iterator
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
SOON = 2**30  # agents times links
FLOAT_BYTES = 8
RELAYED = 2048  # agents up to which the routes of all pairs are chosen together
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
        known = None if network.n > RELAYED else self._all
        sent, self.messages, self.longest = load(network.weights, known)
        self.floats_sent, self.floats_total = int(sent.max()), int(sent.sum())

    @property
    def described(self) -> str:
        return f"{super().described}, rows of at most {self.most:g} floats"

    def taking(self, width: int) -> Averaging:
        return self if self.wide is None or width <= self.most else self.wide

    @cached_property
    def _all(self) -> Routes:
        """Of all pairs: many agents in one process do without."""
        return routes(self.network.weights)

    @property
    def hops(self) -> Index:
        """Agents by origins."""
        return self._all.hops

    @property
    def senders(self) -> Index:
        """Agents by origins; -1 for their own rows."""
        return self._all.senders

    routes = senders

    def arrivals(self, ends: Index, rank: int) -> list[dict[int, Index]]:
        """Round by round, rows that first reach a process: {process they come from: rows}.

        ``ends`` splits the agents into processes. A process that several of a row's paths enter
        gets the row once, by the first of them.
        """
        mine = np.arange(ends[rank], ends[rank + 1])
        origins = np.setdiff1d(np.arange(len(self.hops)), mine)
        first = np.argmin(self.hops[mine][:, origins], axis=0)
        when = self.hops[mine[first], origins]
        source = owners(self.senders[mine[first], origins], ends)
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
        depth = np.zeros(n, dtype=np.int64)
        for v in order[1:]:
            depth[v] = depth[parent[v]] + 1
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
    if n == 1:
        return tree
    most = tree.rounds * max(len(network.neighbors(v)) for v in range(n))
    soon = network.diameter == 1 or n * network.weights.nnz <= SOON  # routes within a minute
    if n - 1 > most or network.diameter >= tree.rounds or not soon:
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
    schemes: dict[str, Callable[[Network], Averaging]]
    schemes = {"relay": Relay, "tree": Tree, "masked": Masked}
    if name == "scatter":
        raise InputError("averaging 'scatter' is gone; take tree, which also sends few bytes")
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
