"""What an agent knows of one neighbor, whatever becomes of the connection."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ccmac.errors import CcmacError
from ccmac.runtime.credentials import Address
from ccmac.runtime.frames import Numbering

if TYPE_CHECKING:
    from ccmac.runtime.connection import Connection


@dataclass
class Link:
    """One neighbor: the name in its certificate, and where it is dialled (None: it dials us)."""

    peer: int
    name: str
    address: Address | None
    numbering: Numbering = field(default_factory=Numbering)
    inbox: queue.SimpleQueue[bytes | CcmacError] = field(default_factory=queue.SimpleQueue)
    connection: Connection | None = None
    session: str | None = None  # of the process we talk to: another one has forgotten everything
    heard: float = 0.0
    left: bool = False  # the neighbor has finished
    connections: int = 0
    violations: int = 0

    @property
    def begun(self) -> bool:
        """Whether messages have gone either way."""
        return self.numbering.sent > 0 or self.numbering.arrived > 0

    @property
    def settled(self) -> bool:
        """Whether nothing is owed: it has all we sent, our farewell included, or has left."""
        return self.left or (self.numbering.farewell and not self.numbering.waiting)
