"""The runtime: a contiguous range of agents and the only ways in which they communicate.

A *block* is an array with one row per owned agent. A *common* array is something that every agent
knows with the same bits: it has one row, in every process, and broadcasts against blocks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import OutOfTime, PeerLost
from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.network import Network
from ccmac.runtime.averaging import FLOAT_BYTES, Averaging, by_name, messages_sent
from ccmac.runtime.masked import Masked, Words
from ccmac.runtime.notes import NOTE, Notes, Piggyback, never

__all__ = ["FLOAT_BYTES", "Piggyback", "Runtime"]


class Runtime(ABC):
    """Owns agents ``owned``; charges rounds, messages and bytes as it executes them.

    ``fused``: whether polynomials in operators may be multiplied out, which moves the last bits.
    """

    fused: bool = False
    apart: bool = False  # whether every process keeps files of its own, and no others'
    watch: Callable[[Mapping[str, Any]], None] | None = None  # is called with facts of the run

    def __init__(
        self, network: Network, *, ledger: Ledger | None = None, averaging: Averaging | str = "auto"
    ) -> None:
        self.network = network
        self.ledger = ledger or Ledger()
        self.averaging = by_name(network, averaging) if isinstance(averaging, str) else averaging
        self._sent: dict[int, tuple[sp.csr_array, Cost]] = {}
        self._waiting: list[Piggyback] = []
        self.notes = Notes(network.n)

    # -- who ------------------------------------------------------------------------------
    @property
    @abstractmethod
    def owned(self) -> range:
        """The agents of this process."""

    @property
    def n(self) -> int:
        """All agents, everywhere."""
        return self.network.n

    @property
    def is_root(self) -> bool:
        """Whether this process prints and writes."""
        return self.apart or self.owned.start == 0

    # -- neighbor rounds --------------------------------------------------------------------
    @abstractmethod
    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        """Rows owned here of ``matrix @ block``; one neighbor round along its support."""

    def mix(self, block: Array, matrix: sp.csr_array | None = None) -> Array:
        """(W (x) I) block, or any matrix supported on the graph. Cost: 1 round."""
        matrix = self.network.weights if matrix is None else matrix
        self.ledger.charge_cost(self.mix_cost(block.shape[1], matrix))
        self.mind_the_time()
        return self._mix(block, matrix)

    def mix_cost(self, width: int, matrix: sp.csr_array | None = None) -> Cost:
        """Static cost of :meth:`mix` for rows of ``width`` floats."""
        if self.n == 1:
            return Cost()
        matrix = self.network.weights if matrix is None else matrix
        if id(matrix) not in self._sent:
            sent = messages_sent(matrix)
            total = int(sent.sum())
            size = FLOAT_BYTES * int(sent.max())
            one = Cost(bytes=size, network_bytes=FLOAT_BYTES * total, messages=total)
            self._sent[id(matrix)] = matrix, one  # with the matrix, so that its id stays its own
        one = self._sent[id(matrix)][1]
        return Cost(
            rounds=1,
            bytes=width * one["bytes"],
            network_bytes=width * one["network_bytes"],
            messages=one["messages"] if width else 0,
            longest_message=width,
        )

    # -- averaging --------------------------------------------------------------------------
    @abstractmethod
    def _pool(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """One averaging: sums of ``parts`` (1, width) in the scheme's order; all agents'
        ``tables``. Carries the note and reads the others'.
        """

    @abstractmethod
    def _share(self, words: Words, tables: Sequence[Array]) -> tuple[Words, list[Array]]:
        """One averaging of rows in fixed point, masked where they leave: all agents' words."""

    def check_finite(self, rows: Array, senders: Sequence[int] = ()) -> None:
        """Owners refuse what somebody has spoilt, by name where rows have ``senders``; in one
        program the method judges its sums.
        """
        if self.apart and not np.isfinite(rows).all():
            spoilt = np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist()
            named = sorted({senders[k] for k in spoilt if senders})
            who = f"agent {', '.join(map(str, named))}" if named else "an agent"
            raise PeerLost(f"{who}: sent numbers that are not finite; the run ends")

    def _pooled(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        if isinstance(scheme, Masked) and parts:
            return scheme.pooled(self, parts, tables)
        return self._pool(scheme, parts, tables)

    def average(self, block: Array) -> Array:
        """Common mean over all agents of the rows of ``block``: ``averaging.rounds`` rounds."""
        return self.combine([block])[0]

    def combine(self, parts: Sequence[Array]) -> list[Array]:
        """Common means of several blocks, averaged in the same rounds."""
        if any(len(part) != len(self.owned) for part in parts):
            raise ValueError(f"averaging needs a row for each of the {len(self.owned)} agents here")
        return [np.divide(total, self.n, out=total) for total in self.send(parts)]

    def send(self, parts: Sequence[Array]) -> list[Array]:
        """Sums of blocks over all agents; whatever waits for a message travels with them.

        An observer's messages carry nothing else.
        """
        width = sum(part.shape[1] for part in parts)
        piggybacked = [] if self.ledger.muted and parts else self._waiting
        if width == 0 and not (piggybacked and not parts):
            return [np.zeros((1, 0)) for _ in parts]
        if piggybacked:
            self._waiting = []
        scheme = self._carrier(width, piggybacked)
        self._charge(scheme, width, piggybacked)
        summed = [reduction for reduction in piggybacked if not reduction.whole]
        seen = [reduction for reduction in piggybacked if reduction.whole]
        totals, tables = self._pooled(
            scheme,
            [*parts, *(reduction.rows for reduction in summed)],
            [reduction.rows for reduction in seen],
        )
        widths = tuple(total.shape[1] for total in totals)
        for k, reduction in enumerate(summed, start=len(parts)):
            reduction.found = totals[k][0]
            reduction.grain = scheme.grain_of(widths, k)
        for reduction, table in zip(seen, tables, strict=True):
            reduction.found = table
        if self.notes.late and self.ledger.current == "setup":
            raise OutOfTime("the time limit passed during the setup")
        self.mind_the_time()
        return totals[: len(parts)]

    def _carrier(self, width: int, piggybacked: Sequence[Piggyback] = ()) -> Averaging:
        """The scheme of a message: by the floats asked for, or those of sums that travel alone."""
        alone = sum(reduction.width for reduction in piggybacked if not reduction.whole)
        return self.averaging.taking(width or alone)

    def _charge(self, scheme: Averaging, width: int, piggybacked: Sequence[Piggyback]) -> None:
        """The message in the present phase; what reductions add to it in theirs, if not before."""
        shown = not width and all(r.whole for r in piggybacked if not r.paid)
        piggybacked = [reduction for reduction in piggybacked if not reduction.paid]
        here = self.ledger.current
        rooms = [_room(scheme, r.width, r.whole, self.n) for r in piggybacked]
        mine = [room for r, room in zip(piggybacked, rooms, strict=True) if r.phase == here]
        row = width * scheme.words_each + (0 if shown else scheme.extra)
        self.ledger.charge_cost(self._row_cost(scheme, row, mine))
        longest = self._row_cost(scheme, row, rooms)["longest_message"]
        for reduction, room in zip(piggybacked, rooms, strict=True):
            if reduction.phase != here:
                with self.ledger.phase(reduction.phase):
                    more = Cost(reductions=1, longest_message=longest)
                    self.ledger.charge_cost(_size(scheme, room) + more)

    def average_cost(self, width: int, *piggybacked: int, shown: Sequence[int] = ()) -> Cost:
        """Of averaging rows of ``width`` floats, with piggybacked reductions that are summed and
        others that are ``shown`` to all; nothing where nothing travels.
        """
        scheme = self.averaging.taking(width or sum(piggybacked))
        row = width * scheme.words_each + (scheme.extra if width or piggybacked else 0)
        return self._row_cost(scheme, row, self._rooms(scheme, piggybacked, shown))

    def _rooms(
        self, scheme: Averaging, summed: Sequence[int], shown: Sequence[int] = ()
    ) -> list[int]:
        """Words of reductions of these widths in a row."""
        rooms = [_room(scheme, width, False, self.n) for width in summed]
        return rooms + [_room(scheme, width, True, self.n) for width in shown]

    def _row_cost(self, scheme: Averaging, row: int, rooms: Sequence[int]) -> Cost:
        """The same in words."""
        if self.n == 1 or row + len(rooms) == 0:
            return Cost()
        row += sum(rooms) + NOTE
        return _size(scheme, row) + Cost(
            rounds=scheme.rounds,
            averagings=1,
            reductions=len(rooms),
            messages=scheme.messages,
            longest_message=row * scheme.longest,
        )

    def total_cost(self, width: int = 1) -> Cost:
        """Static cost of :meth:`total`."""
        return self.average_cost(0, width)

    def gather_cost(self, width: int) -> Cost:
        """Static cost of :meth:`gather`."""
        return self.average_cost(0, shown=[width])

    def with_piggybacked(self, cost: Cost, *piggybacked: int, width: int = 0) -> Cost:
        """The cost of a step whose longest averaging, of ``width`` floats, carries these too."""
        if not cost["averagings"]:
            return cost + self.average_cost(0, *piggybacked)
        scheme = self.averaging.taking(width)
        return cost + _added(cost, scheme, self._rooms(scheme, piggybacked))

    def unseen(self, width: int = 1) -> float:
        """At most this is missing in the square of a norm of sums, or in a sum of squares.

        In addition to the rounding of floats: ``width`` entries are sums, each wrong by the
        scheme's grain.
        """
        grain = self.averaging.grain
        return max(grain, width * grain * grain)

    def piggyback(self, rows: Array, *, whole: bool = False) -> Piggyback:
        """Per-agent numbers, to be summed (``whole``: known row by row) with the next averaging.

        One reduction. ``reduction.value`` has the result once that averaging has happened.
        """
        reduction = Piggyback(self, rows, whole)
        if self.ledger.muted or self.n == 1:
            scheme = self._carrier(0, [reduction])
            totals, tables = self._pooled(scheme, [] if whole else [rows], [rows] if whole else [])
            reduction.found = tables[0] if whole else totals[0][0]
            reduction.grain = 0.0 if whole else scheme.grain_of((rows.shape[1],), 0)
        else:
            self._waiting.append(reduction)
        return reduction

    def total(self, values: Array) -> Array:
        """Sum over all agents of per-agent numbers (rows of ``values``), at once: one averaging."""
        return self.piggyback(values).value

    def gather(self, values: Array) -> Array:
        """All agents' rows of per-agent numbers, known to everybody at once: one averaging."""
        return self.piggyback(values, whole=True).value

    def _gather(self, values: Array) -> Array:
        """The same where it is no part of a solve (files, settings): not charged."""
        with self.ledger.observing():
            return self.gather(values)

    def extremes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The least of every column of ``low`` and the largest of ``high``, numbers >= 0, over all
        agents, at once. Where rows are hidden: from below and above, by 5 % at most, and nothing
        else is learned.
        """
        if self.averaging.hides:
            assert isinstance(self.averaging, Masked)
            with np.errstate(all="ignore"):
                found = self.averaging.largest(self, np.hstack([1.0 / low, high]))
                return 1.0 / found[: low.shape[1]], found[low.shape[1] :]
        table = self.gather(np.hstack([low, high]))
        return table[:, : low.shape[1]].min(axis=0), table[:, low.shape[1] :].max(axis=0)

    @property
    def alone(self) -> bool:
        """Whether all agents live in this process."""
        return len(self.owned) == self.n

    def common(self, values: Array) -> Array:
        """Numbers that everybody computes from what all know; a digest travels in the messages."""
        return values

    def summed(self, width: int) -> None:
        """Charge and end an averaging of ``width`` floats whose sums were taken by the caller."""
        piggybacked = [] if self.ledger.muted else self._waiting
        if piggybacked:
            self._waiting = []
        self._charge(self._carrier(width, piggybacked), width, piggybacked)
        for reduction in piggybacked:
            with self.ledger.observing():
                reduction.found = self.piggyback(reduction.rows, whole=reduction.whole).value
        self.mind_the_time()

    def average_in_pieces(self, pieces: Iterable[Iterable[Array]], width: int) -> Array:
        """Common mean of rows of ``width`` floats that are computed piece by piece, agent by agent:
        one averaging.
        """
        return self.average(np.hstack([np.stack(list(rows)) for rows in pieces]))

    def gather_vectors(self, vectors: Sequence[Array], sizes: Sequence[int]) -> Array:
        """All agents' vectors, of these lengths, one after the other: one averaging.

        Where lengths are alike every vector is relayed; else a sum has a place for each.
        """
        if not self._alike(sizes):
            own = dict(zip(self.owned, vectors, strict=True))
            none = [np.broadcast_to(0.0, size) for size in sizes]
            pieces = (
                [own[i] if i == owner else none[owner] for i in self.owned]
                for owner in range(self.n)
            )
            mean: Array = self.average_in_pieces(pieces, sum(sizes))[0]
            return mean * self.n
        rows = np.zeros((len(self.owned), max(sizes)))
        for row, vector in zip(rows, vectors, strict=True):
            row[: len(vector)] = vector
        table = self.gather(rows)
        return np.concatenate([row[:size] for row, size in zip(table, sizes, strict=True)])

    def vectors_cost(self, sizes: Sequence[int]) -> Cost:
        """Static cost of :meth:`gather_vectors`."""
        if self._alike(sizes):
            return self.gather_cost(max(sizes))
        return self.average_cost(sum(sizes))

    def _alike(self, sizes: Sequence[int]) -> bool:
        """Whether rows of the longest vector waste at most half, and nobody hides its own."""
        return self.n * max(sizes) <= 2 * sum(sizes) and not self.averaging.hides

    def mind_the_time(self) -> None:
        """Ends a long setup where one process can decide it for all."""
        setup = self.ledger.current == "setup"
        if self.alone and setup and time.monotonic() > self.notes.deadline:
            raise OutOfTime("the time limit passed")

    def limit(self, deadline: float, asked: Callable[[], bool] = never) -> None:
        """When time is over (by time.monotonic()), and who knows whether a user wants to stop.

        Both reach all with every averaging. Without a deadline nothing waits any more.
        """
        self.notes.deadline = deadline
        self.notes.asked = asked
        self.notes.due = never
        self.notes.late = self.notes.stop = self.notes.save = False
        if deadline == float("inf"):
            self._waiting.clear()

    @abstractmethod
    def collect(self, rows: list[Array]) -> list[Array] | None:
        """All agents' vectors at the root (None elsewhere): the ``--gather`` of a result."""


def _room(scheme: Averaging, width: int, whole: bool, n: int) -> int:
    """Words of a piggybacked reduction in a row: where rows are summed, a slot for every agent."""
    if whole:
        return width * (1 if scheme.rows_known else n)
    return width * scheme.words_each


def _added(step: Cost, scheme: Averaging, rooms: Sequence[int]) -> Cost:
    """What reductions add to the averaging of a step."""
    longest = step["longest_message"] + sum(rooms) * scheme.longest
    return _size(scheme, sum(rooms)) + Cost(reductions=len(rooms), longest_message=longest)


def _size(scheme: Averaging, words: int) -> Cost:
    """What ``words`` in every row add to an averaging."""
    size = FLOAT_BYTES * words
    return Cost(bytes=size * scheme.floats_sent, network_bytes=size * scheme.floats_total)
