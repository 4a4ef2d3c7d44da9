"""A relay: owners who take no connections both dial it, and it passes on what they say.

    relay -> owner   HELLO {"nonce"}
    owner -> relay   HELLO {"name": mine, "seeks": the other's,
                            "proof": a signature of nonce and names by the owner's certificate}
    relay -> owner   BEAT while the other has not come, then HELLO

From then on bytes go both ways as they come: a HELLO of the one who listens, then TLS from one
owner to the other, of which the relay sees ciphertext and sizes. Owners prove to each other who
they are and need not trust the relay; the proofs keep strangers from using it.
"""

from __future__ import annotations

import asyncio
import base64
import math
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ccmac.errors import InputError, short
from ccmac.runtime import wire
from ccmac.runtime.tls import Identity, certificates, hasten, host, listening
from ccmac.runtime.wire import BEAT, HELLO, REFUSE, Violation
from ccmac.storage.owner import address, read_toml

SECONDS = 6.0  # for an answer
BEAT_SECONDS = 1.0  # between signs of life for whoever waits
IDLE_SECONDS = 60.0  # of silence after which a pair is given up: owners send signs of life
PIECE = 1 << 16  # bytes that are passed on at a time, and read ahead


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``relay.toml``: paths are relative to the file."""

    listen: str
    authority: str
    names: list[str] = []  # who may use it; none: all whom the authority has signed
    revoked: list[str] = []
    rate: float = 1e8  # bytes per second of each direction of a pair
    connections: int = 200


@dataclass(eq=False)
class Guest:
    """A connection of an owner."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    name: str = ""
    seeks: str = ""
    met: asyncio.Future[Guest] = field(default_factory=asyncio.Future)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    passed: int = 0  # bytes

    @property
    def gone(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    def tell(self, kind: int, payload: bytes = b"") -> None:
        """A frame of the relay's own."""
        self.writer.write(wire.encode(kind, 0, 0, payload))


@dataclass
class Relay:
    """Passes on what pairs of owners say."""

    identity: Identity
    settings: Settings
    say: Callable[[str], None] = lambda line: print(f"ccmac: relay: {short(line)}", file=sys.stderr)
    _waiting: dict[tuple[str, str], Guest] = field(default_factory=dict)
    _guests: int = 0

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
            if self._guests > self.settings.connections:
                raise Violation("has no room for more connections")
            await self._introduced(guest)
            await self._met(guest)
        except Violation as found:
            self.say(f"refused {guest.name or host(writer)}: {found}")
            guest.tell(REFUSE, f"the relay {found}".encode())
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
        guest.tell(HELLO, wire.hello(nonce=nonce))
        async with asyncio.timeout(SECONDS):
            said = await wire.next_hello(guest.reader, SECONDS)
        name, seeks, proof = (str(said.get(key)) for key in ("name", "seeks", "proof"))
        try:
            self.identity.check(name, wire.seeking(nonce, name, seeks), base64.b64decode(proof))
        except ValueError as error:
            raise Violation(f"does not accept the certificate ({error})") from None
        if self.settings.names and name not in self.settings.names:
            raise Violation(f"is not for {name}")
        guest.name = name
        guest.seeks = seeks

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
        """Until one of them leaves."""
        one.tell(HELLO)
        other.tell(HELLO)
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
            free = max(free, now) + len(piece) / self.settings.rate
            if free - now > 0.01:
                await asyncio.sleep(free - now)


def read_relay(file: Path) -> tuple[Relay, socket.socket]:
    """The relay and where it listens, both checked."""
    said = read_toml(file, Settings)
    if not (0 < said.rate < math.inf and said.connections > 1):
        raise InputError(f"{file}: rate and connections must be positive numbers")
    authority = str(file.parent / said.authority)
    certificates(authority)
    relay = Relay(Identity("", "", authority, said.revoked), said)
    return relay, listening(address(file, said.listen))
