"""The locality audit: what left this process, to whom, and how much of it.

Messages of one kind, peer and size are counted together, so that an audit of a long run stays
small and no message is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Payload = NDArray[Any]

# halo: rows of a block, or sums on a tree, for the agents' neighbors; relay: rows on their way to
# everybody; collect: solution vectors on their way to the root, when asked for; token: a digest
# that must agree.
KINDS = ("halo", "relay", "collect", "token")
EVERYONE = -1


class Entry(NamedTuple):
    """``messages`` messages of ``floats`` eight-byte words each from ``rank`` to ``peer``."""

    rank: int
    kind: str
    peer: int
    floats: int
    agents: int  # agents whose rows are in one message
    messages: int


class Audit:
    """Counts messages; ``tap(kind, peer, payload)``, when given, sees each of them."""

    def __init__(self, tap: Callable[[str, int, Payload], None] | None = None) -> None:
        self.tap = tap
        self._counts: Counter[tuple[int, int, int, int]] = Counter()

    def record(self, kind: str, peer: int, payload: Payload, agents: int) -> None:
        """One message: ``payload`` to rank ``peer`` (or :data:`EVERYONE`)."""
        if payload.size == 0:
            return
        self._counts[KINDS.index(kind), peer, payload.size, agents] += 1
        if self.tap is not None:
            self.tap(kind, peer, payload)

    def as_rows(self) -> NDArray[np.int64]:
        """(kind, peer, floats, agents, messages), one row for each sort of message."""
        rows = [(*key, count) for key, count in sorted(self._counts.items())]
        return np.array(rows, dtype=np.int64).reshape(len(rows), 5)


def entries(rank: int, rows: Iterable[Sequence[int]]) -> list[Entry]:
    """Read :meth:`Audit.as_rows` of one rank back."""
    return [Entry(rank, KINDS[kind], *rest) for kind, *rest in rows]


def table(report: Iterable[Entry]) -> str:
    """A readable table of a report."""
    head = f"{'rank':>5} {'kind':8} {'to':>9} {'agents':>7} {'floats':>9} {'messages':>9}"
    lines = [head]
    for e in sorted(report):
        to = "everyone" if e.peer == EVERYONE else f"rank {e.peer}"
        lines.append(
            f"{e.rank:>5} {e.kind:8} {to:>9} {e.agents:>7} {e.floats:>9,} {e.messages:>9,}"
        )
    return "\n".join(lines)
