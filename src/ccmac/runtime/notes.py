"""What averagings carry apart from their rows: piggybacked reductions, and control flags.

The control flags are one float in which processes say to each other

    late      its time is over              stop    somebody there has asked to stop
    save      it is time to save            digest  of what it has computed from what all know

Each agent adds ``late + N stop + N^2 save + N^3 digest`` with N = n + 1: a whole number whose sum
over n agents is exact, so that all read the same from it. The digests are alike when their sum is
n times one's own; were one of them different, at least one process would see another sum.

Processes whose digests differ round differently (another processor or BLAS): they are ``led`` from
then on, that is, all take agent 0's numbers (:mod:`ccmac.runtime.leading`).
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ccmac.errors import CcmacError
from ccmac.inputs import Array
from ccmac.ledger import Cost

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime

NOTE = 1  # floats


class Piggyback:
    """A piggybacked reduction: numbers of the agents that travel inside the next averaging.

    Asked for before there was one, they travel alone and pay its rounds; so do those that
    waited when a run ended (``Runtime.limit``).
    """

    def __init__(self, runtime: Runtime, rows: Array, whole: bool) -> None:
        self.rows = rows
        self.whole = whole
        self.phase = runtime.ledger.current
        self.paid = False  # on the bill of the run that is continued
        self.width = int(np.prod(rows.shape[1:]))
        self.found: Array | None = None
        self.grain = 0.0  # lost of each sum at most, apart from rounding, once it is found
        self._runtime = runtime

    @property
    def value(self) -> Array:
        """The sum over all agents, or (``whole``) the rows of all agents in agent order."""
        if self.found is None:
            waiting = self._runtime._waiting
            if self not in waiting:
                waiting.append(self)
            with self._runtime.ledger.phase(self.phase):
                self._runtime.send([])
        assert self.found is not None
        return self.found

    @property
    def mean(self) -> Array:
        """The mean over all agents, as one row."""
        return np.asarray(self.value / self._runtime.n)[None]


def never() -> bool:
    """Nobody asks to stop."""
    return False


@dataclass
class Notes:
    """One process's control flags, and what all have said."""

    n: int
    deadline: float = math.inf  # by time.monotonic()
    asked: Callable[[], bool] = never  # whether somebody here wants to stop
    due: Callable[[], bool] = never  # whether it is time to save
    late: bool = False  # somewhere
    stop: bool = False  # somewhere
    save: bool = False  # somewhere
    stopped_here: bool = False  # somebody here has asked to stop
    led: bool = False  # processes round differently, and follow agent 0
    _digest: int = 0

    def __post_init__(self) -> None:
        self._base = self.n + 1
        spare = 53 - 4 * self._base.bit_length()
        self._range = 2 ** max(0, min(16, spare))

    def remember(self, values: Array) -> None:
        """Numbers that all should know alike, for the digest."""
        self._digest = zlib.crc32(values.tobytes(), self._digest)

    @property
    def warnings(self) -> list[str]:
        """What the user of a run that was led should hear."""
        line = (
            "processes round differently (another processor or BLAS): all took agent 0's numbers, "
            "in messages of their own (docs/owners.md)"
        )
        return [line] if self.led else []

    @property
    def flags(self) -> tuple[bool, bool, bool]:
        """late, stop, save: here and now."""
        asked = self.asked()
        self.stopped_here = self.stopped_here or asked
        return time.monotonic() > self.deadline, asked, self.due()

    @property
    def mine(self) -> float:
        """What an agent adds."""
        N = self._base
        flags = sum(N**k * bool(flag) for k, flag in enumerate(self.flags))
        return float(flags + N**3 * (self._digest % self._range))

    def read(self, total: float) -> None:
        """The sum over all agents."""
        rest, late = divmod(int(total), self._base)
        rest, stop = divmod(rest, self._base)
        digests, save = divmod(rest, self._base)
        self.late = self.late or late > 0
        self.stop = self.stop or stop > 0
        self.save = self.save or save > 0
        if digests == self.n * (self._digest % self._range):
            return
        if self.led:
            raise CcmacError(
                "processes that round differently (another processor or BLAS) have parted ways in "
                "a close decision; the last checkpoint stays; take processors of one kind"
            )
        self.led = True
        self._digest = 0


def gathered_rows(runtime: Runtime, rows: Array) -> Array:
    """All agents' rows; where nobody may see them, their sum as one."""
    return runtime.total(rows)[None] if runtime.averaging.hides else runtime.gather(rows)


def gathered_rows_cost(runtime: Runtime, width: int) -> Cost:
    """Of :func:`gathered_rows`."""
    hidden = runtime.averaging.hides
    return runtime.total_cost(width) if hidden else runtime.gather_cost(width)
