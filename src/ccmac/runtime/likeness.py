"""What all processes must have alike before a run: version, network, routes, arithmetic."""

from __future__ import annotations

import hashlib

import numpy as np

from ccmac.network import Network
from ccmac.runtime.averaging import Averaging
from ccmac.version import __version__


def fingerprint(network: Network, averaging: Averaging) -> str:
    """Version, network and routes: where these differ, the rounds would not match."""
    digest = hashlib.sha256()
    weights = network.weights
    for part in (weights.indptr, weights.indices, weights.data, averaging.routes):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{__version__} {network.n} {averaging.name} {digest.hexdigest()}"


def arithmetic() -> bytes:
    """The bits of a few results whose order of summation the library or processor chooses."""
    matrix = np.sin(np.arange(1.0, 6001.0)).reshape(120, 50)
    image = matrix @ np.cos(np.arange(50.0))
    spectrum = np.linalg.eigvalsh(matrix[:50] + matrix[:50].T)
    results = matrix, image, image @ matrix, image @ image, np.sum(matrix), np.exp(image), spectrum
    return b"".join(np.asarray(result).tobytes() for result in results)
