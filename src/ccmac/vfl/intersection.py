"""Private set intersection: parties find the keys that all have, and learn no other's keys.

Every key becomes a point of Curve25519 (by HMAC-SHA256), and every party multiplies the points of
all with a secret of its own (X25519): whatever the order, the same key ends as the same point.
Sets go around a ring; the last party of a set's way shuffles it before all see it, so that its
owner cannot find its own points there, and then tells the owner by their old places which of them
are at all parties. Everybody learns how many keys each has and the sizes of all intersections, of
two parties as well, and each party which of its own keys all have.

Honest but curious parties are assumed, of which a set's owner and the last on its way do not join
their knowledge. Cost: n multiplications for every key of every party.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import needed
from ccmac.inputs import Array
from ccmac.runtime import Runtime

PIECE = 2**16  # points of a message
POINT = 32  # bytes
CURVE = "cryptography.hazmat.primitives.asymmetric.x25519"
NAMED = 2  # of the last points: floats that tell them apart

Bytes = NDArray[np.uint8]


def intersected(texts: list[Any], salt: str, runtime: Runtime) -> tuple[NDArray[np.int64], Array]:
    """(this party's rows that all have, in an order common to all; how many keys each has)."""
    n = runtime.n
    me = runtime.owned[0]
    curve = needed(CURVE, "vfl: private alignment needs cryptography; pip install 'ccmac[owners]'")
    secret = curve.X25519PrivateKey.generate()
    points = _multiplied(secret, digests(texts, salt))
    mine = np.lexsort(points.T[::-1])  # in an order that tells nothing of the rows'
    points = points[mine]
    counts = runtime.gather(np.array([[float(len(points))]]))[:, 0].astype(int)
    for step in range(1, n):
        points = _passed(points, counts, (me - step) % n, secret, runtime)
    # the points here are those of the next party, multiplied by all
    shuffle = np.random.default_rng(secrets.randbits(128)).permutation(len(points))
    width = int(counts.max())
    line = np.full((width, NAMED), -1.0)
    line[: len(points)] = floats(points[shuffle])[:, :NAMED]
    table = runtime.gather(line.reshape(1, -1)).reshape(n, width, NAMED)
    names = [row[: counts[(p + 1) % n]] @ [1.0, 1j] for p, row in enumerate(table)]
    common = reduce(np.intersect1d, names)
    places = np.full(width, -1.0)
    if len(common):
        near = np.minimum(np.searchsorted(common, names[me]), len(common) - 1)
        places[shuffle] = np.where(common[near] == names[me], near, -1)
    ranks = runtime.gather(places[None])[(me - 1) % n][: len(mine)].astype(np.int64)
    rows = np.zeros(len(common), dtype=np.int64)
    rows[ranks[ranks >= 0]] = mine[ranks >= 0]
    return rows, counts


def digests(texts: list[Any], salt: str) -> Bytes:
    """Salted SHA-256 of every text, a row each."""
    found = (hmac.new(salt.encode(), str(t).encode(), hashlib.sha256).digest() for t in texts)
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, POINT)


def _passed(points: Bytes, counts: Any, owner: int, secret: Any, runtime: Runtime) -> Bytes:
    """What the party before held, the set of ``owner``, multiplied; piece by piece."""
    before = (runtime.owned[0] - 1) % runtime.n
    most = int(counts.max())
    out = []
    for start in range(0, most, PIECE):
        line = np.zeros((min(PIECE, most - start), POINT // 4))
        sent = floats(points[start : start + PIECE])
        line[: len(sent)] = sent
        received = runtime.gather(line.reshape(1, -1))[before].reshape(line.shape)
        out.append(_multiplied(secret, _bytes(received[: max(counts[owner] - start, 0)])))
    return np.concatenate(out)


def _multiplied(secret: Any, points: Bytes) -> Bytes:
    """Every point times the secret."""
    read = import_module(CURVE).X25519PublicKey.from_public_bytes
    times = secret.exchange
    flat = b"".join(times(read(point.tobytes())) for point in points)
    return np.frombuffer(flat, np.uint8).reshape(-1, POINT)


def floats(points: Bytes) -> Array:
    """Whole numbers of 32 bits, which floats hold exactly."""
    return np.ascontiguousarray(points).view("<u4").astype(np.float64)


def _bytes(numbers: Array) -> Bytes:
    """The points again."""
    return np.ascontiguousarray(numbers.astype("<u4")).view(np.uint8)
