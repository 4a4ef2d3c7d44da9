"""The runtime: a contiguous range of agents and the only ways in which they communicate.

A *block* is an array with one row per owned agent. A *common* array is something that every agent
knows with the same bits: it has one row, in every process, and broadcasts against blocks.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from ccmac.errors import OutOfTime
from ccmac.inputs import Array
from ccmac.ledger import Cost, Ledger
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging, by_name, messages_sent

FLOAT_BYTES = 8


class Runtime(ABC):
    """Owns agents ``owned``; charges rounds, reductions and bytes as it executes them.

    ``fused``: whether polynomials in operators may be multiplied out (certified and canonical
    realizations, graph filters of two comparators), which moves the last bits.
    """

    fused: bool = False
    apart: bool = False  # whether every process keeps files of its own, and no others'

    def __init__(
        self, network: Network, *, ledger: Ledger | None = None, averaging: Averaging | str = "auto"
    ) -> None:
        self.network = network
        self.ledger = ledger or Ledger()
        self.averaging = by_name(network, averaging) if isinstance(averaging, str) else averaging
        self._sent: dict[int, tuple[sp.csr_array, int]] = {}
        self.deadline = math.inf  # of the setup, by time.monotonic(); the driver keeps its own

    # -- who ------------------------------------------------------------------------------
    @property
    @abstractmethod
    def owned(self) -> range:
        """The agents of this process."""

    @property
    def n(self) -> int:
        """All agents, everywhere."""
        return self.network.n

    @property
    def is_root(self) -> bool:
        """Whether this process prints and writes."""
        return self.apart or self.owned.start == 0

    # -- talking --------------------------------------------------------------------------
    @abstractmethod
    def _mix(self, block: Array, matrix: sp.csr_array) -> Array:
        """Rows owned here of ``matrix @ block``; one neighbor round along its support."""

    @abstractmethod
    def _gather(self, values: Array) -> Array:
        """All agents' rows of a small array (scalars per agent), in agent order."""

    @abstractmethod
    def collect(self, rows: list[Array]) -> list[Array] | None:
        """All agents' vectors at the root (None elsewhere): the ``--gather`` of a result."""

    def mix(self, block: Array, matrix: sp.csr_array | None = None) -> Array:
        """(W (x) I) block, or any matrix supported on the graph. Cost: 1 round."""
        matrix = self.network.weights if matrix is None else matrix
        self.ledger.charge_cost(self.mix_cost(block.shape[1], matrix))
        return self._mix(block, matrix)

    def mix_cost(self, width: int, matrix: sp.csr_array | None = None) -> Cost:
        """Static cost of :meth:`mix` for rows of ``width`` floats."""
        if self.n == 1:
            return Cost()
        matrix = self.network.weights if matrix is None else matrix
        if id(matrix) not in self._sent:
            # The matrix is kept with its count, so that its id stays its own.
            self._sent[id(matrix)] = (matrix, int(messages_sent(matrix).max()))
        return Cost(rounds=1, bytes=FLOAT_BYTES * width * self._sent[id(matrix)][1])

    @abstractmethod
    def _totals(self, parts: Sequence[Array]) -> list[Array]:
        """Sums of all agents' rows in the order of the averaging scheme, shape (1, width) each."""

    def average(self, block: Array) -> Array:
        """Common mean over all agents of the rows of ``block``: ``averaging.rounds`` rounds."""
        [mean] = self.combine([block])
        return mean

    def combine(self, parts: Sequence[Array]) -> list[Array]:
        """Common means of several blocks, averaged in the same rounds."""
        if any(len(part) != len(self.owned) for part in parts):
            raise ValueError(f"averaging needs a row for each of the {len(self.owned)} agents here")
        self.mind_the_time()
        self.charge_average(sum(part.shape[1] for part in parts))
        return [np.divide(total, self.n, out=total) for total in self._totals(parts)]

    def average_in_pieces(self, pieces: Iterable[Array]) -> Array:
        """Common mean of rows that are computed piece by piece: one averaging of all of them."""
        return self.average(np.hstack(list(pieces)))

    def mind_the_time(self) -> None:
        """A long setup ends at its deadline where one process can decide it for all."""
        alone = len(self.owned) == self.n
        if alone and self.ledger.current == "setup" and time.monotonic() > self.deadline:
            raise OutOfTime("the time limit passed during the setup")

    def average_cost(self, width: int) -> Cost:
        """Static cost of averaging rows of ``width`` floats (nothing for one agent)."""
        if self.n == 1 or width == 0:
            return Cost()
        sent = FLOAT_BYTES * width * self.averaging.floats_sent
        return Cost(rounds=self.averaging.rounds, bytes=sent)

    def charge_average(self, width: int) -> None:
        """Charge one averaging of ``width`` floats."""
        self.ledger.charge_cost(self.average_cost(width))

    def total(self, values: Array, *, riding: bool = False) -> Array:
        """Sum over all agents, in agent order, of per-agent scalars (rows of ``values``).

        One reduction. Unless it rides on an averaging message that travels anyway, its rounds
        are charged too.
        """
        self.mind_the_time()
        self.ledger.charge_cost(self.total_cost(values.shape[1], riding=riding))
        return np.asarray(np.add.reduce(self._gather(values), axis=0))

    def total_cost(self, width: int = 1, *, riding: bool = False) -> Cost:
        """Static cost of :meth:`total`."""
        if self.n == 1:
            return Cost()
        cost = self.average_cost(width)
        return Cost(reductions=1, bytes=cost["bytes"], rounds=0 if riding else cost["rounds"])

    def gather(self, values: Array, *, riding: bool = False) -> Array:
        """All agents' rows of per-agent scalars, known to everybody.

        One reduction whose message has a slot for every agent.
        """
        self.ledger.charge_cost(self.total_cost(values.shape[1] * self.n, riding=riding))
        return self._gather(values)

    def agree(self, values: Array) -> Array:
        """Scalars that each process computed from common arrays: the root's, for everybody.

        They are equal already, unless processors of different kinds compute them: then decisions
        stay common. They ride on the next message.
        """
        self.ledger.charge_cost(self.total_cost(values.size, riding=True))
        return self._spread(np.asarray(values, dtype=np.float64))

    @abstractmethod
    def _spread(self, values: Array) -> Array:
        """The root's values everywhere."""


class InProcess(Runtime):
    """All agents in this process.

    Sums run in the order of the averaging scheme, so that results have the bits of an MPI run on
    any number of ranks. ``fused=True`` moreover lets polynomials in operators be multiplied out,
    where a realization or a comparator has them: the same up to rounding, at an unchanged charge.
    """

    def __init__(
        self, network: Network, *, fused: bool = True, ledger: Ledger | None = None,
        averaging: Averaging | str = "auto",
    ) -> None:  # fmt: skip
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

    def average_in_pieces(self, pieces: Iterable[Array]) -> Array:
        """No more than one piece of every agent's row is there at a time."""
        self.mind_the_time()
        total = np.hstack([self.averaging.total(piece) for piece in pieces])
        self.charge_average(total.shape[1])
        return np.divide(total, self.n, out=total)

    def _spread(self, values: Array) -> Array:
        return values

    def _gather(self, values: Array) -> Array:
        # One storage order: NumPy's order of summation depends on it.
        return np.ascontiguousarray(values)

    def collect(self, rows: list[Array]) -> list[Array] | None:
        """Everything is here already."""
        return rows
