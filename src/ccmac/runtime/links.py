"""Connections to neighbors over mutual TLS that survive being dropped.

Of two neighbors one dials, again and again until it succeeds, or both dial a relay
(:mod:`ccmac.owners.relay`) and meet there; owners start in any order. Both tell who they are,
compare what all owners must have alike, and send again what the other lacks: messages are numbered
and kept until they are acknowledged (:mod:`ccmac.runtime.wire`). A connection that is silent is
made again; a neighbor that is silent for longer than ``patience`` ends the run here, and everybody
learns why.

The connections run in a thread of their own, so that signs of life are exchanged while an agent
computes.
"""

from __future__ import annotations

import asyncio
import base64
import math
import queue
import secrets
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any

from ccmac.errors import AgreedError, CcmacError, InputError, OutOfTime, PeerLost, short
from ccmac.runtime import tls, wire
from ccmac.runtime.tls import Identity
from ccmac.runtime.wire import Address, Frame, Numbering, Relayed, Violation
from ccmac.version import __version__, series

PROTOCOL = 1
BEAT_SECONDS = 2.0  # between signs of life, and at most a quarter of the patience
LOST_BEATS = 3  # of silence after which a connection is given up and made again
RELAY_SECONDS = 6.0  # of a relay's silence; it shows signs of life every second
PAUSE = 0.15  # seconds between two attempts to dial
VIOLATIONS = 10  # of the protocol by one neighbor, without a message between them
FLUSH_SECONDS = 3.0  # for the last words
LINGER_SECONDS = 2.0  # for whoever is about to come for the first time, after an error
AHEAD = 1 << 24  # bytes of messages that are read before they are due
OVERHEAD = 1 << 8  # bytes of memory that a message takes on top of its payload
WAITING_SECONDS = 10.0  # after which whoever is waited for is named
LINES = 5  # different ones that are printed about one neighbor, or about all strangers


