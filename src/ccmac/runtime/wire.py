"""Frames between two owners: numbered, acknowledged, kept until the other has them.

    magic (2 bytes)  kind (1)  length (4)  number (8)  acknowledged (8)  payload

``number`` counts the messages of one direction, ``acknowledged`` says how many of the other
direction have arrived. After a dropped connection both sides tell what they have, and what is
missing is sent again: nothing is lost, nothing comes twice.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ccmac.errors import short
from ccmac.texts import dumps, loads

Address = tuple[str, int]
HEADER = struct.Struct(">2sBIQQ")
MAGIC = b"CM"
HELLO, DATA, BEAT, END, BYE, REFUSE = range(6)
LONGEST = {HELLO: 1 << 14, DATA: 1 << 30, BEAT: 0, END: 1 << 11, BYE: 0, REFUSE: 1 << 11}  # bytes
ACKNOWLEDGE = 1 << 20  # bytes after which a side that only listens says what it has
PIECE = 1 << 18  # bytes that are read at a time


class Relayed(NamedTuple):
    """The relay that two neighbors dial who take no connections."""

    host: str
    port: int


class Violation(Exception):
    """What arrived is no frame that may arrive now."""


@dataclass(frozen=True)
class Frame:
    """One frame as it arrived."""

    kind: int
    number: int
    acknowledged: int
    payload: bytes

    @property
    def text(self) -> str:
        """What somebody else has to say: one short line that no terminal obeys."""
        return short(self.payload[:1000].decode(errors="replace"))


def encode(kind: int, number: int, acknowledged: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame."""
    return HEADER.pack(MAGIC, kind, len(payload), number, acknowledged) + payload


async def nobody(length: int) -> None:
    """No message may come before its sender has said who it is."""
    raise Violation("did not say who it is")


async def read(
    reader: asyncio.StreamReader,
    alive: Callable[[], None] = lambda: None,
    room: Callable[[int], Awaitable[None]] = nobody,
) -> Frame:
    """The next frame; ``alive`` is called whenever bytes arrive, ``room`` waits until a message of
    so many bytes may be read.

    EOFError where the connection ends, Violation for anything that is no frame.
    """
    header = await reader.readexactly(HEADER.size)
    alive()
    magic, kind, length, number, acknowledged = HEADER.unpack(header)
    if magic != MAGIC or length > LONGEST.get(kind, -1):
        raise Violation("sent something that is no message of this program")
    if kind == DATA:
        await room(length)
    pieces = []
    left = length
    while left:
        piece = await reader.read(min(left, PIECE))
        if not piece:
            raise EOFError
        alive()
        pieces.append(piece)
        left -= len(piece)
    return Frame(kind, number, acknowledged, b"".join(pieces))


async def next_hello(reader: asyncio.StreamReader, seconds: float) -> dict[str, Any]:
    """What the other side says first, or at last after signs of life."""
    while True:
        async with asyncio.timeout(seconds):
            frame = await read(reader)
        if frame.kind == HELLO:
            return read_hello(frame.payload)
        if frame.kind != BEAT:
            raise Violation(frame.text if frame.kind == REFUSE else "did not say who it is")


@dataclass
class Numbering:
    """What was sent and not yet acknowledged, and how much has arrived."""

    sent: int = 0
    arrived: int = 0
    farewell: bool = False
    silent: int = 0  # bytes that arrived since we last said how much has
    waiting: deque[tuple[int, int, bytes]] = field(default_factory=deque)

    def keep(self, kind: int, payload: bytes) -> bytes:
        """Number a message, keep it, and return its frame."""
        self.waiting.append((self.sent, kind, payload))
        self.farewell = self.farewell or kind == BYE
        self.sent += 1
        return self.frame(kind, self.sent - 1, payload)

    def frame(self, kind: int, number: int = 0, payload: bytes = b"") -> bytes:
        """A frame that also says how much has arrived."""
        self.silent = 0
        return encode(kind, number, self.arrived, payload)

    def acknowledge(self, count: int) -> None:
        """The other has the first ``count`` messages."""
        if count > self.sent:
            raise Violation(f"acknowledged message {count - 1}, which was never sent")
        while self.waiting and self.waiting[0][0] < count:
            self.waiting.popleft()

    def missing(self, count: int) -> list[bytes]:
        """Frames to send again to somebody who has the first ``count`` messages."""
        self.acknowledge(count)
        if (self.waiting[0][0] if self.waiting else self.sent) != count:
            raise Violation(f"asked again for message {count}, which it acknowledged before")
        return [self.frame(kind, number, payload) for number, kind, payload in self.waiting]

    def accept(self, frame: Frame) -> None:
        """Take the next message; a repeated or a skipped one is refused."""
        if frame.number != self.arrived:
            what = "came again" if frame.number < self.arrived else "came too early"
            raise Violation(f"message {frame.number} {what} (message {self.arrived} is due)")
        self.arrived += 1
        self.silent += len(frame.payload) + HEADER.size


def seeking(nonce: Any, name: str, seeks: str) -> bytes:
    """What an owner signs to meet another at a relay (:mod:`ccmac.owners.relay`)."""
    return f"ccmac: relay {nonce} from {name} to {seeks}".encode()


def hello(**facts: Any) -> bytes:
    """What both sides say first."""
    return dumps(facts).encode()


def read_hello(payload: bytes) -> dict[str, Any]:
    """The facts of a hello; Violation for anything else."""
    with suppress(ValueError):
        if isinstance(facts := loads(payload.decode() or "{}"), dict):
            return facts
    raise Violation("did not say who it is")
