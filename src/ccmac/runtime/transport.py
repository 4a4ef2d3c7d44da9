"""All that a distributed runtime asks of a network: messages between neighbors, round by round.

Averaging, sums, piggybacked reductions, audit, ledger and the checks at the start are built on
:meth:`exchange` once (``runtime/distributed.py``); a transport carries bytes and knows nothing of
agents.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

Message = tuple[int, NDArray[Any]]  # (process, C-contiguous array of float64)


class Transport(ABC):
    """Process ``rank`` of ``ranks``.

    ``rounds`` counts the rounds taken part in, idle ones included: what the ledger charges.
    """

    rank: int
    ranks: int
    rounds: int = 0
    apart: bool = False  # whether every process keeps files of its own, and no others'
    deadline: float = math.inf  # of the run, by time.monotonic()
    _last: float = math.inf
    _slowest: float = 0.0

    def exchange(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        """One round: what is sent to peers, and arrays to be filled by what they send.

        Both sides name the same sizes; messages between two processes arrive in order. Returns
        when everything has arrived and what was sent may be changed.
        """
        self.rounds += 1
        self._exchange(sent, received)
        now = time.monotonic()
        self._slowest = max(self._slowest, now - self._last)
        self._last = now

    def limit(self, deadline: float) -> None:
        """When time is over; pauses before (files, modules) say nothing about a run's steps."""
        self.deadline = deadline
        self._last = math.inf
        self._slowest = 0.0

    @property
    def given_up(self) -> float:
        """When a message that has not come is not waited for any more.

        Others may still be in the step that the limit found them in.
        """
        # three seconds that a process may still compute before it is given up
        return self.deadline + 3.0 + 2.0 * self._slowest

    @abstractmethod
    def _exchange(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        """Carry the messages; raises ``CcmacError`` naming the peer after :attr:`given_up`."""

    def sign(self, statement: bytes) -> bytes:
        """A proof that the statement is of this process; empty where nobody else is in between."""
        return b""

    def check(self, rank: int, statement: bytes, proof: bytes) -> None:
        """Raises ``CcmacError`` where the proof is not of that process."""
        assert not proof, "a transport that signs also checks"

    def strangers(self, digest: bytes) -> list[int]:
        """Processes whose 32 bytes differ from the most common; nobody where neighbors compare what
        they start from when they meet.
        """
        return []

    def abort(self, code: int) -> None:
        """End the run everywhere, as far as this process can and nobody else does."""
        return

    def close(self) -> None:
        """Give everything back; of no use afterwards."""
        return
