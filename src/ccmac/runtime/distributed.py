"""Agents spread over processes that send messages to the owners of neighbors, and to nobody else.

Built on a :class:`~ccmac.runtime.transport.Transport` alone. A neighbor round is one exchange; an
averaging is the rounds of its scheme: rows relayed into a table that everybody sums in agent order,
or sums that climb a tree. Sums of scalars travel in the same rows. Results are bit-identical to
those of one process on any number of processes.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime import halo, leading
from ccmac.runtime.audit import EVERYONE, Audit, Entry, entries
from ccmac.runtime.averaging import Averaging, Relay, Step, Tree
from ccmac.runtime.base import Runtime
from ccmac.runtime.failure import aborting
from ccmac.runtime.masked import Masks, Words
from ccmac.runtime.notes import NOTE, never
from ccmac.runtime.partition import Index, bounds
from ccmac.runtime.transport import Transport

Rows = tuple[int, Array, int]  # process, floats, agents whose they are


class Distributed(Runtime):
    """Owns a contiguous range of agents, one range per process; nothing is fused.

    Construction is collective and refuses processes that hold different networks or versions.
    """

    def __init__(
        self,
        network: Network,
        transport: Transport,
        *,
        ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
        audit: bool | Audit = False,
    ) -> None:
        super().__init__(network, ledger=ledger, averaging=averaging)
        self.transport = transport
        self.apart = transport.apart
        self.rank = transport.rank
        self.ranks = transport.ranks
        self._ends = bounds(network.n, self.ranks)
        self.audit = (Audit() if audit else None) if isinstance(audit, bool) else audit
        self.check_consistent(leading.fingerprint(network, self.averaging))
        self.peers = halo.rank_neighbors(network, self._ends, self.rank)
        self._plans: dict[int, halo.Halo] = {}
        self._relay: list[Step] | None = None
        self._masks: Masks | None = None
        self.observed = 0  # rounds that no ledger has: observers, files, settings
        self.notes.led = leading.needed(self)

    @property
    def owned(self) -> range:
        """The agents of this process."""
        return range(int(self._ends[self.rank]), int(self._ends[self.rank + 1]))

    def guard(self) -> AbstractContextManager[None]:
        """End the whole job with one line naming this process and its agents on an error."""
        return aborting(self.transport.abort, self.rank, self.owned, alone=self.alone)

    def stopped_by(self) -> list[int]:
        """Agents whose process was asked to stop; all ask this together. One gather."""
        mine = np.full((len(self.owned), 1), float(self.notes.stopped_here))
        return [int(i) for i in np.flatnonzero(self._gather(mine)[:, 0])]

    # -- rounds -----------------------------------------------------------------------------
    def _exchange(self, kind: str, sent: Sequence[Rows], received: Sequence[Rows]) -> None:
        """One round of messages (process, rows, how many agents' they are)."""
        self.observed += self.ledger.muted
        if self.audit is not None:
            for peer, rows, agents in sent:
                self.audit.record(kind, peer, rows, agents)
        self.transport.exchange(
            [(peer, rows) for peer, rows, _ in sent if rows.size],
            [(peer, rows) for peer, rows, _ in received if rows.size],
        )

    def _mix(self, block: Array, matrix: sp.csr_array, summed: int = 0) -> Array:
        plan = self._plan(matrix)
        sent = _pieces(np.ascontiguousarray(block[plan.send_rows]), plan.peers, plan.send_counts)
        own = len(plan.own)
        work = np.empty((own + sum(plan.receive_counts), block.shape[1]))
        work[:own] = block[plan.own]
        self._exchange("halo", sent, _pieces(work[own:], plan.peers, plan.receive_counts))
        senders = np.repeat(plan.peers, plan.receive_counts).tolist()
        self.check_finite(work[own:, :summed], senders)
        return np.asarray(plan.matrix @ work)

    def _plan(self, matrix: sp.csr_array) -> halo.Halo:
        key = id(matrix)
        if key not in self._plans:
            halo.check_support(self.network, matrix)
            self._plans[key] = halo.plan(matrix, self.peers, self._ends, self.rank)
            # An id may be used again once its matrix is gone.
            weakref.finalize(matrix, self._plans.pop, key, None)
        return self._plans[key]

    # -- averaging --------------------------------------------------------------------------
    def _pool(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        rows, found = self._spread(scheme, parts, tables, summed=True)
        return [scheme.total(part) if scheme.rows_known else part for part in rows], found

    def _share(self, words: Words, tables: Sequence[Array]) -> tuple[Words, list[Array]]:
        if self._masks is None:
            self._masks = Masks.introduced(self)
        hidden = self._masks.hide(words).view(np.float64)  # bits that nobody reckons with
        [rows], found = self._spread(self.averaging, [hidden], tables, summed=False)
        return np.ascontiguousarray(rows).view(np.uint64), found

    def _spread(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array], *, summed: bool
    ) -> tuple[list[Array], list[Array]]:
        """All agents' rows of the parts, or their sums by a tree; all agents' tables."""
        count = len(self.owned)
        flat = [np.reshape(table, (count, -1)) for table in tables]
        columns = [*parts, *(flat if scheme.rows_known else map(self._slots, flat))]
        block = np.concatenate([*columns, np.full((count, NOTE), self.notes.mine)], axis=1)
        finite = sum(part.shape[1] for part in parts) if summed else 0
        if isinstance(scheme, Relay):
            block = self._relayed(scheme, block)
            self.check_finite(block[:, :finite], range(self.n))
        else:
            assert isinstance(scheme, Tree)
            for matrix in scheme.schedule:
                block = self._mix(block, matrix, finite)
            block = block[:1].copy()
            self.check_finite(block[:, :finite])
        self.notes.read(float(block[:, -1].sum()))
        ends = np.cumsum([column.shape[1] for column in columns])
        pieces = np.split(block, ends, axis=1)[:-1]
        found = [
            np.reshape(piece, (self.n, *table.shape[1:])) + 0.0
            for piece, table in zip(pieces[len(parts) :], tables, strict=True)
        ]
        return pieces[: len(parts)], found

    def _slots(self, table: Array) -> Array:
        """Rows in places of their own, so that a sum keeps them."""
        count, width = table.shape
        wide = np.zeros((count, self.n, width))
        wide[np.arange(count), list(self.owned)] = table
        return wide.reshape(count, -1)

    def _relayed(self, scheme: Relay, block: Array) -> Array:
        """All agents' rows."""
        if self._relay is None:
            self._relay = scheme.steps(self._ends, self.rank)
        table = np.zeros((self.n, block.shape[1]))
        table[self.owned.start : self.owned.stop] = block
        for sent, received in self._relay:
            leaving = [(p, halo.rows_of(table, rows), len(rows)) for p, rows in sent]
            arriving = [(p, halo.rows_of(table, rows), len(rows)) for p, rows in received]
            self._exchange("relay", leaving, arriving)
            for (_, rows), (_, arrived, _) in zip(received, arriving, strict=True):
                if arrived.base is not table:
                    table[rows] = arrived
        return table

    def common(self, values: Array) -> Array:
        """Numbers that everybody computes from what all know; a digest travels in the messages.

        Where processes round differently, those of agent 0: one averaging, at once, since they are
        needed here.
        """
        known = np.asarray(values, dtype=np.float64)
        if self.notes.led and known.size:
            known = leading.followed(self, known)
        self.notes.remember(known)
        return known

    def limit(self, deadline: float, asked: Callable[[], bool] = never) -> None:
        """A message that does not come is not waited for much longer than ``deadline``."""
        super().limit(deadline, asked)
        self.transport.limit(deadline)

    # -- to the root ------------------------------------------------------------------------
    def collect(self, rows: list[Array]) -> list[Array] | None:
        """All agents' vectors at the root, None elsewhere. Leaves the owners: ask for it."""
        lengths = self._gather(np.array([[float(np.size(row))] for row in rows]))
        lengths = lengths[:, 0].astype(np.int64)
        mine = np.concatenate([np.zeros(0), *(np.ravel(row) for row in rows)])
        everything = self._funnel(mine, np.add.reduceat(lengths, self._ends[:-1]))
        return None if everything is None else np.split(everything, np.cumsum(lengths)[:-1])

    def _funnel(self, mine: Array, sizes: Index) -> Array | None:
        """The processes' vectors one after the other, at the root: hop by hop down a tree."""
        parent, depth = halo.root_tree(self.network, self._ends)
        below: list[list[int]] = [[r] for r in range(self.ranks)]
        held = {self.rank: mine}
        for level in range(max(depth.values()), 0, -1):
            received = []
            for child in (r for r in depth if depth[r] == level):
                below[parent[child]] += below[child]
                if parent[child] == self.rank:
                    received.append((int(child), np.empty(int(sizes[below[child]].sum())), 0))
            sent = []
            if depth[self.rank] == level:
                packed = np.concatenate([held[r] for r in below[self.rank]])
                sent = [(int(parent[self.rank]), packed, 0)]
            with self.ledger.observing():
                self._exchange("collect", sent, received)
            for peer, packed, _ in received:
                pieces = np.split(packed, np.cumsum(sizes[below[peer]])[:-1])
                held |= dict(zip(below[peer], pieces, strict=True))
        return np.concatenate([held[r] for r in range(self.ranks)]) if self.rank == 0 else None

    # -- trust ------------------------------------------------------------------------------
    def check_consistent(self, token: str) -> None:
        """Refuse processes that started from something else: all must present the same token."""
        digest = hashlib.sha256(token.encode()).digest()
        if self.audit:
            self.audit.record("token", EVERYONE, np.frombuffer(digest, dtype=np.int64), 0)
        if strays := self.transport.strangers(digest):
            who = ", ".join(map(str, strays))
            raise InputError(
                f"rank {who}: problem files, network, settings or version of ccmac differ from "
                f"those of the other ranks; give all {self.ranks} ranks the same"
            )

    def audit_report(self) -> list[Entry] | None:
        """Everything that every rank sent, at the root; None elsewhere (and without an audit)."""
        if self.audit is None:
            return None
        mine = self.audit.as_rows().ravel().view(np.float64)
        parts = self.collect([mine, *[np.zeros(0)] * (len(self.owned) - 1)])
        if parts is None:
            return None
        tables = [parts[first].view(np.int64).reshape(-1, 5) for first in self._ends[:-1]]
        return [e for rank, rows in enumerate(tables) for e in entries(rank, rows.tolist())]

    def close(self) -> None:
        """Give everything back; the runtime is of no use afterwards."""
        self.transport.close()


def _pieces(rows: Array, peers: Sequence[int], counts: Sequence[int]) -> list[Rows]:
    """Consecutive pieces of so many rows each."""
    parts = np.split(rows, np.cumsum(counts)[:-1]) if counts else []
    return list(zip(peers, parts, counts, strict=True))
