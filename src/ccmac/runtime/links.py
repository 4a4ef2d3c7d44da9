"""Connections to neighbors over mutual TLS that survive being dropped.

Of two neighbors the one with the larger number dials, again and again until it succeeds: owners
start in any order. Both show certificates of one authority, tell who they are and compare what all
owners must have alike. Messages are numbered and kept until they are acknowledged
(:mod:`ccmac.runtime.frames`). A thread of its own runs the connections, so that signs of life are
exchanged while an agent computes. A neighbor that is silent for longer than ``patience`` ends the
run here, and everybody is told why.
"""

from __future__ import annotations

import asyncio
import math
import queue
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ccmac.errors import CcmacError, InputError, PeerLost
from ccmac.runtime import frames
from ccmac.runtime.connection import Connection, reason
from ccmac.runtime.frames import BEAT, BYE, DATA, END, REFUSE, Frame, Numbering, Violation

PROTOCOL = 1
BEAT_SECONDS = 2.0  # between signs of life, and at most a quarter of the patience
LOST_BEATS = 3  # of silence after which a connection is given up and made again
PAUSES = (0.05, 1.0)  # seconds between two attempts to dial: the first, the longest
VIOLATIONS = 10  # of the protocol by one neighbor
FLUSH_SECONDS = 3.0  # for the last words

Address = tuple[str, int]


