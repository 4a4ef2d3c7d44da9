"""What all processes must have alike: version, network, routes and, where it can be, arithmetic.

Sums over agents have the same bits everywhere, for additions round alike on every processor. What
everybody computes from them by BLAS, LAPACK or exp may differ in the last bits, and more where a
problem is ill conditioned. A run whose processes differ in this is *led*: numbers that all compute
from what all know, and the state after every step, travel from agent 0 to everybody before they are
used, in averagings of their own that are charged. A run in which a digest differs
(:mod:`ccmac.runtime.notes`) is led from then on.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.version import series

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime

LARGEST = np.finfo(np.float64).max


def fingerprint(network: Network, averaging: Averaging) -> str:
    """Version, network and routes: where these differ, the rounds would not match."""
    digest = hashlib.sha256()
    weights = network.weights
    for part in (weights.indptr, weights.indices, weights.data, averaging.routes):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{series()} {network.n} {averaging.described} {digest.hexdigest()}"


def arithmetic() -> bytes:
    """The bits of a few results whose order of summation the library or processor chooses."""
    matrix = np.sin(np.arange(1.0, 6001.0)).reshape(120, 50)
    image = matrix @ np.cos(np.arange(50.0))
    spectrum = np.linalg.eigvalsh(matrix[:50] + matrix[:50].T)
    results = matrix, image, image @ matrix, image @ image, np.sum(matrix), np.exp(image), spectrum
    return b"".join(np.asarray(result).tobytes() for result in results)


def needed(runtime: Runtime) -> bool:
    """Whether two processes round a few results differently; not charged."""
    # six bytes are a whole number that a float holds
    digest = hashlib.sha256(arithmetic()).digest()[:6]
    mine = float(int.from_bytes(digest, "big"))
    digests = runtime._gather(np.full((len(runtime.owned), 1), mine))
    return bool((digests != digests[0]).any())


def followed(runtime: Runtime, mine: Array) -> Array:
    """Agent 0's numbers in place of ``mine``: one averaging.

    Owners refuse infinity in a message: it travels as the largest double.
    """
    whole = runtime.averaging.rows_known
    rows = np.zeros((len(runtime.owned), mine.size))
    if runtime.owned.start == 0:
        rows[0] = np.clip(mine.ravel(), -LARGEST, LARGEST)
    found = runtime.piggyback(rows, whole=whole).value
    numbers = np.reshape(found[0] if whole else found, mine.shape)
    return np.where(np.abs(numbers) == LARGEST, np.copysign(np.inf, numbers), numbers)
