"""Processors that round differently: what all should know alike is then what agent 0 has found.

Sums over agents have the same bits everywhere, for additions round alike on every processor. What
everybody computes from them by BLAS, LAPACK or exp may differ in the last bits, and more where a
problem is ill conditioned. A run whose processes differ in this is *led*: numbers that all compute
from what all know travel from agent 0 to everybody before they are used, in an averaging of their
own that is charged, and everybody goes on with the same bits. Who differs without being led is seen
by the digests (:mod:`ccmac.runtime.notes`), and the run is led from then on.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from ccmac.inputs import Array
from ccmac.runtime.likeness import arithmetic

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime

DIGEST_BYTES = 6  # of the arithmetic: a whole number that a float holds


def needed(runtime: Runtime) -> bool:
    """Whether two processes round a few results differently; not charged."""
    digest = hashlib.sha256(arithmetic()).digest()[:DIGEST_BYTES]
    mine = float(int.from_bytes(digest, "big"))
    told = runtime._gather(np.full((len(runtime.owned), 1), mine))
    return bool((told != told[0]).any())


def followed(runtime: Runtime, mine: Array) -> Array:
    """Agent 0's numbers in place of ``mine``: one averaging. ``notes.drift``: how far off."""
    whole = runtime.averaging.rows_known
    rows = np.zeros((len(runtime.owned), mine.size))
    if runtime.owned.start == 0:
        rows[0] = mine.ravel()
    told = runtime.ride(rows, whole=whole).value
    led = np.reshape(told[0] if whole else told, mine.shape)
    with np.errstate(invalid="ignore"):  # of infinities, which are alike
        off = np.where(led == mine, 0.0, np.abs(led - mine))
    runtime.notes.drift = max(runtime.notes.drift, float(np.max(off)))
    return led


def told(runtime: Runtime) -> list[str]:
    """What the user of a run that was led should hear."""
    if not runtime.notes.led:
        return []
    return [
        "processes round differently (another processor or BLAS): all took agent 0's numbers, in "
        "messages of their own; portable arithmetic needs none (docs/owners.md)"
    ]
