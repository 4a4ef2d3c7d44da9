"""What averagings carry besides their rows: numbers that ride, and a note.

The note is one float in which processes tell each other

    late      its time is over              stop    somebody there has asked to stop
    save      it is time to save            digest  of what it has computed from what all know

Each agent adds ``late + N stop + N^2 save + N^3 digest`` with N = n + 1: a whole number whose sum
over n agents is exact, so that all read the same from it. The digests are alike when their sum is
n times one's own; were one of them different, at least one process would see another sum.

Processes whose digests differ have drifted apart (another processor or BLAS): they are ``led`` from
then on (:mod:`ccmac.runtime.leading`), and ``parted`` until agent 0's state has been taken over.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ccmac.errors import CcmacError
from ccmac.inputs import Array
from ccmac.ledger import Cost

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime

NOTE = 1  # floats
EXACT_BITS = 53
DIGEST_BITS = 16


class Rider:
    """Numbers of the agents on their way to all: they travel inside the next averaging.

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
        self.grain = 0.0  # lost of each sum at most, beside rounding, once it is found
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
    """One process's note, and what it has heard from all."""

    n: int
    deadline: float = math.inf  # by time.monotonic()
    asked: Callable[[], bool] = never  # whether somebody here wants to stop
    due: Callable[[], bool] = never  # whether it is time to save
    late: bool = False  # heard
    stop: bool = False  # heard
    save: bool = False  # heard
    led: bool = False  # processes round differently, and follow agent 0
    parted: bool = False  # their digests have differed since all had the same state
    drift: float = 0.0  # the farthest that a number known to all was from agent 0's
    _loose: bool = False  # whether the digest has numbers of which agent 0's were not taken
    _digest: int = 0
    _base: int = field(init=False)
    _range: int = field(init=False)

    def __post_init__(self) -> None:
        self._base = self.n + 1
        spare = EXACT_BITS - 4 * self._base.bit_length()
        self._range = 2 ** max(0, min(DIGEST_BITS, spare))

    def remember(self, values: Array, *, same: bool = False) -> None:
        """Numbers that all should know alike (``same``: and do)."""
        self._digest = zlib.crc32(values.tobytes(), self._digest)
        self._loose = self._loose or not same

    def compare(self, values: Array) -> bool:
        """Remember a state; True where one before it differed: all take agent 0's now."""
        parted = self.parted
        self.parted = False
        if not parted:
            self.remember(values)
        return parted

    @property
    def warnings(self) -> list[str]:
        """What the user of a run that was led should hear."""
        told = (
            "processes round differently (another processor or BLAS): all took agent 0's numbers, "
            "in messages of their own (docs/owners.md)"
        )
        return [told] if self.led else []

    @property
    def flags(self) -> tuple[bool, bool, bool]:
        """late, stop, save: here and now."""
        return time.monotonic() > self.deadline, self.asked(), self.due()

    def heed(self, late: bool, stop: bool, save: bool) -> None:
        """Flags of somebody, which all have heard."""
        self.late = self.late or late
        self.stop = self.stop or stop
        self.save = self.save or save

    @property
    def mine(self) -> float:
        """What an agent adds."""
        N = self._base
        told = sum(N**k * bool(flag) for k, flag in enumerate(self.flags))
        return float(told + N**3 * (self._digest % self._range))

    def hear(self, total: float) -> None:
        """The sum over all agents."""
        rest, late = divmod(int(total), self._base)
        rest, stop = divmod(rest, self._base)
        digests, save = divmod(rest, self._base)
        self.heed(late > 0, stop > 0, save > 0)
        loose = self._loose
        self._loose = False
        if digests == self.n * (self._digest % self._range):
            return
        if self.led and not loose:
            raise CcmacError(
                "processes that round differently (another processor or BLAS) have parted ways in "
                "a close decision; the last checkpoint stays; take processors of one kind"
            )
        self.led = True
        self.parted = True
        self._digest = 0


def heard_by_all(runtime: Runtime, rows: Array) -> Array:
    """All agents' rows; where nobody may see them, their sum as one."""
    return runtime.total(rows)[None] if runtime.averaging.hides else runtime.gather(rows)


def heard_cost(runtime: Runtime, width: int) -> Cost:
    """Of :func:`heard_by_all`."""
    hidden = runtime.averaging.hides
    return runtime.total_cost(width) if hidden else runtime.gather_cost(width)