@dataclass
class Peer:
    """What an agent knows of one neighbor, whatever becomes of the connection."""

    number: int
    name: str  # in its certificate
    place: Address | Relayed | None  # where it is dialled; None: it dials us
    numbering: Numbering = field(default_factory=Numbering)
    inbox: queue.SimpleQueue[bytes | CcmacError] = field(default_factory=queue.SimpleQueue)
    newest: asyncio.StreamWriter | None = None  # the connection that counts, also unfinished
    writer: asyncio.StreamWriter | None = None  # the same once the neighbor has said who it is
    session: str | None = None  # of the process we talk to: another one has forgotten everything
    last: float = 0.0  # when something came from it
    left: bool = False  # the neighbor has finished
    connections: int = 0
    violations: int = 0
    due: int | None = None  # bytes of the message that the agent waits for
    taken: int = 0  # bytes of messages that the agent has taken out of the inbox
    came: int = 0  # bytes of messages that were put there
    paused: bool = False  # reading waits until the agent has taken more
    room: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ahead(self) -> int:
        """Bytes of messages that nobody has asked for yet."""
        return self.came - self.taken

    @property
    def state(self) -> str:
        """Whether it is there."""
        if self.left:
            return "has finished"
        return "connected" if self.writer is not None else "not connected"

    @property
    def described(self) -> str:
        """Who it is, and where."""
        where = "which dials us" if self.place is None else "{}:{}".format(*self.place)
        relay = "at the relay " if isinstance(self.place, Relayed) else ""
        return f"agent {self.number} ({self.name}, {relay}{where})"

    @property
    def begun(self) -> bool:
        """Whether messages have gone either way."""
        return self.numbering.sent > 0 or self.numbering.arrived > 0

    @property
    def settled(self) -> bool:
        """Whether nothing is owed: it has all we sent, our farewell included, or has left."""
        return self.left or (self.numbering.farewell and not self.numbering.waiting)

    def write(self, frame: bytes) -> None:
        """Send a frame; one that is lost with the connection is sent again on the next."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(frame)


@dataclass(eq=False)
class Links:
    """The connections of agent ``me``, for use from one thread between ``start`` and the end.

    ``facts`` are compared with every neighbor's: {what: digest}. ``say`` gets one line about every
    refusal. ``names`` are those in all agents' certificates.
    """

    me: int
    neighbors: Mapping[int, tuple[str, Address | Relayed | None]]
    listen: Address | None
    identity: Identity
    facts: Mapping[str, str]
    patience: float = 60.0
    wait: float = 600.0
    say: Callable[[str], None] = lambda line: print(f"ccmac: {line}", file=sys.stderr)
    names: Sequence[str] = ()
    failure: CcmacError | None = None

    def __post_init__(self) -> None:
        self.links = {p: Peer(p, name, where) for p, (name, where) in self.neighbors.items()}
        self.session = secrets.token_hex(16)
        self.beat = min(BEAT_SECONDS, self.patience / 4)
        self.loop = asyncio.new_event_loop()
        self._seconds = LOST_BEATS * self.beat  # for an answer
        self._secured = partial(tls.secured, self.identity, self._seconds)
        self._said: dict[int | None, set[str]] = {}
        self._events: queue.SimpleQueue[None] = queue.SimpleQueue()  # something may have ended
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._knocking: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._connecting = (
            0  # connections that are being made: asyncio loses one if it is cancelled
        )
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    # -- for the agent's thread --------------------------------------------------------------------
    def start(self) -> None:
        """Listen, dial, and return when every neighbor is there."""
        self.identity.context(server=True)  # the files can be used
        sock = None if self.listen is None else tls.listening(self.listen)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(sock), self.loop).result()
        begun = time.monotonic()
        while not self._until(lambda: self.failure is not None or self._met(), WAITING_SECONDS):
            absent = [peer.described for peer in self.links.values() if not peer.connections]
            since = f"{time.monotonic() - begun:.0f} s of {self.wait:.0f}"
            self.say(f"waiting for {', '.join(absent)}, {since}")
        if self.failure is not None:
            raise self.failure

    def _met(self) -> bool:
        return all(peer.connections for peer in self.links.values())

    def _until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Whether it is so in time."""
        end = time.monotonic() + seconds
        with suppress(queue.Empty):
            while not done():
                self._events.get(timeout=max(0.0, end - time.monotonic()))
        return done()

    def post(self, messages: Mapping[int, bytes]) -> None:
        """Send one message to each of these neighbors."""
        if self.failure is not None:
            raise self.failure
        self._call(self._push, wire.DATA, messages)

    def receive(self, number: int, size: int | None = None, seconds: float = math.inf) -> bytes:
        """The next message of a neighbor, of ``size`` bytes, which is waited for so long."""
        peer = self.links[number]
        peer.due = size
        self._resume(peer)
        try:
            found = self._next(peer, max(seconds, 0.0))
        finally:
            peer.due = None
        if isinstance(found, CcmacError):
            raise found
        peer.taken += len(found) + OVERHEAD
        self._resume(peer)
        if size is not None and len(found) != size:
            raise PeerLost(_wrong_size(number, len(found), size))
        return found

    def _next(self, peer: Peer, seconds: float) -> bytes | CcmacError:
        """Out of the inbox; whoever is waited for is named now and then."""
        waited = 0.0
        while True:
            pause = min(WAITING_SECONDS, seconds - waited)
            with suppress(queue.Empty):
                return peer.inbox.get(timeout=pause)
            waited += pause
            if waited >= seconds:
                raise PeerLost(f"agent {peer.number}: sent nothing before the time limit")
            self.say(f"waiting for {peer.described}, {peer.state}, {waited:.0f} s")

    def _resume(self, peer: Peer) -> None:
        """Reading may go on: something was taken, or is known to be due."""
        if peer.paused:
            self._call(peer.room.set)

    def __enter__(self) -> Links:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Leave when everybody has what it needs; after an error, tell them why."""
        if not self._thread.is_alive():
            self.loop.close()
            return
        if error is None:
            self._call(self._push, wire.BYE, dict.fromkeys(self.links, b""))
            unread = sum(len(m[2]) for p in self.links.values() for m in p.numbering.waiting)
            seconds = (self.patience if unread < AHEAD // 2 else self.wait) + 1.0
            links = self.links.values()
            self._until(lambda: self.failure is not None or all(p.settled for p in links), seconds)
            if self.failure is not None:
                self.say(f"{self.failure} (the result here is complete)")
        else:
            if self.failure is None:
                self._call(self.fail, PeerLost(spoken(error, self.me)))
            self._until(self._met, LINGER_SECONDS)
        self.stop()

    def stop(self) -> None:
        """Give everything back, without a word."""
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(2 * FLUSH_SECONDS)
        self._call(self.loop.stop)
        self._thread.join(FLUSH_SECONDS)
        self.loop.close()

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.loop.call_soon_threadsafe(function, *arguments)

    # -- in the thread of the connections ----------------------------------------------------------
    async def _begin(self, sock: socket.socket | None) -> None:
        """Accept and dial."""
        if sock is not None:
            self._server = await asyncio.start_server(self._accepted, sock=sock)
        for peer in self.links.values():
            peer.last = self.loop.time()
            self._spawn(self._watch(peer))
            if peer.place is not None:
                self._spawn(self._dial(peer, peer.place))

    def _accepted(self, _: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
        """Whoever knocks shakes hands on its own."""
        self._knocking.add(outer)
        self._spawn(self._welcome(outer))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """An error that nobody expected ends the run; what the network does is expected."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, OSError):
            self.say(f"{type(error).__name__}: {error}")
            self.fail(PeerLost(spoken(error, self.me)))

    async def _welcome(self, outer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(*await self._secured(outer), None)
        except (ssl.SSLError, InputError) as error:
            self._tell(None, f"refused a connection from {tls.host(outer)}: {tls.reason(error)}")
        except ConnectionError:
            why = "hung up in the handshake; does it accept our certificate?"
            self._tell(None, f"{tls.host(outer)}: {why}")
        finally:
            _hang_up(outer)
            self._knocking.discard(outer)

    async def _dial(self, peer: Peer, place: Address | Relayed) -> None:
        """Connect, stay connected, connect again."""
        while not peer.settled and not (self.failure and peer.connections):
            try:
                await self._reach(peer, place)
            except (EOFError, OSError, InputError, Violation) as error:
                # nobody there, or no answer in time, is nothing to tell
                if isinstance(error, ssl.SSLError | InputError | Violation):
                    self._tell(peer, f"{peer.described}: {tls.reason(error)}")
            await asyncio.sleep(PAUSE)

    async def _reach(self, peer: Peer, place: Address | Relayed) -> None:
        """Of two who dial a relay the one with the smaller number is called by the other."""
        called = isinstance(place, Relayed) and self.me < peer.number
        self._connecting += 1
        try:
            async with asyncio.timeout(self._seconds):
                reader, outer = await asyncio.open_connection(
                    *place, limit=tls.WINDOW, happy_eyeballs_delay=tls.ADDRESS_SECONDS
                )
        finally:
            self._connecting -= 1
        try:
            if isinstance(place, Relayed):
                nonce = (await wire.next_hello(reader, self._seconds)).get("nonce")
                mine = self.names[self.me]
                signed = self.identity.sign(wire.seeking(nonce, mine, peer.name))
                proof = base64.b64encode(signed).decode()
                ask = wire.hello(name=mine, seeks=peer.name, proof=proof)
                outer.write(wire.encode(wire.HELLO, 0, 0, ask))
                await wire.next_hello(reader, RELAY_SECONDS)  # the other is there,
                if called:
                    outer.write(wire.encode(wire.HELLO, 0, 0))
                else:
                    await wire.next_hello(reader, self._seconds)  # and listens
            await self._talk(*await self._secured(outer, None if called else peer.name), peer)
        finally:
            _hang_up(outer)

    async def _watch(self, peer: Peer) -> None:
        """Signs of life; a silent connection is made again, a silent neighbor ends the run."""
        while self.failure is None and not peer.settled:
            if peer.paused:
                self._hear(peer)
            limit = self.patience if peer.connections else self.wait
            pause = self.beat / 2 if peer.writer is None else self.beat
            await asyncio.sleep(max(min(pause, peer.last + limit - self.loop.time()), 0.01))
            silence = self.loop.time() - peer.last
            if silence > (self.patience if peer.connections else self.wait) and not peer.left:
                what = "has not been heard of" if peer.connections else "did not come"
                line = f"agent {peer.number}: {what} for {silence:.0f} s (says agent {self.me}); "
                then = "the run ends; start all owners again to continue from their checkpoints"
                self.fail(PeerLost(line + then))
            elif peer.writer is not None:
                peer.write(peer.numbering.frame(wire.BEAT))
                if silence > LOST_BEATS * self.beat:
                    _hang_up(peer.writer)

    # -- one connection ----------------------------------------------------------------------------
    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer | None
    ) -> None:
        """From the handshake to the end.

        What is not allowed closes the connection with a line that names the other side. Nothing is
        lost by that: a neighbor connects again and what has not arrived is sent again.
        """
        self._open.add(writer)
        who = "somebody" if peer is None else f"agent {peer.number}"
        known = False
        try:
            tls.hasten(writer.get_extra_info("socket"))
            names, print_ = tls.who(writer)
            if peer is None:
                who = f"{', '.join(names) or 'a certificate without a name'} at {tls.host(writer)}"
                peer = self._neighbor(names)
                who = f"agent {peer.number}"
            if peer.name not in names:
                raise Violation(f"has a certificate of {', '.join(names) or 'nobody'}")
            if self.identity.revokes(print_):
                raise Violation("shows a certificate that is revoked")
            self._greet(writer, peer)
            async with asyncio.timeout(self._seconds):
                frame = await wire.read(reader)
            while peer.newest is writer:
                if known or frame.kind == wire.END:
                    self._arrived(peer, frame)
                elif frame.kind == wire.REFUSE:
                    self._tell(peer, f"agent {peer.number} refused us: {frame.text}")
                    return
                elif frame.kind != wire.HELLO:
                    raise Violation("did not say who it is")
                else:
                    known = True
                    self._joined(writer, peer, wire.read_hello(frame.payload))
                hear, room = partial(self._hear, peer), partial(self._room, peer)
                frame = await wire.read(reader, hear, room)
        except Violation as found:
            self._tell(peer, f"refused {who}: {found}")
            writer.write(wire.encode(wire.REFUSE, 0, 0, str(found).encode()))
            if peer is not None:
                peer.violations += 1
                if peer.violations > VIOLATIONS:
                    self.fail(PeerLost(f"{who}: broke the rules {peer.violations} times"))
        except (EOFError, OSError) as error:
            if peer is not None and not known and self.failure is None:
                why = "it hung up at once; is our certificate one it accepts? see its log"
                why = tls.reason(error) if isinstance(error, ssl.SSLError) else why
                self._tell(peer, f"{who} refused us: {why}")
        finally:
            if peer is not None and peer.writer is writer:
                peer.writer = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._open.discard(writer)

    def _hear(self, peer: Peer) -> None:
        peer.last = self.loop.time()

    async def _room(self, peer: Peer, length: int) -> None:
        """Wait until a message may be read: few bytes at any time, more of them when they are due.

        Meanwhile nothing at all is read from this neighbor, whose system then sends no more.
        """
        peer.paused = True
        try:
            while peer.ahead + length > AHEAD:
                peer.room.clear()  # first: whoever takes a message from now on says so
                due = peer.due
                if peer.ahead or due is None:
                    await peer.room.wait()
                elif length == due:
                    return
                else:
                    self.fail(PeerLost(_wrong_size(peer.number, length, due)))
                    raise Violation("sent a message that is not due")
        finally:
            peer.paused = False

    def _neighbor(self, names: list[str]) -> Peer:
        """Whose certificate this is, if it should dial us."""
        expected = [peer for peer in self.links.values() if peer.name in names]
        if not expected:
            raise Violation("is no neighbor of this agent")
        if expected[0].place is not None:
            missing = "one of the two needs dial = 'in'"
            raise Violation(f"dialled, although it should be dialled; {missing}")
        return expected[0]

    def _greet(self, writer: asyncio.StreamWriter, peer: Peer) -> None:
        """Say who we are, and how much of this neighbor's has arrived.

        What comes on an older connection counts no more.
        """
        if peer.newest is not None:
            _hang_up(peer.newest)
        peer.newest = writer
        peer.writer = None
        greeting = wire.hello(
            protocol=PROTOCOL,
            agent=self.me,
            session=self.session,
            facts=self.facts,
            version=__version__,
            arrived=peer.numbering.arrived,
            knows=peer.session if peer.begun else None,
        )
        writer.write(wire.encode(wire.HELLO, 0, 0, greeting))

    def _joined(self, writer: asyncio.StreamWriter, peer: Peer, facts: Mapping[str, Any]) -> None:
        """A neighbor has said who it is: compare, then send what it lacks."""
        if facts.get("protocol") != PROTOCOL or facts.get("agent") != peer.number:
            raise Violation("is no agent of this run, or of another version")
        theirs, session, arrived = (facts.get(key) for key in ("facts", "session", "arrived"))
        if not isinstance(theirs, dict) or type(arrived) is not int:
            raise Violation("does not say what it has")
        version = str(facts.get("version"))
        differing = [what for what, mine in self.facts.items() if theirs.get(what) != mine]
        if series(version) != series(__version__):
            line = f"agents {self.me} and {peer.number} have ccmac {__version__} and {version}"
            self.fail(InputError(f"{line}; install one of them, or its patches, at all owners"))
        elif differing:
            what = ", ".join(differing)
            line = f"agents {self.me} and {peer.number} differ in {what}; give all owners the same"
            self.fail(InputError(line))
        elif peer.begun and session != peer.session:
            self.fail(PeerLost(f"agent {peer.number}: was started anew; start all owners again"))
        elif facts.get("knows") not in (None, self.session):
            self.fail(PeerLost(f"agent {self.me}: was started anew; start all owners again"))
        if self.failure is None:
            again = peer.numbering.missing(arrived)
            peer.session = str(session)
            peer.writer = writer
            self._hear(peer)
        else:
            again = [_last_word(self.failure, peer)]
        peer.connections += 1
        for frame in again:
            writer.write(frame)
        self._events.put(None)

    def _arrived(self, peer: Peer, frame: Frame) -> None:
        """A frame of a neighbor that has said who it is."""
        numbering = peer.numbering
        if frame.kind != wire.END:
            numbering.acknowledge(frame.acknowledged)
        if frame.kind in (wire.DATA, wire.BYE):
            numbering.accept(frame)
            peer.violations = 0
            if frame.kind == wire.DATA:
                peer.came += len(frame.payload) + OVERHEAD
                peer.inbox.put(frame.payload)
            else:
                peer.left = True
                text = f"agent {peer.number}: left before the end; start all owners again"
                peer.inbox.put(PeerLost(text))
            if peer.left or numbering.silent > wire.ACKNOWLEDGE:
                peer.write(numbering.frame(wire.BEAT))
        elif frame.kind == wire.END:
            self.fail(PeerLost(frame.text))
        elif frame.kind == wire.REFUSE:
            self._tell(peer, f"agent {peer.number} refused what we sent: {frame.text}")
            raise Violation("refused what we sent")
        elif frame.kind != wire.BEAT:
            raise Violation("said twice who it is")
        if peer.settled:
            self._events.put(None)

    def _push(self, kind: int, messages: Mapping[int, bytes]) -> None:
        """Send one message to each of these neighbors, now or when it is there again."""
        for number, payload in messages.items():
            peer = self.links[number]
            peer.write(peer.numbering.keep(kind, payload))
            peer.room.set()
        self._events.put(None)

    def fail(self, error: CcmacError) -> None:
        """The run ends: here, and by our word everywhere we reach."""
        if self.failure is not None:
            return
        self.failure = error
        for peer in self.links.values():
            peer.write(_last_word(error, peer))
            peer.inbox.put(error)
        self._events.put(None)

    def _tell(self, peer: Peer | None, line: str) -> None:
        """Say a line about a neighbor or a stranger, once, and no more than a few of them."""
        said = self._said.setdefault(None if peer is None else peer.number, set())
        if line in said or len(said) > LINES:
            return
        said.add(line)
        self.say(short(line if len(said) <= LINES else f"{line} (more is not shown)"))

    async def _close(self) -> None:
        """Let the last words go out, then give every socket back."""
        mine = {asyncio.current_task()}
        for writer in self._open:
            writer.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                closed = (writer.wait_closed() for writer in self._open)
                await asyncio.gather(*closed, return_exceptions=True)
                # asyncio loses sockets that it accepts or connects when it is cancelled
                while self._connecting or asyncio.all_tasks() - self._tasks - mine:
                    await asyncio.sleep(0.001)
        if self._server is not None:
            self._server.close()
        while tasks := asyncio.all_tasks() - mine:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for writer in (*self._open, *self._knocking):
            _hang_up(writer)


def spoken(error: BaseException, me: int) -> str:
    """What the others learn of an error at agent ``me``: its kind, never words with data in them.

    But for what all find alike, and for what was said about somebody's connection.
    """
    if isinstance(error, PeerLost):
        return str(error)
    if isinstance(error, AgreedError):
        return f"agent {me}: {error}"
    kinds: list[tuple[type[BaseException], str]] = [
        (KeyboardInterrupt, "was interrupted"),
        (OutOfTime, "has no time left"),
        (InputError, "cannot go on with its input"),
        (MemoryError, "has no memory left"),
        (OSError, "cannot read or write a file"),
    ]
    kind = next((words for type_, words in kinds if isinstance(error, type_)), "met an error")
    return f"agent {me}: {kind}; see its own log"


def _hang_up(writer: asyncio.StreamWriter) -> None:
    """At once, and once: Python 3.11.2 cannot abort what is closed already."""
    with suppress(AttributeError):
        writer.transport.abort()


def _wrong_size(number: int, size: int, due: int) -> str:
    return f"agent {number}: sent {size} bytes where {due} were due; the owners do not run the same"


def _last_word(error: CcmacError, peer: Peer) -> bytes:
    return peer.numbering.frame(wire.END, payload=str(error).encode())
