"""A relay: owners who take no connections both dial it, and it passes on what they say.

    relay -> owner   HELLO {"nonce"}
    owner -> relay   HELLO {"name": mine, "seeks": the other's, "waits": whether it is called,
                            "proof": a signature of nonce and names by the owner's certificate}
    relay -> owner   BEAT while the other has not come, then HELLO
    waiting -> relay HELLO: it listens; now the other hears of it

From then on bytes go both ways as they come: TLS from one owner to the other, of which the relay
sees ciphertext and sizes. Owners prove to each other who they are and need not trust the relay; the
proofs keep strangers from using it.
"""

from __future__ import annotations

import asyncio
import base64
import math
import secrets
import socket
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ccmac.errors import InputError, short
from ccmac.runtime import wire
from ccmac.runtime.credentials import Credentials, hasten, listening
from ccmac.runtime.identity import Identity, certificates
from ccmac.runtime.wire import BEAT, HELLO, REFUSE, Violation
from ccmac.storage.owner import address, read_toml

SECONDS = 6.0  # for an answer
BEAT_SECONDS = 1.0  # between signs of life for whoever waits
IDLE_SECONDS = 60.0  # of silence after which a pair is given up: owners send signs of life
PIECE = 1 << 16  # bytes that are passed on at a time, and read ahead


@dataclass(eq=False)
class Guest:
    """A connection of an owner."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    name: str = ""
    seeks: str = ""
    waits: bool = False
    met: asyncio.Future[Guest] = field(default_factory=asyncio.Future)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    passed: int = 0  # bytes

    @property
    def gone(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    def tell(self, kind: int, text: str = "") -> None:
        """A frame of the relay's own."""
        self.writer.write(wire.encode(kind, 0, 0, text.encode()))

    async def hear(self) -> dict[str, Any]:
        """What the owner says to the relay itself."""
        async with asyncio.timeout(SECONDS):
            frame = await wire.read(self.reader)
        if frame.kind != HELLO:
            raise Violation("did not say who it is")
        return wire.read_hello(frame.payload) if frame.payload else {}


class Relay:
    """Passes on what pairs of owners say; ``names`` are those that may use it (none: all whom the
    authority has signed), ``rate`` the bytes per second of each direction of a pair.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        names: Collection[str] = (),
        rate: float = 1e8,
        connections: int = 200,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.identity = identity
        self.names = frozenset(names)
        self.rate = rate
        self.connections = connections
        self.say = say or (lambda line: print(f"ccmac: relay: {short(line)}", file=sys.stderr))
        self._waiting: dict[tuple[str, str], Guest] = {}
        self._guests = 0

    async def serve(self, sock: socket.socket) -> None:
        """Until it is cancelled."""
        server = await asyncio.start_server(self._talk, sock=sock, limit=PIECE)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hasten(writer.get_extra_info("socket"))
        guest = Guest(reader, writer)
        self._guests += 1
        try:
            if self._guests > self.connections:
                raise Violation("has no room for more connections")
            await self._introduced(guest)
            await self._met(guest)
        except Violation as found:
            who = guest.name or (writer.get_extra_info("peername") or ["?"])[0]
            self.say(f"refused {who}: {found}")
            guest.tell(REFUSE, f"the relay {found}")
        except (EOFError, OSError):
            pass
        finally:
            self._guests -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _introduced(self, guest: Guest) -> None:
        """Whoever it is has a certificate of the authority, with a name that may come."""
        nonce = secrets.token_hex(16)
        guest.writer.write(wire.encode(HELLO, 0, 0, wire.hello(nonce=nonce)))
        said = await guest.hear()
        name, seeks, proof = (str(said.get(key)) for key in ("name", "seeks", "proof"))
        try:
            self.identity.check(name, wire.seeking(nonce, name, seeks), base64.b64decode(proof))
        except (ValueError, TypeError, AttributeError) as error:
            raise Violation(f"does not accept the certificate ({error})") from None
        guest.waits = said.get("waits") is True
        guest.seeks = seeks
        if self.names and name not in self.names:
            raise Violation(f"is not for {name}")
        guest.name = name

    async def _met(self, guest: Guest) -> None:
        """Wait for the other; of the two who meet the first passes on."""
        other = self._waiting.pop((guest.seeks, guest.name), None)
        if other is not None and not other.gone:
            other.met.set_result(guest)
            await guest.over.wait()
            return
        mine = guest.name, guest.seeks
        self._waiting[mine] = guest
        try:
            while not guest.met.done():
                guest.tell(BEAT)
                await asyncio.wait([guest.met], timeout=BEAT_SECONDS)
                if not guest.met.done() and (guest.gone or self._waiting.get(mine) is not guest):
                    return
            await self._joined(guest, guest.met.result())
        finally:
            if self._waiting.get(mine) is guest:
                del self._waiting[mine]
            if guest.met.done():
                guest.met.result().over.set()

    async def _joined(self, one: Guest, other: Guest) -> None:
        """Whoever is called listens before the other hears of it."""
        called, caller = (one, other) if one.waits else (other, one)
        called.tell(HELLO)
        await called.hear()
        caller.tell(HELLO)
        self.say(f"{one.name} and {other.name} have met")
        pumps = [asyncio.ensure_future(self._passed(*way)) for way in ((one, other), (other, one))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        size = (one.passed + other.passed) / 1e6
        self.say(f"{one.name} and {other.name} have parted after {size:.1f} MB")

    async def _passed(self, source: Guest, target: Guest) -> None:
        """As fast as it may be, and as the other takes it: little is kept here."""
        free = time.monotonic()
        while True:
            async with asyncio.timeout(IDLE_SECONDS):
                piece = await source.reader.read(PIECE)
            if not piece:
                return
            target.writer.write(piece)
            await target.writer.drain()
            source.passed += len(piece)
            now = time.monotonic()
            free = max(free, now) + len(piece) / self.rate
            if free - now > 0.01:
                await asyncio.sleep(free - now)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``relay.toml``: paths are relative to the file."""

    listen: str
    authority: str
    names: list[str] = []
    revoked: list[str] = []
    rate: float = 1e8
    connections: int = 200


def read_relay(file: Path) -> tuple[Relay, socket.socket]:
    """The relay and where it listens, both checked."""
    said = read_toml(file, Settings)
    if not (0 < said.rate < math.inf and said.connections > 1):
        raise InputError(f"{file}: rate and connections must be positive numbers")
    authority = str(file.parent / said.authority)
    certificates(authority)
    relay = Relay(
        Identity(Credentials("", "", authority), said.revoked),
        names=said.names,
        rate=said.rate,
        connections=said.connections,
    )
    return relay, listening(address(file, said.listen))
