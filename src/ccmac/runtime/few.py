"""Rows that concern a few agents each: their sums travel among those few and touch nobody else.

A row's *support* are the agents that may have an entry in it, and that want its sum. Where they are
connected in the graph, a breadth-first tree from their centre lies among them: parts climb it and
the sum comes back; an agent's own part first, then its children's in agent order, so that all of
them have the same bits on any number of processes. A support in pieces takes along the agents of
shortest paths between them, who pass on what they are sent.

Rounds: 2 x the largest radius, for all rows at once; floats: 2 (agents - 1) for each row. Nothing
rides and no note is told, for not everybody hears.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ccmac.inputs import Array
from ccmac.ledger import Cost
from ccmac.network import Network
from ccmac.runtime.averaging import FLOAT_BYTES, Averaging, Pattern, Relay, Tree
from ccmac.runtime.partition import Index

MOST = 0.5  # share of all agents that a row may concern
PAIRS = 2**21  # of agents whose distances are looked at: a few seconds


class Trips(NamedTuple):
    """Who sends to whom in which round, one line for every float (of a column)."""

    rounds: Index
    senders: Index
    receivers: Index


class Climbs(NamedTuple):
    """Entries on their way: round, the one that is sent, the receiver's, and of sums that climb the
    place among its parent's children (-1: a sum that comes back).
    """

    rounds: Index
    source: Index
    target: Index
    turns: Index

    def where(self, chosen: Pattern) -> Climbs:
        """Some of them."""
        return Climbs(*(side[chosen] for side in self))

    def additions(self) -> list[tuple[Index, Index]]:
        """(parents, children) of one round: all first children, second children, ..."""
        turns = range(int(self.turns.max(initial=-1)) + 1)
        found = (self.where(self.turns == turn) for turn in turns)
        return [(now.target, now.source) for now in found if len(now.source)]


class Few:
    """Sums of rows by trees inside their ``supports`` (agents by rows).

    An *entry* is a pair of an agent and a row in whose tree it is.
    """

    def __init__(self, network: Network, supports: Pattern) -> None:
        self.supports = supports
        self.shape = supports.shape
        agents = []
        rows = []
        tops = []
        climbs = [Climbs(*[np.zeros(0, dtype=np.int64)] * 4)]
        self.rounds = start = 0
        for members, some in _groups(supports):
            tree = _tree(network, members)
            count = len(some)
            agents.append(np.repeat(tree.agents, count))
            rows.append(np.tile(some, len(tree.agents)))
            climbs.append(tree.climbs(start, count))
            tops.append(start + tree.root * count + np.arange(count))
            self.rounds = max(self.rounds, 2 * tree.radius)
            start += len(agents[-1])
        self.agents, self.rows, self._tops = map(_joined, (agents, rows, tops))
        self.climbs = Climbs(*map(_joined, zip(*climbs, strict=True)))
        self._held: dict[range, Pattern] = {}
        self._loads: dict[tuple[str, int], tuple[int, int, int, int]] = {}
        self._additions = [step for k in range(self.rounds) for step in self.at(k).additions()]
        busiest, total, longest, messages = self.load(None, 0)
        self.cost = Cost(
            rounds=self.rounds,
            averagings=1,
            bytes=FLOAT_BYTES * busiest,
            network_bytes=FLOAT_BYTES * total,
            messages=messages,
            longest_message=longest,
        )

    @classmethod
    def of(cls, network: Network, supports: Pattern, rounds: int) -> Few | None:
        """None where it takes more ``rounds``: a sum may as well reach everybody."""
        sizes = np.array([len(agents) for agents, _ in _groups(supports)])
        if not 0 < sizes.max(initial=0) <= MOST * len(supports) or sizes @ sizes > PAIRS:
            return None
        found = cls(network, supports)
        return found if found.rounds <= rounds else None

    def held(self, owned: range) -> Pattern:
        """Rows that concern somebody here, whose sums a process gets."""
        if owned not in self._held:
            self._held[owned] = np.asarray(self.supports[owned.start : owned.stop].any(axis=0))
        return self._held[owned]

    @cached_property
    def tellers(self) -> Pattern:
        """One agent for each row, its tree's root, who tells the sum where all are to know it."""
        found = np.zeros_like(self.supports)
        found[self.agents[self._tops], self.rows[self._tops]] = True
        return found

    def at(self, k: int) -> Climbs:
        """Of one round."""
        return self.climbs.where(self.climbs.rounds == k)

    def load(self, scheme: Averaging | None, more: int) -> tuple[int, int, int, int]:
        """(floats of the busiest agent, of all, in the longest message, messages) of such rows;
        beside them ``more`` columns travel to everybody by a scheme, in the same messages.
        """
        key = "" if scheme is None else scheme.name, more
        if key not in self._loads:
            self._loads[key] = self._load(scheme, more)
        return self._loads[key]

    def _load(self, scheme: Averaging | None, more: int) -> tuple[int, int, int, int]:
        n = self.shape[0]
        mine = Trips(
            self.climbs.rounds, self.agents[self.climbs.source], self.agents[self.climbs.target]
        )
        floats = np.ones(len(mine.rounds))
        if scheme is not None:
            theirs = _trips(scheme)
            mine = Trips(*(np.concatenate(side) for side in zip(mine, theirs, strict=True)))
            floats = np.concatenate([floats, np.full(len(theirs.rounds), more)])
        sent = np.bincount(mine.senders, floats, minlength=n)
        keys = (mine.rounds * n + mine.senders) * n + mine.receivers
        _, which = np.unique(keys, return_inverse=True)
        lengths = np.bincount(which.ravel(), floats)
        longest = int(lengths.max(initial=0))
        return int(sent.max()), int(sent.sum()), longest, len(lengths)

    # -- sums -------------------------------------------------------------------------------
    def total(self, block: Array) -> Array:
        """Of all agents' rows, in the order of the trees; (1, width)."""
        values = block[self.agents, self.rows] + 0.0  # no sum is -0.0
        for parents, children in self._additions:
            values[parents] += values[children]
        found = np.zeros((1, self.shape[1]))
        found[0, self.rows[self._tops]] = values[self._tops]
        return found


