"""All agents in one process: nothing travels, everything is charged as if it did."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import NoneType

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import FLAG, Array, of_kind
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.runtime.base import Runtime
from ccmac.runtime.masked import Masked, Words


class InProcess(Runtime):
    """All agents in this process.

    Sums run in the order of the averaging scheme, so that results have the bits of a distributed
    run on any number of processes. ``fused=True`` moreover lets polynomials in operators be
    multiplied out, where a realization or a comparator has them: the same up to rounding, at an
    unchanged charge.

    Parameters
    ----------
    network : Network
        Who talks to whom.
    fused : bool
        Allow faster sums that agree up to rounding; the charge stays that of a distributed run.
    ledger : Ledger, optional
        Where costs are charged; a new one by default.
    averaging : {"auto", "relay", "tree", "masked"} or Averaging
        How sums over all agents travel.

    Examples
    --------
    >>> import ccmac
    >>> import numpy as np
    >>> f = ccmac.objectives.Quadratic(np.eye(2), [1.0, 2.0])
    >>> problem = ccmac.Problem([ccmac.Agent(f, A=[[1]], B=[[1]], b=[1]) for _ in range(3)])
    >>> runtime = ccmac.InProcess(ccmac.Network.ring(3), fused=False)
    >>> ccmac.solve(problem, runtime=runtime).status
    'optimal'
    """

    def __init__(
        self,
        network: Network,
        *,
        fused: bool = True,
        ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
    ) -> None:
        of_kind("InProcess, network", network, Network, "a ccmac.Network")
        of_kind("InProcess, fused", fused, FLAG, "True or False")
        of_kind("InProcess, ledger", ledger, (Ledger, NoneType), "a Ledger or None")
        of_kind("InProcess, averaging", averaging, (Averaging, str), "the name of a scheme")
        super().__init__(network, ledger=ledger, averaging=averaging)
        self.fused = fused

    @property
    def owned(self) -> range:
        """Every agent."""
        return range(self.network.n)

    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        return np.asarray(matrix @ block)

    def _pool(
        self, scheme: Averaging, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        self.notes.late = time.monotonic() > self.notes.deadline
        self.notes.stop = self.notes.asked()
        # One storage order, and no -0.0: as after a sum.
        seen = [np.ascontiguousarray(table) + 0.0 for table in tables]
        return [scheme.total(part) for part in parts], seen

    def _share(self, words: Words, tables: Sequence[Array]) -> tuple[Words, list[Array]]:
        """Nothing leaves, so nothing is masked: the sums are the same."""
        return words, self._pool(self.averaging, [], tables)[1]

    def average_in_pieces(self, pieces: Iterable[Iterable[Array]], width: int) -> Array:
        """One piece of every agent's row is there at a time; of a relay one of one row."""
        if isinstance(self.averaging, Masked):
            return super().average_in_pieces(pieces, width)
        scheme = self._carrier(width)
        totals = [scheme.total_of(rows) for rows in pieces]
        total = totals[0] if len(totals) == 1 else np.hstack(totals)
        self.summed(width)
        return np.divide(total, self.n, out=total)

    def collect(self, rows: list[Array]) -> list[Array] | None:
        """Everything is here already."""
        return rows
