"""The leaf that talks to neighbors: W (x) I_s on rows of s floats, one agent a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Cost
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]


class Gossip:
    """W (x) I_s through one neighbor exchange. Cost: 1 round, and its bytes.

    W is symmetric, so the adjoint is the same exchange. With ``modelled`` the product is computed
    in one process and charged as one modelled round: the theorem's oracle, never mixed with
    rounds that were executed.
    """

    def __init__(self, runtime: Runtime, width: int, *, modelled: bool = False) -> None:
        if modelled and len(runtime.owned) != runtime.n:
            raise ValueError("gossip: modelled rounds need all agents in one process")
        self.runtime = runtime
        self.width = width
        self.modelled = modelled

    @property
    def shape(self) -> tuple[int, int]:
        """Square: the owned agents' rows."""
        size = len(self.runtime.owned) * self.width
        return size, size

    @property
    def cost(self) -> Cost:
        """One round (nothing for one agent, or when there is nothing to send)."""
        if self.runtime.n == 1 or self.width == 0:
            return Cost()
        return Cost(modelled_rounds=1) if self.modelled else self.runtime.mix_cost(self.width)

    def forward(self, u: Array) -> Array:
        """(W (x) I_s) u, flat in and flat out."""
        if self.runtime.n == 1 or self.width == 0:
            return np.zeros(self.shape[0])
        block = u.reshape(len(self.runtime.owned), self.width)
        if self.modelled:
            self.runtime.ledger.charge_cost(self.cost)
            return np.asarray(self.runtime.network.weights @ block).ravel()
        return self.runtime.mix(block).ravel()

    def adjoint(self, v: Array) -> Array:
        """The same as forward: W is symmetric."""
        return self.forward(v)
