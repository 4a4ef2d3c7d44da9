"""All agents in one process.

Sums run in the order of the averaging scheme, so that results have the bits of an MPI run on any
number of ranks. ``fused=True`` moreover lets polynomials in operators be multiplied out, where a
realization or a comparator has them: the same up to rounding, at an unchanged charge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.runtime.base import Runtime


class InProcess(Runtime):
    """Simulates every agent here."""

    def __init__(
        self,
        network: Network,
        *,
        fused: bool = True,
        ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
    ) -> None:
        super().__init__(network, ledger=ledger, averaging=averaging)
        self.fused = fused

    @property
    def owned(self) -> range:
        """Every agent."""
        return range(self.network.n)

    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        return np.asarray(matrix @ block)

    def _totals(self, parts: Sequence[Array]) -> list[Array]:
        return [self.averaging.total(part) for part in parts]

    def _spread(self, values: Array) -> Array:
        return values

    def _gather(self, values: Array) -> Array:
        # One storage order: NumPy's order of summation depends on it.
        return np.ascontiguousarray(values)

    def collect(self, rows: list[Array]) -> list[Array] | None:
        """Everything is here already."""
        return rows
