"""Numbers that travel inside the next averaging."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ccmac.inputs import Array

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime


class Rider:
    """Numbers of the agents on their way to all: they travel inside the next averaging.

    Asked for before there was one, they travel alone and pay its rounds.
    """

    def __init__(self, runtime: Runtime, rows: Array, whole: bool) -> None:
        self.rows, self.whole, self.phase = rows, whole, runtime.ledger.current
        self.width = int(np.prod(rows.shape[1:]))
        self.found: Array | None = None
        self._runtime = runtime

    @property
    def value(self) -> Array:
        """The sum over all agents, or (``whole``) the rows of all agents in agent order."""
        if self.found is None:
            with self._runtime.ledger.phase(self.phase):
                self._runtime.send([])
        assert self.found is not None
        return self.found

    @property
    def mean(self) -> Array:
        """The mean over all agents, as one row."""
        return np.asarray(self.value / self._runtime.n)[None]
