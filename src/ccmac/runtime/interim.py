"""Interim: replaced by runtime/distributed.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.network import Network
from ccmac.runtime import halo
from ccmac.runtime.averaging import Averaging, Relay, Tree
from ccmac.runtime.base import Runtime
from ccmac.runtime.transport import Transport


class Distributed(Runtime):
    def __init__(
        self, network: Network, transport: Transport, *, ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(network, ledger=ledger, averaging=averaging)
        self.apart = transport.apart
        self.transport, self.me = transport, transport.rank
        self._ends = np.arange(network.n + 1)
        self._peers = halo.rank_neighbors(network, self._ends, self.me)
        self._relay = self.averaging if isinstance(self.averaging, Relay) else Relay(network)
        arrivals = [self._relay.arrivals(self._ends, r) for r in range(network.n)]
        self._in = arrivals[self.me]
        self._out = [
            [(p, there[k][self.me]) for p, there in enumerate(arrivals) if self.me in there[k]]
            for k in range(self._relay.rounds)
        ]

    @property
    def owned(self) -> range:
        return range(self.me, self.me + 1)

    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        plan = halo.plan(matrix, self._peers, self._ends, self.me, block.shape[1])
        work = np.empty((len(plan.own) + sum(plan.receive_counts), block.shape[1]))
        work[: len(plan.own)] = block[plan.own]
        row = np.ascontiguousarray(block)
        sent = [(p, row) for p, k in zip(plan.peers, plan.send_counts, strict=True) if k]
        at, received = len(plan.own), []
        for p, k in zip(plan.peers, plan.receive_counts, strict=True):
            if k:
                received.append((p, work[at : at + k]))
                at += k
        self.transport.exchange(sent, received)
        return np.asarray(plan.outer @ work if len(plan.exterior) else plan.inner @ block)

    def _totals(self, parts: Sequence[Array]) -> list[Array]:
        block = np.concatenate(parts, axis=1)
        widths = np.cumsum([part.shape[1] for part in parts])[:-1]
        if isinstance(self.averaging, Relay):
            total = self.averaging.total(self._gather(block))
        else:
            assert isinstance(self.averaging, Tree)
            for matrix in self.averaging.schedule:
                block = self._mix(block, matrix)
            total = block[:1].copy()
        return np.split(total, widths, axis=1)

    def _gather(self, values: Array) -> Array:
        table = np.empty((self.n, *values.shape[1:]))
        table[self.me] = values[0]
        for sent, got in zip(self._out, self._in, strict=True):
            arrays = {p: np.empty((len(r), *values.shape[1:])) for p, r in got.items()}
            self.transport.exchange(
                [(p, np.ascontiguousarray(table[r])) for p, r in sent], list(arrays.items())
            )
            for p, r in got.items():
                table[r] = arrays[p]
        return table

    def _spread(self, values: Array) -> Array:
        return values

    def collect(self, rows: list[Array]) -> list[Array] | None:
        raise NotImplementedError
