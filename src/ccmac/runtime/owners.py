"""Owners: every process has one agent and talks to its neighbors alone.

The transport of runs between organisations: nobody is asked anything but its neighbors, and
whatever all should know reaches them over the neighbors' neighbors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ccmac.errors import PeerLost
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.runtime.distributed import Distributed
from ccmac.runtime.links import Links
from ccmac.runtime.transport import Message, Transport


class Owners(Transport):
    """Agent ``links.me`` of ``n``, over its links."""

    apart = True

    def __init__(self, links: Links, n: int) -> None:
        self.links = links
        self.rank = links.me
        self.ranks = n

    def _exchange(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        self.links.post({peer: array.tobytes() for peer, array in sent})
        for peer, array in received:
            payload = self.links.receive(peer, array.nbytes, self.given_up - time.monotonic())
            array[...] = np.frombuffer(payload, dtype=array.dtype).reshape(array.shape)

    def sign(self, statement: bytes) -> bytes:
        """With the certificate of this owner."""
        return self.links.identity.sign(statement)

    def check(self, rank: int, statement: bytes, proof: bytes) -> None:
        """Against the authority and the name of that agent."""
        try:
            self.links.identity.check(self.links.names[rank], statement, proof)
        except ValueError as error:
            raise PeerLost(
                f"agent {rank}: the key of its masks is not signed by its certificate ({error}); "
                "somebody on the way may have put another in its place"
            ) from None


def between_owners(
    links: Links, network: Network, averaging: Averaging | str = "auto"
) -> Distributed:
    """The runtime of one owner, whose links are up."""
    return Distributed(network, Owners(links, network.n), averaging=averaging)
