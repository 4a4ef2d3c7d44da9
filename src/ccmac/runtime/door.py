"""Where neighbors knock: connections are accepted here and shake hands, a few of a host at once."""

from __future__ import annotations

import socket
import ssl
from collections import Counter
from typing import TYPE_CHECKING

from ccmac.runtime.connection import Connection
from ccmac.runtime.credentials import reason

if TYPE_CHECKING:
    from ccmac.runtime.reactor import Reactor

SPARE = 8  # handshakes of one host at a time, beside one for every neighbor
PAUSE = 1.0  # seconds without a new connection where no more files can be opened


class Door:
    """A listening socket of ``reactor``; a handshake that takes longer than ``seconds`` ends."""

    def __init__(
        self, reactor: Reactor, sock: socket.socket, context: ssl.SSLContext, seconds: float
    ) -> None:
        self.reactor = reactor
        self.sock = sock
        self.context = context
        self.seconds = seconds
        self.knocking: Counter[str] = Counter()  # by host
        self._arriving: set[socket.socket] = set()  # nobody else closes these
        self._open()

    def _open(self) -> None:
        if self.sock.fileno() >= 0:
            self.reactor.loop.add_reader(self.sock, self._answer)

    def _answer(self) -> None:
        """Somebody knocks."""
        loop = self.reactor.loop
        try:
            accepted, (host, *_) = self.sock.accept()
        except (BlockingIOError, ConnectionError):  # gone before it was taken
            return
        except OSError:  # too many open files
            loop.remove_reader(self.sock)
            loop.call_later(PAUSE, self._open)
            return
        if self.knocking[host] >= SPARE + len(self.reactor.links):
            accepted.close()
            self.reactor.tell(f"refused connections from {host}: too many at once")
            return
        accepted.setblocking(False)
        self.knocking[host] += 1
        self._arriving.add(accepted)
        self.reactor.spawn(self._welcome(accepted, host))

    async def _welcome(self, sock: socket.socket, host: str) -> None:
        self._arriving.discard(sock)
        self.reactor.sockets.add(sock)
        try:
            await self.reactor.loop.connect_accepted_socket(
                lambda: Connection(self.reactor, None),
                sock,
                ssl=self.context,
                ssl_handshake_timeout=self.seconds,
                ssl_shutdown_timeout=1.0,
            )
        except ssl.SSLError as error:
            self.reactor.tell(f"refused a connection from {host}: {reason(error)}")
        except OSError:
            sock.close()
        finally:
            self.knocking[host] -= 1

    def close(self) -> None:
        """Nobody is let in any more."""
        self.reactor.loop.remove_reader(self.sock)
        for sock in (self.sock, *self._arriving):
            sock.close()
