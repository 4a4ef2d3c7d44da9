"""All agents in one process.

``fused=True`` keeps one row for what every agent knows and computes averages directly; the charge
is that of the distributed execution. ``fused=False`` executes every round in agent order and is
bit-identical to an MPI run on any number of ranks.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.runtime.base import Runtime

Array = NDArray[np.float64]


class InProcess(Runtime):
    """Simulates every agent here."""

    def __init__(
        self,
        network: Network,
        *,
        fused: bool = True,
        ledger: Ledger | None = None,
        averaging: Averaging | None = None,
    ) -> None:
        super().__init__(network, ledger=ledger, averaging=averaging)
        self.fused = fused

    @property
    def owned(self) -> range:
        """Every agent."""
        return range(self.network.n)

    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        return np.asarray(matrix @ block)

    def _gather(self, values: Array) -> Array:
        # One storage order: NumPy's order of summation depends on it.
        return np.ascontiguousarray(values)

    def collect(self, rows: list[Array]) -> list[Array] | None:
        """Everything is here already."""
        return rows
