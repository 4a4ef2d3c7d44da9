"""Owners in threads of one process, over TLS on the loopback: nothing outlives a test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ccmac
from ccmac.runtime.links import Credentials, Links
from ccmac.storage.keys import make_keys

SECONDS = 60.0  # no test waits longer


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Neighborhood:
    """Certificates and addresses of the agents of a network."""

    def __init__(self, folder: Path, network: ccmac.Network) -> None:
        self.folder = folder
        self.network = network
        make_keys(folder, [f"agent-{i}" for i in range(network.n)])
        self.ports = free_ports(network.n)
        self.said: dict[int, list[str]] = {i: [] for i in range(network.n)}

    def credentials(self, i: int, folder: Path | None = None) -> Credentials:
        """The files of one agent."""
        keys = folder or self.folder
        files = keys / f"agent-{i}.crt", keys / f"agent-{i}.key", keys / "authority.crt"
        return Credentials(*map(str, files))

    def links(self, i: int, **more: Any) -> Links:
        """The connections of one agent, not yet made."""
        neighbors = {
            int(j): (f"agent-{j}", ("127.0.0.1", self.ports[j]) if j < i else None)
            for j in self.network.neighbors(i)
        }
        options = {"patience": 20.0, "wait": 20.0, "say": self.said[i].append, **more}
        facts = options.pop("facts", {"the public file": "1"})
        listen = ("127.0.0.1", self.ports[i])
        return Links(i, neighbors, listen, self.credentials(i), facts, **options)


def at_once(work: Callable[[int], Any], agents: Sequence[int]) -> dict[int, Any]:
    """``work(i)`` of every agent in a thread of its own: what it returns, or its error."""
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        try:
            found[i] = work(i)
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(found) == len(agents), f"agents {sorted({*agents} - {*found})} hang"
    return found
