"""Connections to neighbors over mutual TLS that survive being dropped.

Owners start in any order. Messages are numbered and kept until they are acknowledged
(:mod:`ccmac.runtime.frames`). A thread of its own runs the connections
(:mod:`ccmac.runtime.reactor`), so that signs of life are exchanged while an agent computes.
"""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from ccmac.errors import CcmacError, PeerLost
from ccmac.runtime.credentials import Address, Credentials, listening
from ccmac.runtime.reactor import FLUSH_SECONDS, Reactor

__all__ = ["Credentials", "Links"]

LINGER_SECONDS = 2.0


class Links(Reactor):
    """The connections of agent ``me``, for use from one thread between ``start`` and the end."""

    def __init__(
        self,
        me: int,
        neighbors: Mapping[int, tuple[str, Address | None]],
        listen: Address | None,
        credentials: Credentials,
        facts: Mapping[str, str],
        **more: Any,
    ) -> None:
        super().__init__(me, neighbors, facts, **more)
        self._listen = listen
        self._credentials = credentials
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"links of {me}")

    def start(self) -> None:
        """Listen, dial, and return when every neighbor is there."""
        server = self._credentials.context(server=True)
        client = self._credentials.context(server=False)
        sock = None if self._listen is None else listening(self._listen)
        self._thread.start()
        self.loop.call_soon_threadsafe(self.begin, sock, server, client)
        while not all(link.connections for link in self.links.values()):
            self.events.get()
            self._raise()

    def post(self, messages: Mapping[int, bytes]) -> None:
        """Send one message to each of these neighbors."""
        self._raise()
        self.loop.call_soon_threadsafe(self.push, messages)

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
            self.loop.close()
            return
        if error is None:
            self._call(self.finish)
            while self.failure is None and not all(link.settled for link in self.links.values()):
                self.events.get()
            if self.failure is not None:
                self.say(f"{self.failure} (the result here is complete)")
        elif self.failure is None:
            text = " ".join(str(error).split()) or type(error).__name__
            self._call(self.fail, PeerLost(f"agent {self.me}: {text}"))
        if error is not None:
            self._linger()
        self.stop()

    def _linger(self) -> None:
        """Who is about to come for the first time is told why there is no run."""
        end = time.monotonic() + LINGER_SECONDS
        with suppress(queue.Empty):
            while not all(link.connections for link in self.links.values()):
                self.events.get(timeout=max(0.0, end - time.monotonic()))

    def stop(self) -> None:
        """Give everything back, without a word."""
        asyncio.run_coroutine_threadsafe(self.close(), self.loop).result(2 * FLUSH_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(FLUSH_SECONDS)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        self.loop.call_soon_threadsafe(function, *arguments)

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()
