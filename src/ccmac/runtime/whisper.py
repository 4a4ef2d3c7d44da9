"""What methods that only mix rows with neighbors tell everybody: flags that flood the graph.

Rows that are mixed take FLAGS entries more, 0 or 1. Beside its diagonal a mixing matrix has entries
of one sign, so that where an agent's flag is 0 the product is not 0 exactly if a neighbor's is 1.
After as many rounds as the diameter all agents have the same flags, and may act on them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ccmac.inputs import Array
from ccmac.ledger import Cost

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime

FLAGS = 4  # late, stop, save (ccmac.runtime.notes), and whether the iterate blows up


class Whisper:
    """The flags of the agents here, a row each; ``left``: rounds that they still ride on."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.left = 0
        self.flags: NDArray[np.bool_] = np.zeros((len(runtime.owned), FLAGS), dtype=bool)

    def __call__(self, block: Array, matrix: sp.csr_array) -> Array:
        """One round: rows of ``matrix @ block``; the flags have come one neighbor farther."""
        if not self.left:
            return self.runtime._mix(block, matrix)
        self.left -= 1
        width = block.shape[1]
        found = self.runtime._mix(np.hstack([block, self.flags]), matrix)
        self.flags |= found[:, width:] != 0
        return np.ascontiguousarray(found[:, :width])

    def turn(self, mine: ArrayLike) -> NDArray[np.bool_]:
        """What all have heard since the last turn; what agents here say of it anew sets out."""
        heard = np.asarray(self.flags.any(axis=0))
        self.flags[...] = np.asarray(mine, dtype=bool) & ~heard
        self.left = self.runtime.network.diameter
        return heard

    def stepped(self, before: int, step: Cost) -> Cost:
        """After a step, also where its rounds were multiplied out: what the flags added to it."""
        self.left = max(before - step["rounds"], 0)
        one = self.runtime.mix_cost(FLAGS)
        rode = before - self.left
        return Cost(
            bytes=rode * one["bytes"],
            network_bytes=rode * one["network_bytes"],
            longest_message=step["longest_message"] + FLAGS if rode else 0,
        )
