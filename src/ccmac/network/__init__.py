"""Who talks to whom: the graph with its gossip matrix, and the ways to name one."""

from ccmac.network.graph import Network
from ccmac.network.spec import as_network

__all__ = ["Network", "as_network"]
