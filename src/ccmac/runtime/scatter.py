"""Averaging in chunks: every agent sums one of n, and all of them come back.

Column j of a row belongs to chunk j mod n. Chunk c climbs a breadth-first tree to agent c, an
agent's own entries first, then its children's sums in agent order; the finished chunks are relayed
to all along the same trees. Every agent sends about two rows, whatever the graph: on a complete
graph instead of n - 1, in two rounds. Twice the diameter of rounds in all.

One sum, in one order, at one place: the same bits everywhere. But the order of a column follows
from its place in the row, so that blocks have other bits in other company; what rides on an
averaging comes last in its rows and changes nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging, Relay
from ccmac.runtime.partition import Index, owners

if TYPE_CHECKING:
    from ccmac.runtime.distributed import Distributed


class Climb(NamedTuple):
    """One round upwards: ``children`` send their sums of ``chunks`` to ``parents``.

    ``turns`` tells the children of one parent apart, in agent order.
    """

    parents: Index
    children: Index
    chunks: Index
    turns: Index


class Scatter(Averaging):
    """Sums of chunks climb the trees of a :class:`Relay`, which then takes them to everybody."""

    name = "scatter"
    rows_known = False

    def __init__(self, network: Network, relay: Relay | None = None) -> None:
        n = self.n = network.n
        self.relay = relay or Relay(network)
        self.rounds = 2 * self.relay.rounds
        self.routes = self.relay.routes
        sent = 1 - np.eye(n, dtype=np.int64)  # by agent and chunk: one sum up, one to every child
        v, c = np.nonzero(self.relay.hops)
        np.add.at(sent, (self.relay.senders[v, c], c), 1)
        each = np.cumsum(sent, axis=1)  # of rows of 1, 2, ..., n floats
        self.floats_sent = -(-int(each[:, -1].max()) // n)
        # Narrow rows fill some chunks alone, whose agents send more than others.
        above = each.max(axis=0) - self.floats_sent * np.arange(1, n + 1)
        self.floats_once = max(int(above.max()), 0)
        self.floats_total = 2 * (n - 1)
        self.messages = 2 * self.relay.messages
        self._known: dict[tuple[int, int], list[tuple[Climb, Index, Index]]] = {}
        self.longest = min(n - 1, 1)  # at most: the chunks that one edge carries in a round

    @cached_property
    def climbs(self) -> list[Climb]:
        """Round by round, the agents farthest from their chunk's first."""
        steps = []
        for level in range(self.relay.rounds, 0, -1):
            children, chunks = np.nonzero(self.relay.hops == level)
            parents = self.relay.senders[children, chunks]
            order = np.lexsort((children, chunks, parents))
            parents = parents[order]
            children = children[order]
            chunks = chunks[order]
            keys = parents * self.n + chunks
            turns = np.arange(len(keys)) - np.searchsorted(keys, keys)
            steps.append(Climb(parents, children, chunks, turns))
        return steps

    def cut(self, block: Array) -> Array:
        """Rows by chunks, (rows, n, floats), filled up with zeros."""
        rows, width = block.shape
        cut = np.zeros((rows, -(-width // self.n) * self.n))
        cut[:, :width] = block
        return np.ascontiguousarray(cut.reshape(rows, -1, self.n).swapaxes(1, 2))

    def joined(self, chunks: Array, width: int) -> Array:
        """The row of all finished chunks, (n, floats)."""
        return np.ascontiguousarray(chunks.T).reshape(1, -1)[:, :width].copy()

    def total(self, block: Array) -> Array:
        """Chunk by chunk, each in the order of its tree."""
        sums = self.cut(block)
        for parents, children, chunks, turns in self.climbs:
            add(sums, parents, chunks, sums[children, chunks], turns)
        return self.joined(sums[range(self.n), range(self.n)], block.shape[1])

    def totals(self, parts: Sequence[Array]) -> list[Array]:
        """Of parts of one row."""
        if not parts:
            return []
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        return np.split(self.total(np.concatenate(parts, axis=1)), ends, axis=1)

    def summed(self, runtime: Distributed, block: Array) -> Array:
        """The same by messages, (1, width): the rows of the agents of one process are given."""
        sums = self.cut(block)
        first = runtime.owned.start
        for (parents, children, chunks, turns), to, source in self._steps(runtime):
            arrived = np.empty((len(to), sums.shape[2]))
            leaving = source == runtime.rank
            arrived[leaving] = sums[children[leaving] - first, chunks[leaving]]
            sent = [(p, arrived[to == p], int(np.sum(to == p))) for p in runtime.peers]
            received = [
                (p, np.empty((int(np.sum(source == p)), sums.shape[2])), 0) for p in runtime.peers
            ]
            runtime._exchange("halo", sent, received)
            for peer, values, _ in received:
                arrived[source == peer] = values
            here = to == runtime.rank
            add(sums, parents[here] - first, chunks[here], arrived[here], turns[here])
        own = sums[range(len(sums)), list(runtime.owned)]
        return self.joined(runtime._relayed(self.relay, own), block.shape[1])

    def _steps(self, runtime: Distributed) -> list[tuple[Climb, Index, Index]]:
        """Round by round: climbs that concern a process, processes they go to and come from."""
        key = runtime.rank, runtime.ranks
        if key not in self._known:
            steps = []
            for climb in self.climbs:
                to, source = (owners(v, runtime._ends) for v in (climb.parents, climb.children))
                mine = (to == runtime.rank) | (source == runtime.rank)
                steps.append((Climb(*(v[mine] for v in climb)), to[mine], source[mine]))
            self._known[key] = steps
        return self._known[key]


def add(sums: Array, parents: Index, chunks: Index, arrived: Array, turns: Index) -> None:
    """Children's sums to their parents', one child after the other."""
    for turn in range(int(turns.max(initial=-1)) + 1):
        now = turns == turn
        sums[parents[now], chunks[now]] += arrived[now]
