"""Sums of rows that concern a few agents (:mod:`ccmac.runtime.few`) between processes.

They travel in rounds of their own or, beside rows that go to everybody, in those: messages of both
to one process are one message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime.few import Few
from ccmac.runtime.partition import Index, owners

if TYPE_CHECKING:
    from ccmac.runtime.distributed import Distributed

UNTOLD = 0.0  # in place of sums that no agent here wants
Rows = tuple[int, Array, int]  # process, floats, agents whose they are
Message = tuple[int, Index, int]  # the same of entries
Company = Iterator[tuple[list[Rows], list[Rows]]]  # messages out and in, round by round
_known: WeakKeyDictionary[Few, dict[tuple[int, int], list[_Round]]] = WeakKeyDictionary()


class _Round(NamedTuple):
    """Of one process: messages, then (parents, children) to add and (to, from) to copy here."""

    sent: list[Message]
    received: list[Message]
    added: list[tuple[Index, Index]]
    copied: tuple[Index, Index]


def pooled(
    runtime: Distributed, few: Few, parts: Sequence[Array], tables: Sequence[Array]
) -> tuple[list[Array], ...]:
    """Sums of the first part among few, of the others and all tables for everybody."""
    total = np.full((1, few.shape[1]), UNTOLD)
    company = _travel(runtime, few, parts[0], total)
    if tables or any(part.size for part in parts[1:]):
        runtime._company = company
        rest, seen = runtime._pool(parts[1:], tables)
        runtime._company = None
        next(company, None)  # what came in the last round
        return [total, *rest], seen
    for sent, received in company:
        runtime._exchange("halo", sent, received)
    return [total, *(np.zeros((1, 0)) for _ in parts[1:])], []


def _travel(runtime: Distributed, few: Few, block: Array, total: Array) -> Company:
    """Messages of every round; after the last, ``total`` has the sums that agents here want."""
    first = runtime.owned.start
    last = runtime.owned.stop
    mine = np.flatnonzero((few.agents >= first) & (few.agents < last))
    values = np.zeros(len(few.agents))
    values[mine] = block[few.agents[mine] - first, few.rows[mine]] + 0.0
    plans = _known.setdefault(few, {})
    key = (runtime.rank, runtime.ranks)
    if key not in plans:
        plans[key] = list(_planned(few, runtime._ends, runtime.rank))
    for plan in plans[key]:
        arriving = [(p, np.empty(len(places)), agents) for p, places, agents in plan.received]
        yield [(p, values[at], agents) for p, at, agents in plan.sent], arriving
        for (_, places, _), (_, arrived, _) in zip(plan.received, arriving, strict=True):
            values[places] = arrived
        for parents, children in plan.added:
            values[parents] += values[children]
        to, source = plan.copied
        values[to] = values[source]
    wanted = mine[few.supports[few.agents[mine], few.rows[mine]]]
    total[0, few.rows[wanted]] = values[wanted]


def _planned(few: Few, ends: Index, rank: int) -> Iterator[_Round]:
    """What one process does, round by round."""
    owner = owners(few.agents, ends)

    def messages(entries: Index, peers: Index) -> list[Message]:
        found = [(int(p), entries[peers == p]) for p in np.unique(peers) if p != rank]
        return [(p, some, len(np.unique(few.agents[some]))) for p, some in found]

    for k in range(few.rounds):
        now = few.at(k)
        at = owner[now.source]
        to = owner[now.target]
        # A child's sum is kept in the child's entry until it is added.
        places = np.where(now.turns >= 0, now.source, now.target)
        stays = (at == rank) & (to == rank) & (now.turns < 0)
        yield _Round(
            messages(now.source, np.where(at == rank, to, rank)),
            messages(places, np.where(to == rank, at, rank)),
            now.where(to == rank).additions(),
            (now.target[stays], now.source[stays]),
        )


def together(
    runtime: Distributed,
    company: Company,
    kind: str,
    sent: Sequence[Rows],
    received: Sequence[Rows],
) -> None:
    """One round of others' messages and of those that keep them company."""
    leaving, arriving = next(company, ([], []))
    messages = _joined(received, arriving)
    runtime._company = None
    runtime._exchange(kind, _joined(sent, leaving), messages)
    runtime._company = company
    arrived = {peer: block for peer, block, _ in messages}
    for peer, block, _ in [*received, *arriving]:
        if block.size and arrived[peer] is not block:
            piece, arrived[peer] = np.split(arrived[peer], [block.size])
            block[...] = piece.reshape(block.shape)


def _joined(rows: Sequence[Rows], more: Sequence[Rows]) -> list[Rows]:
    """One message for each process, of both."""
    found = {peer: (block, agents) for peer, block, agents in rows if block.size}
    for peer, block, agents in more:
        if peer in found:
            before, others = found[peer]
            found[peer] = np.concatenate([before.ravel(), block]), others + agents
        else:
            found[peer] = block, agents
    return [(peer, *both) for peer, both in found.items()]
