"""What happens on an agent's connections: dialling, greeting, resending, watching, ending.

Of two neighbors the one with the larger number dials, again and again until it succeeds. Both tell
who they are, compare what all owners must have alike, and send again what the other lacks. A
connection that is silent is made again; a neighbor that is silent for longer than ``patience`` ends
the run here, and everybody is told why.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import socket
import ssl
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ccmac.errors import CcmacError, InputError, PeerLost
from ccmac.runtime import frames
from ccmac.runtime.connection import Connection
from ccmac.runtime.credentials import Address, dialled, reason
from ccmac.runtime.door import Door
from ccmac.runtime.frames import BEAT, BYE, DATA, END, REFUSE, Frame, Violation
from ccmac.runtime.link import Link

PROTOCOL = 1
BEAT_SECONDS = 2.0  # between signs of life, and at most a quarter of the patience
LOST_BEATS = 3  # of silence after which a connection is given up and made again
PAUSES = (0.05, 1.0)  # seconds between two attempts to dial: the first, the longest
VIOLATIONS = 10  # of the protocol by one neighbor, without a message between them
FLUSH_SECONDS = 3.0  # for the last words


class Reactor:
    """The connections of agent ``me``; all of it runs in the thread of ``loop``.

    ``facts`` are compared with every neighbor's: {what: digest}. ``say`` gets one line about every
    refusal. ``events`` wakes who waits for a beginning or an end.
    """

    def __init__(
        self,
        me: int,
        neighbors: Mapping[int, tuple[str, Address | None]],
        facts: Mapping[str, str],
        *,
        patience: float = 60.0,
        wait: float = 600.0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.me, self.facts = me, dict(facts)
        self.patience = patience
        self.wait = wait
        self.beat = min(BEAT_SECONDS, patience / 4)
        self.links = {p: Link(p, name, where) for p, (name, where) in neighbors.items()}
        self.session = secrets.token_hex(16)
        self.failure: CcmacError | None = None
        self.say = say or (lambda line: print(f"ccmac: agent {me}: {line}", file=sys.stderr))
        self._said: set[str] = set()
        self.events: queue.SimpleQueue[None] = queue.SimpleQueue()  # something may have ended
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._broken)
        self._tasks: set[asyncio.Task[None]] = set()
        self.open: set[Connection] = set()
        self.door: Door | None = None
        self.sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # of all connections

    def begin(
        self, sock: socket.socket | None, server: ssl.SSLContext, client: ssl.SSLContext
    ) -> None:
        """Accept and dial."""
        now = self.loop.time()
        if sock is not None:
            self.door = Door(self, sock, server, LOST_BEATS * self.beat)
        for link in self.links.values():
            link.heard = now
            self.spawn(self._watch(link))
            if link.address is not None:
                self.spawn(self._dial(link, link.address, client))

    def spawn(self, work: Any) -> None:
        """Work of its own, until the end."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._broken(self.loop, {"exception": None if task.cancelled() else task.exception()})

    def _broken(self, _: Any, context: Mapping[str, Any]) -> None:
        """An error that nobody expected ends the run; what the network does is expected."""
        error = context.get("exception")
        if error is not None and not isinstance(error, OSError):
            self.fail(PeerLost(f"agent {self.me}: {type(error).__name__}: {error}"))

    async def _dial(self, link: Link, address: Address, context: ssl.SSLContext) -> None:
        """Connect, stay connected, connect again."""
        pause = PAUSES[0]
        seconds = LOST_BEATS * self.beat
        while not link.settled and not (self.failure and link.connections):
            before = link.connections
            try:
                sock = await dialled(address, seconds)
                self.sockets.add(sock)
                _, connection = await self.loop.create_connection(
                    lambda: Connection(self, link),
                    sock=sock,
                    ssl=context,
                    server_hostname=link.name,
                    ssl_handshake_timeout=seconds,
                    ssl_shutdown_timeout=1.0,
                )
                await connection.closed
                pause = PAUSES[0] if link.connections > before else pause
            except OSError as error:  # nobody there, or no answer in time, is nothing to tell
                if isinstance(error, ssl.SSLError):
                    self.tell(f"agent {link.peer} at {address[0]}:{address[1]}: {reason(error)}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])

    async def _watch(self, link: Link) -> None:
        """Signs of life; a silent connection is made again, a silent neighbor ends the run."""
        while self.failure is None and not link.settled:
            pause = self.beat / 2 if link.connection is None else self.beat
            left = link.heard + self._limit(link) - self.loop.time()
            await asyncio.sleep(max(min(pause, left), 0.01))
            silence = self.loop.time() - link.heard
            if silence > self._limit(link) and not link.left:
                self._lose(link, silence)
            elif link.connection is not None:
                link.connection.write(link.numbering.frame(BEAT))
                if silence > LOST_BEATS * self.beat:
                    link.connection.abort()

    def _limit(self, link: Link) -> float:
        """Seconds for which this neighbor may be silent."""
        return self.patience if link.connections else self.wait

    def _lose(self, link: Link, silence: float) -> None:
        what = "has not been heard of" if link.connections else "did not come"
        told = (
            f"agent {link.peer}: {what} for {silence:.0f} s (told by agent {self.me}); the run "
            "ends; start all owners again to continue from their checkpoints"
        )
        self.fail(PeerLost(told))

    # -- a connection tells what happened ----------------------------------------------------------
    def violated(self, link: Link) -> None:
        """A neighbor that does nothing but break the rules is as good as gone."""
        link.violations += 1
        if link.violations > VIOLATIONS:
            self.fail(PeerLost(f"agent {link.peer}: broke the rules {link.violations} times"))

    def tell(self, line: str) -> None:
        """Say a line, once."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    def greeting(self, newest: Connection, link: Link) -> bytes:
        """What we say first: who we are, and how much of this neighbor's has arrived.

        What comes on an older connection counts no more.
        """
        for older in [c for c in self.open if c.link is link and c is not newest]:
            older.abort()
        link.connection = None
        return frames.hello(
            protocol=PROTOCOL,
            agent=self.me,
            session=self.session,
            facts=self.facts,
            arrived=link.numbering.arrived,
            knows=link.session if link.begun else None,
        )

    def joined(self, connection: Connection, link: Link, facts: Mapping[str, Any]) -> None:
        """A neighbor has said who it is: compare, then send what it lacks."""
        if facts.get("protocol") != PROTOCOL or facts.get("agent") != link.peer:
            raise Violation("is no agent of this run, or of another version")
        theirs, session, arrived = (facts.get(key) for key in ("facts", "session", "arrived"))
        if not isinstance(theirs, dict) or type(arrived) is not int:
            raise Violation("does not say what it has")
        differing = [what for what, mine in self.facts.items() if theirs.get(what) != mine]
        if differing:
            what = ", ".join(differing)
            told = f"agents {self.me} and {link.peer} differ in {what}; give all owners the same"
            self.fail(InputError(told))
        elif link.begun and session != link.session:
            self.fail(PeerLost(f"agent {link.peer}: was started anew; start all owners again"))
        elif facts.get("knows") not in (None, self.session):
            self.fail(PeerLost(f"agent {self.me}: was started anew; start all owners again"))
        if self.failure is not None:
            link.connections += 1
            connection.write(self._last_word(self.failure, link))
            self.events.put(None)
            return
        again = link.numbering.missing(arrived)
        link.session = str(session)
        link.connection, link.heard = connection, self.loop.time()
        link.connections += 1
        for frame in again:
            connection.write(frame)
        self.events.put(None)

    def arrived(self, link: Link, frame: Frame) -> None:
        """A frame of a neighbor that has said who it is."""
        numbering = link.numbering
        if frame.kind != END:
            numbering.acknowledge(frame.acknowledged)
        if frame.kind in (DATA, BYE):
            numbering.accept(frame)
            link.violations = 0
            if frame.kind == DATA:
                link.inbox.put(frame.payload)
            else:
                link.left = True
            if link.connection and (link.left or numbering.silent > frames.ACKNOWLEDGE):
                link.connection.write(numbering.frame(BEAT))
        elif frame.kind == END:
            self.fail(PeerLost(frames.text(frame)))
        elif frame.kind == REFUSE:
            self.tell(f"agent {link.peer} refused what we sent: {frames.text(frame)}")
        elif frame.kind != BEAT:
            raise Violation("said twice who it is")
        if link.settled:
            self.events.put(None)

    def push(self, messages: Mapping[int, bytes]) -> None:
        """Send one message to each of these neighbors, now or when it is there again."""
        for peer, payload in messages.items():
            link = self.links[peer]
            frame = link.numbering.keep(DATA, payload)
            if link.connection is not None:
                link.connection.write(frame)

    def finish(self) -> None:
        """Say farewell."""
        for link in self.links.values():
            frame = link.numbering.keep(BYE, b"")
            if link.connection is not None:
                link.connection.write(frame)
        self.events.put(None)

    def fail(self, error: CcmacError) -> None:
        """The run ends: here, and by our word everywhere we reach."""
        if self.failure is not None:
            return
        self.failure = error
        for link in self.links.values():
            if link.connection is not None:
                link.connection.write(self._last_word(error, link))
            link.inbox.put(error)
        self.events.put(None)

    @staticmethod
    def _last_word(error: CcmacError, link: Link) -> bytes:
        return link.numbering.frame(END, payload=" ".join(str(error).split()).encode())

    async def close(self) -> None:
        """Let the last words go out, then give every socket back."""
        for connection in self.open:
            connection.close()
        if self.open:
            await asyncio.wait([c.closed for c in self.open], timeout=FLUSH_SECONDS)
        for connection in list(self.open):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()
        if self.door is not None:
            self.door.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        living = [sock for sock in self.sockets if sock.fileno() >= 0]
        for sock in living:  # of handshakes that were cancelled: they end with their sockets
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        end = self.loop.time() + FLUSH_SECONDS
        while any(sock.fileno() >= 0 for sock in living) and self.loop.time() < end:
            await asyncio.sleep(0)