def _trips(scheme: Averaging) -> Trips:
    """Of rows that go to everybody."""
    if isinstance(scheme, Relay):
        v, o = np.nonzero(scheme.hops)
        return Trips(scheme.hops[v, o] - 1, scheme.senders[v, o], v)
    assert isinstance(scheme, Tree)
    low = _joined(scheme.levels)
    high = scheme.parent[low]
    rounds = np.repeat(np.arange(len(scheme.levels)), [len(level) for level in scheme.levels])
    back = scheme.rounds - 1 - rounds
    return Trips(*map(np.concatenate, ((rounds, back), (low, high), (high, low))))


class _Tree(NamedTuple):
    """Agents of one support; of each its parent's place among them and its depth; the root's."""

    agents: Index
    parent: Index
    depth: Index
    root: int

    @property
    def radius(self) -> int:
        return int(self.depth.max())

    def climbs(self, start: int, count: int) -> Climbs:
        """Of ``count`` rows; their entries begin at ``start``, agent by agent."""
        children = np.flatnonzero(self.depth)
        parents = self.parent[children]
        depth = self.depth[children]
        turns = np.array([np.sum(parents[:k] == p) for k, p in enumerate(parents)], dtype=np.int64)
        entries = start + np.arange(len(self.agents) * count).reshape(-1, count)
        low = entries[children].ravel()
        high = entries[parents].ravel()
        return Climbs(
            np.repeat(np.concatenate([self.radius - depth, self.radius + depth - 1]), count),
            np.concatenate([low, high]),
            np.concatenate([high, low]),
            np.repeat(np.concatenate([turns, np.full(len(turns), -1)]), count),
        )


def _groups(supports: Pattern) -> Iterator[tuple[Index, Index]]:
    """(agents, rows) of rows that concern the same agents; not those of nobody."""
    found: dict[bytes, list[int]] = {}
    for row, members in enumerate(np.packbits(supports, axis=0).T):
        found.setdefault(members.tobytes(), []).append(row)
    for rows in found.values():
        if len(agents := np.flatnonzero(supports[:, rows[0]])):
            yield agents, np.array(rows)


def _tree(network: Network, agents: Index) -> _Tree:
    """Breadth-first from the first agent of least eccentricity; parents are the first that can be.

    Agents are joined by those of shortest paths between them where they have to be.
    """
    while True:
        place = {int(v): k for k, v in enumerate(agents)}
        links = [[place[u] for u in network.neighbors(v) if u in place] for v in place]
        hops = _hops(links)
        if hops.min() >= 0:
            break
        agents = np.union1d(agents, _bridge(network, agents[hops[0] >= 0], agents[hops[0] < 0]))
    root = int(np.argmin(hops.max(axis=1)))
    depth = hops[root]
    parent = [next((u for u in links[k] if depth[u] < d), k) for k, d in enumerate(depth)]
    return _Tree(agents, np.array(parent, dtype=np.int64), depth, root)


def _hops(links: Sequence[Sequence[int]]) -> Index:
    """Between all pairs; -1 where there is no path."""
    hops = np.full((len(links), len(links)), -1, dtype=np.int64)
    for origin, row in enumerate(hops):
        found = {origin: 0}
        queue = [origin]
        for v in queue:
            for u in links[v]:
                if u not in found:
                    found[u] = found[v] + 1
                    queue.append(u)
        row[queue] = list(found.values())
    return hops


def _bridge(network: Network, some: Index, others: Index) -> list[int]:
    """Agents of a shortest path from some to the first of the nearest others."""
    hops = network.hops([int(v) for v in some]).min(axis=0)
    v = int(others[np.argmin(hops[others])])
    path = list[int]()
    while hops[v] > 0:
        v = next(u for u in network.neighbors(v) if hops[u] == hops[v] - 1)
        path.append(v)
    return path


def _joined(parts: Sequence[Index]) -> Index:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)
