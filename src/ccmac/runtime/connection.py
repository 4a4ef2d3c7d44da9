"""One TLS connection to a neighbor, or to somebody who has not yet said who it is."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from ccmac.runtime import frames
from ccmac.runtime.credentials import hasten, reason
from ccmac.runtime.frames import END, HELLO, REFUSE, Frame, Violation

if TYPE_CHECKING:
    from ccmac.runtime.link import Link
    from ccmac.runtime.reactor import Reactor


class Connection(asyncio.Protocol):
    """Frames go in and out; ``link`` is None until a neighbor that dialled us has shown its name.

    Whatever is not allowed closes the connection with a line that names the other side. Nothing
    is lost by that: a neighbor connects again and what has not arrived is sent again.
    """

    def __init__(self, reactor: Reactor, link: Link | None) -> None:
        self.reactor = reactor
        self.link = link
        self.decoder = frames.Decoder()
        self.known = False
        self.who = "somebody" if link is None else f"agent {link.peer}"
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TLS is up: both certificates are of the authority. See whose this one is."""
        self.transport = cast(asyncio.Transport, transport)
        hasten(transport.get_extra_info("socket"))
        self.reactor.open.add(self)
        self.transport.set_write_buffer_limits(frames.LONGEST)
        if self.link is None:
            certificate = transport.get_extra_info("peercert") or {}
            names = [str(name) for _, name in certificate.get("subjectAltName", ())]
            host = (transport.get_extra_info("peername") or ["?"])[0]
            self.who = f"{', '.join(names) or 'a certificate without a name'} at {host}"
            expected = [k for k in self.reactor.links.values() if k.name in names]
            if not expected:
                self.refuse("is no neighbor of this agent")
                return
            if expected[0].address is not None:
                self.refuse("dialled, although it should be dialled")
                return
            self.link = expected[0]
            self.who = f"agent {self.link.peer}"
        self.write(frames.encode(HELLO, 0, 0, self.reactor.greeting(self, self.link)))

    def data_received(self, data: bytes) -> None:
        """Bytes of the other side."""
        if self.link is None or self.transport.is_closing():
            return
        if self.known:
            self.link.heard = asyncio.get_running_loop().time()
        try:
            for frame in self.decoder.feed(data):
                self._take(frame, self.link)
        except Violation as found:
            self.refuse(str(found))
            self.reactor.violated(self.link)

    def _take(self, frame: Frame, link: Link) -> None:
        if self.known:
            self.reactor.arrived(link, frame)
        elif frame.kind == HELLO:
            self.known = True
            self.decoder.limit = frames.LONGEST
            self.reactor.joined(self, link, frames.read_hello(frame.payload))
        elif frame.kind == REFUSE:
            self.reactor.tell(f"agent {link.peer} refused us: {frames.text(frame)}")
            self.transport.close()
        elif frame.kind == END:
            self.reactor.arrived(link, frame)
        else:
            raise Violation("did not say who it is")

    def refuse(self, why: str) -> None:
        """Close, and say why on both sides."""
        self.reactor.tell(f"refused {self.who}: {why}")
        self.write(frames.encode(REFUSE, 0, 0, why.encode()))
        self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self.reactor.open.discard(self)
        if isinstance(error, ssl.SSLError) and self.link is not None and not self.known:
            self.reactor.tell(f"{self.who} refused us: {reason(error)}")
        if self.link is not None and self.link.connection is self:
            self.link.connection = None
        if not self.closed.done():
            self.closed.set_result(None)

    def write(self, frame: bytes) -> None:
        """Send a frame; one that is lost with the connection is sent again on the next."""
        if not self.transport.is_closing():
            self.transport.write(frame)

    def close(self) -> None:
        """Close after what is written has gone out."""
        self.transport.close()

    def abort(self) -> None:
        """Give the connection up at once."""
        self.transport.abort()
