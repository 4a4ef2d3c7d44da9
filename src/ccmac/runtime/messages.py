"""Prepared messages between MPI processes: the only module that imports mpi4py.

A neighbor round and the rounds of a relay are set up once and started again and again. Only NumPy
buffers travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.runtime.audit import Audit
from ccmac.runtime.averaging import Relay
from ccmac.runtime.base import FLOAT_BYTES
from ccmac.runtime.halo import Halo
from ccmac.runtime.partition import Index

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    raise InputError(
        f"runtime mpi cannot start ({error}); install it with: pip install 'ccmac[mpi]'"
    ) from error

__all__ = ["LARGE", "MPI", "Relaying", "Round"]

LARGE = 8192  # bytes of a message from which copying it costs more than describing it
NOTHING = np.zeros(0, dtype=np.int64)


class _Prepared:
    """Persistent requests and derived types, to be given back."""

    def __init__(self, comm: MPI.Intracomm, width: int, audit: Audit | None) -> None:
        self._comm, self.width, self._audit = comm, width, audit
        self._types: list[MPI.Datatype] = []
        self._made: list[MPI.Prequest] = []

    def _rows_type(self, rows: Index) -> MPI.Datatype:
        """The given rows of a block as one message; adjacent rows are one piece of it."""
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        lengths = [self.width * len(run) for run in runs]
        offsets = [FLOAT_BYTES * self.width * int(run[0]) for run in runs]
        self._types.append(MPI.DOUBLE.Create_hindexed(lengths, offsets).Commit())
        return self._types[-1]

    def _record(self, kind: str, sent: Sequence[tuple[int, Index]], block: Array) -> None:
        if self._audit is not None:
            for peer, rows in sent:
                self._audit.record(kind, peer, block[rows], len(rows))

    def close(self) -> None:
        """Give requests and types back."""
        for owned in (self._made, self._types):
            while owned:
                owned.pop().Free()


class Round(_Prepared):
    """One prepared neighbor round with fixed buffers: a message to every rank that reads a row.

    Receives are persistent requests. Small messages are packed and persistent too: most of their
    cost lies in describing them. Large ones go straight from the block by derived types: there the
    cost lies in copying. Each sender chooses for itself. Rounds happen in the same order everywhere
    and messages of two ranks do not overtake one another, so one tag serves all.
    """

    def __init__(self, comm: MPI.Intracomm, plan: Halo, width: int, audit: Audit | None) -> None:
        super().__init__(comm, width, audit)
        self.plan = plan
        own = len(plan.own)
        self._work = np.empty((own + sum(plan.receive_counts), width))
        self._own, self._received = self._work[:own], self._work[own:]
        sent = zip(plan.peers, _pieces(plan.send_rows, plan.send_counts), strict=True)
        self._sent = [(peer, rows) for peer, rows in sent if rows.size * width]
        self._straight, packed = [], []
        for peer, rows in self._sent:
            if FLOAT_BYTES * width * len(rows) < LARGE:
                packed.append((peer, rows))
            else:
                self._straight.append((self._rows_type(rows), peer))
        self._rows = np.concatenate([NOTHING, *(rows for _, rows in packed)])
        self._packed = np.empty((len(self._rows), width))
        parts = _pieces(self._packed, [len(rows) for _, rows in packed])
        arriving = _pieces(self._received, plan.receive_counts)
        self._made += [
            *(comm.Recv_init(a, p) for p, a in zip(plan.peers, arriving, strict=True) if a.size),
            *(comm.Send_init(part, peer) for (peer, _), part in zip(packed, parts, strict=True)),
        ]

    def start(self, block: Array) -> Sequence[MPI.Request]:
        """Send what the peers read; ``block`` must not change before the requests are done."""
        self._record("halo", self._sent, block)
        if len(self._rows):
            block.take(self._rows, axis=0, out=self._packed, mode="clip")
        MPI.Prequest.Startall(self._made)
        if not self._straight:
            return self._made
        block, send = np.ascontiguousarray(block), self._comm.Isend
        return [*self._made, *(send((block, 1, rows), peer) for rows, peer in self._straight)]

    def exchange(self, block: Array) -> Array:
        """The halo rows, in agent order. The array is overwritten by the next round."""
        MPI.Request.Waitall(self.start(block))
        return self._received

    def mix(self, block: Array) -> Array:
        """Rows owned here of matrix @ block."""
        plan = self.plan
        requests = self.start(block)
        inner = plan.inner @ block if len(plan.interior) else None
        if len(plan.own):
            block.take(plan.own, axis=0, out=self._own, mode="clip")
        MPI.Request.Waitall(requests)
        outer = plan.outer @ self._work if len(plan.exterior) else None
        if inner is None or outer is None:
            return np.asarray(outer if inner is None else inner)
        out = np.empty((len(block), self.width))
        out[plan.interior], out[plan.exterior] = inner, outer
        return out


class Relaying(_Prepared):
    """The rounds of a relay for rows of ``width`` floats: messages from and into one table.

    Everything is persistent: a round is a start and a wait.
    """

    def __init__(
        self, comm: MPI.Intracomm, relay: Relay, ends: Index, width: int, audit: Audit | None
    ) -> None:
        super().__init__(comm, width, audit)
        rank, ranks = comm.Get_rank(), comm.Get_size()
        self._table = np.empty((int(ends[-1]), width))
        self._mine = slice(int(ends[rank]), int(ends[rank + 1]))
        arrivals = [relay.arrivals(ends, r) for r in range(ranks)]
        self._arrivals = arrivals[rank]
        self._sent: list[list[tuple[int, Index]]] = []
        self._requests: list[list[MPI.Prequest]] = []
        for k in range(relay.rounds):
            sent = [(p, there[k][rank]) for p, there in enumerate(arrivals) if rank in there[k]]
            receives = [comm.Recv_init(self._rows(r), p) for p, r in self._arrivals[k].items()]
            requests = [*receives, *(comm.Send_init(self._rows(r), p) for p, r in sent)]
            self._sent.append(sent)
            self._requests.append(requests)
            self._made += requests

    def _rows(self, rows: Index) -> Any:
        """These rows of the table as a buffer."""
        if len(rows) == rows[-1] - rows[0] + 1:
            return self._table[rows[0] : rows[-1] + 1]
        return self._table, 1, self._rows_type(rows)

    def gather(self, block: Array) -> Array:
        """All agents' rows. The array is overwritten by the next call."""
        self._table[self._mine] = block
        self.exchange()
        return self._table

    def exchange(self) -> None:
        """All rounds, from the table's rows owned here."""
        for sent, requests in zip(self._sent, self._requests, strict=True):
            self._record("relay", sent, self._table)
            if requests:
                MPI.Prequest.Startall(requests)
                MPI.Request.Waitall(requests)

    def sizes(self) -> list[tuple[dict[int, int], dict[int, int]]]:
        """Rows sent to and received from each peer, round by round."""
        return [
            ({p: len(rows) for p, rows in sent}, {p: len(rows) for p, rows in got.items()})
            for sent, got in zip(self._sent, self._arrivals, strict=True)
        ]


def _pieces(rows: NDArray[Any], counts: Sequence[int]) -> list[NDArray[Any]]:
    """Consecutive pieces of so many rows each."""
    return np.split(rows, np.cumsum(counts)[:-1]) if counts else []