@dataclass(frozen=True)
class Credentials:
    """Files: my certificate and its key, and the authority that signed everybody's."""

    certificate: str
    key: str
    authority: str

    def context(self, *, server: bool) -> ssl.SSLContext:
        """TLS 1.3 in which both sides show a certificate of the authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.check_hostname = not server
        if server:
            context.num_tickets = 0  # a connection is never taken up again by a ticket
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError) as error:
            files = f"{self.certificate}, {self.key}, {self.authority}"
            raise InputError(
                f"certificates: {files}: cannot be used ({reason(error)}); "
                "make some for a trial with: ccmac keys DIR"
            ) from None
        return context


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


class Links:
    """The connections of agent ``me``; usable from one thread, between ``start`` and the end.

    ``facts`` are compared with every neighbor's: {what: digest}. ``say`` gets one line about every
    refusal.
    """

    def __init__(
        self,
        me: int,
        neighbors: Mapping[int, tuple[str, Address | None]],
        listen: Address | None,
        credentials: Credentials,
        facts: Mapping[str, str],
        *,
        patience: float = 60.0,
        wait: float = 600.0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.me, self.facts = me, dict(facts)
        self.patience, self.wait = patience, wait
        self.beat = min(BEAT_SECONDS, patience / 4)
        self.links = {p: Link(p, name, where) for p, (name, where) in neighbors.items()}
        self.session = secrets.token_hex(16)
        self.failure: CcmacError | None = None
        self._listen, self._credentials = listen, credentials
        self._say = say or (lambda line: print(f"ccmac: agent {me}: {line}", file=sys.stderr))
        self._said: set[str] = set()
        self._events: queue.SimpleQueue[None] = queue.SimpleQueue()  # something may have ended
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self.open: set[Connection] = set()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"links of {me}")

    # -- for the agent's own thread ----------------------------------------------------------------
    def start(self) -> None:
        """Listen, dial, and return when every neighbor is there."""
        server = self._credentials.context(server=True)
        client = self._credentials.context(server=False)
        sock = None if self._listen is None else _listening(self._listen)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._begin, sock, server, client)
        while not all(link.connections for link in self.links.values()):
            self._events.get()
            self._raise()

    def post(self, messages: Mapping[int, bytes]) -> None:
        """Send one message to each of these neighbors."""
        self._raise()
        self._loop.call_soon_threadsafe(self._push, messages)

    def receive(self, peer: int, seconds: float = math.inf) -> bytes:
        """The next message of a neighbor, which is waited for so long."""
        try:
            found = self.links[peer].inbox.get(
                timeout=None if seconds == math.inf else max(seconds, 0.0)
            )
        except queue.Empty:
            raise PeerLost(f"agent {peer}: sent nothing before the time limit") from None
        if isinstance(found, CcmacError):
            raise found
        return found

    def __enter__(self) -> Links:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Leave when everybody has what it needs; after an error, tell them why."""
        if not self._thread.is_alive():
            return
        if error is None:
            self._call(self._finish)
            while self.failure is None and not all(map(_done, self.links.values())):
                self._events.get()
            if self.failure is not None:
                self._say(f"{self.failure} (the result here is complete)")
        elif self.failure is None:
            text = " ".join(str(error).split()) or type(error).__name__
            self._call(self._fail, PeerLost(f"agent {self.me}: {text}"))
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(2 * FLUSH_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(FLUSH_SECONDS)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- everything below runs in the thread of the connections ------------------------------------
    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _begin(
        self, sock: socket.socket | None, server: ssl.SSLContext, client: ssl.SSLContext
    ) -> None:
        now = self._loop.time()
        if sock is not None:
            self._spawn(self._accept(sock, server))
        for link in self.links.values():
            link.heard = now
            self._spawn(self._watch(link))
            if link.address is not None:
                self._spawn(self._dial(link, link.address, client))

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(PeerLost(f"agent {self.me}: {type(error).__name__}: {error}"))

    async def _dial(self, link: Link, address: Address, context: ssl.SSLContext) -> None:
        """Connect, stay connected, connect again."""
        pause = PAUSES[0]
        while self.failure is None and not _done(link):
            try:
                _, connection = await asyncio.wait_for(
                    self._loop.create_connection(
                        lambda: Connection(self, link), *address, ssl=context,
                        server_hostname=link.name, ssl_shutdown_timeout=1.0,
                    ),
                    LOST_BEATS * self.beat,
                )  # fmt: skip
                before = link.connections
                await connection.closed
                pause = PAUSES[0] if link.connections > before else pause
            except ssl.SSLError as error:
                self.tell(f"agent {link.peer} at {address[0]}:{address[1]}: {reason(error)}")
            except (OSError, TimeoutError):
                pass
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])

    async def _accept(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        with sock:
            while True:
                accepted, address = await self._loop.sock_accept(sock)
                self._spawn(self._welcome(accepted, address[0], context))

    async def _welcome(self, sock: socket.socket, host: str, context: ssl.SSLContext) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: Connection(self, None), sock, ssl=context,
                ssl_handshake_timeout=LOST_BEATS * self.beat, ssl_shutdown_timeout=1.0,
            )  # fmt: skip
        except ssl.SSLError as error:
            self.tell(f"refused a connection from {host}: {reason(error)}")
        except (OSError, TimeoutError):
            sock.close()

    async def _watch(self, link: Link) -> None:
        """Signs of life; a silent connection is made again, a silent neighbor ends the run."""
        while self.failure is None and not _done(link):
            await asyncio.sleep(self.beat / 2 if link.connection is None else self.beat)
            silence = self._loop.time() - link.heard
            limit = self.patience if link.connections else self.wait
            if silence > limit and not link.left:
                self._lose(link, silence)
            elif link.connection is not None:
                link.connection.write(link.numbering.frame(BEAT))
                if silence > LOST_BEATS * self.beat:
                    link.connection.abort()

    def _lose(self, link: Link, silence: float) -> None:
        what = "has not been heard of" if link.connections else "did not come"
        self._fail(
            PeerLost(
                f"agent {link.peer}: {what} for {silence:.0f} s (told by agent {self.me}); the run "
                "ends; start all owners again to continue from their checkpoints"
            )
        )

    # -- a connection tells what happened ----------------------------------------------------------
    def violated(self, link: Link) -> None:
        """A neighbor that breaks the rules again and again is as good as gone."""
        link.violations += 1
        if link.violations > VIOLATIONS:
            self._fail(PeerLost(f"agent {link.peer}: broke the rules {link.violations} times"))

    def tell(self, line: str) -> None:
        """Say a line, once."""
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def greeting(self, link: Link) -> bytes:
        """What we say first: who we are, and how much of this neighbor's has arrived.

        What comes on an older connection counts no more.
        """
        if link.connection is not None:
            link.connection.abort()
            link.connection = None
        return frames.hello(
            protocol=PROTOCOL, agent=self.me, session=self.session, facts=self.facts,
            arrived=link.numbering.arrived,
        )  # fmt: skip

    def joined(self, connection: Connection, link: Link, facts: Mapping[str, Any]) -> None:
        """A neighbor has said who it is: compare, then send what it lacks."""
        if facts.get("protocol") != PROTOCOL or facts.get("agent") != link.peer:
            raise Violation("is no agent of this run, or of another version")
        theirs = facts.get("facts")
        for what, mine in self.facts.items():
            if not isinstance(theirs, dict) or theirs.get(what) != mine:
                self._fail(InputError(f"agents {self.me} and {link.peer} differ in {what}"))
                return
        session, arrived = facts.get("session"), facts.get("arrived")
        if type(arrived) is not int:
            raise Violation("does not say what has arrived")
        if link.session is not None and session != link.session:
            self._fail(PeerLost(f"agent {link.peer}: was started anew; start all owners again"))
            return
        again = link.numbering.missing(arrived)
        link.session = str(session)
        link.connection, link.heard = connection, self._loop.time()
        link.connections += 1
        for frame in again:
            connection.write(frame)
        self._events.put(None)

    def arrived(self, link: Link, frame: Frame) -> None:
        """A frame of a neighbor that has said who it is."""
        numbering = link.numbering
        numbering.acknowledge(frame.acknowledged)
        if frame.kind in (DATA, BYE):
            numbering.accept(frame)
            if frame.kind == DATA:
                link.inbox.put(frame.payload)
            else:
                link.left = True
            if link.connection and (link.left or numbering.silent > frames.ACKNOWLEDGE):
                link.connection.write(numbering.frame(BEAT))
        elif frame.kind == END:
            self._fail(PeerLost(frames.text(frame)))
        elif frame.kind == REFUSE:
            self.tell(f"agent {link.peer} refused what we sent: {frames.text(frame)}")
        elif frame.kind != BEAT:
            raise Violation("said twice who it is")
        if _done(link):
            self._events.put(None)

    def _push(self, messages: Mapping[int, bytes]) -> None:
        for peer, payload in messages.items():
            link = self.links[peer]
            frame = link.numbering.keep(DATA, payload)
            if link.connection is not None:
                link.connection.write(frame)

    def _finish(self) -> None:
        for link in self.links.values():
            frame = link.numbering.keep(BYE, b"")
            if link.connection is not None:
                link.connection.write(frame)
        self._events.put(None)

    def _fail(self, error: CcmacError) -> None:
        """The run ends: here, and by our word everywhere we reach."""
        if self.failure is not None:
            return
        self.failure = error
        text = " ".join(str(error).split()).encode()
        for link in self.links.values():
            if link.connection is not None:
                link.connection.write(link.numbering.frame(END, payload=text))
            link.inbox.put(error)
        self._events.put(None)

    async def _close(self) -> None:
        """Let the last words go out."""
        for connection in self.open:
            connection.close()
        if self.open:
            await asyncio.wait([c.closed for c in self.open], timeout=FLUSH_SECONDS)
        for connection in list(self.open):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _done(link: Link) -> bool:
    """Whether nothing is owed: all we sent is there, our farewell included, or it left itself."""
    said = link.numbering
    return link.left or (said.farewell and not said.waiting)


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        sock = socket.create_server(address, family=family, backlog=64)
    except OSError as error:
        where = f"{address[0]}:{address[1]}"
        raise InputError(f"listen {where}: cannot listen there ({error.strerror})") from None
    sock.setblocking(False)
    return sock
