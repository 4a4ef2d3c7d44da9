"""Sums that show only the sum: rows in fixed point modulo 2^64, masked for every pair of agents.

    word_i = digits of row_i + sum_{j > i} s_ij - sum_{j < i} s_ji   (mod 2^64)

s_ij is a stream that agents i and j alone know (:class:`Masks`); in the sum over all agents the
streams cancel exactly, so that every order of summation, every runtime and one process without
any masks give the same bits. Words travel as rows of a relay do: no round is added.

The scale: row_i < 2^E in modulus, and with B = 62 - ceil(log2 n) a number is two digits of B bits,

    2^(B-E) row_i = high_i + 2^-B low_i,    |high_i| <= 2^B,  |low_i| <= 2^(B-1),

so no sum of digits overflows. E belongs to a part of a layout (the widths of the parts of a
message) and is agreed upon: one more word counts the rows that do not fit, masked as the others
are. Where there are such rows, all agents say which E they would need, and the averaging is
repeated with the largest and some headroom; both are charged. A row that is not finite makes the
sum NaN.

Rounding: a sum of the digits is exact and becomes a float by few roundings, so that

    |sum - exact sum| <= 2^-51 |exact sum| + grain,    grain = n 2^(E - 2B - 1).

Of rows added one after the other the first term could be (n - 1) 2^-53 sum |row_i|, which bounds
allow for; what the grain may do they add (:meth:`Runtime.unseen`).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError, PeerLost
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.runtime.averaging import Relay

if TYPE_CHECKING:
    from ccmac.runtime.base import Runtime
    from ccmac.runtime.distributed import Distributed

Words = NDArray[np.uint64]
BITS = 62
DIGITS = 2
FARTHEST = 2**31  # of widths and scales that are stored
FIRST = -900  # E of a layout that has not been seen: nothing but zeros fits
STEP = 4  # bits between two scales that may be agreed upon
TOP = (1024 - FIRST) // STEP + 2  # the level of what is not finite
LOWEST = -1074  # exponent of the smallest float
PROOF = 1 << 13  # bytes of a signature and a certificate, at most
FINE = 16  # steps to a factor of 2


class Masked(Relay):
    """A relay of words; knows the scales that have been agreed upon."""

    name = "masked"
    hides = True
    words_each = DIGITS
    extra = 1  # the word that counts rows that do not fit

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.n = network.n
        self.hides = self.n > 1  # one agent has nobody to hide from
        self.exponents: dict[tuple[int, ...], list[int]] = {}
        self.repeated = 0  # averagings that were repeated with another scale

    def scales(self, widths: tuple[int, ...]) -> list[int]:
        """E of every part of a layout."""
        return self.exponents.setdefault(widths, [FIRST] * len(widths))

    def memory(self) -> list[Any]:
        """The layouts with their scales, for a checkpoint."""
        return [[list(widths), list(scales)] for widths, scales in self.exponents.items()]

    def recall(self, stored: Any) -> None:
        """Go on with :meth:`memory`; ValueError or TypeError where it is something else."""
        found = {tuple(widths): list(scales) for widths, scales in stored}
        for widths, scales in found.items():
            whole = all(type(v) is int and abs(v) < FARTHEST for v in (*widths, *scales))
            if not whole or len(widths) != len(scales) or min(widths, default=0) < 0:
                raise ValueError("the scales of its masked sums are none")
        self.exponents = found

    @property
    def bits(self) -> int:
        """B, the bits of a digit."""
        return BITS - math.ceil(math.log2(self.n))

    @property
    def grain(self) -> float:
        """What is lost of a sum in addition to its own rounding, at most, with any scale so far."""
        most = max((e for scales in self.exponents.values() for e in scales), default=FIRST)
        return self._lost(most)

    def grain_of(self, widths: tuple[int, ...], part: int) -> float:
        return self._lost(self.scales(widths)[part])

    def _lost(self, exponent: int) -> float:
        return 0.0 if exponent == FIRST else math.ldexp(self.n, exponent - 2 * self.bits - 1)

    def pooled(
        self, runtime: Runtime, parts: Sequence[Array], tables: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Sums of parts, and all agents' tables, which are seen by all and travel as they are."""
        widths = _widths(parts)
        broken = np.zeros(len(parts), dtype=bool)  # parts in which some row is not finite
        words, found = runtime._share(self.words(parts, broken), tables)
        repeated = self.repeated
        while np.add.reduce(words[:, -1], dtype=np.uint64):
            if self.repeated > repeated + 1:  # what was agreed upon fits
                raise PeerLost("an agent: sent masked words that are none; the run ends")
            needs = np.where(np.isinf(self.needs(parts)), FIRST + STEP * TOP, self.needs(parts))
            levels = self.highest(runtime, np.ceil((needs - FIRST) / STEP).astype(int), TOP)
            broken = self.agree(widths, levels)
            runtime.check_finite(np.where(broken, np.inf, 0.0)[None])
            runtime.ledger.charge_cost(runtime.average_cost(sum(widths)))
            words, _ = runtime._share(self.words(parts, broken), [])
        return self.sums(widths, words, broken), found

    def needs(self, parts: Sequence[Array]) -> Array:
        """Row by row and part by part: the least E that fits; infinity where it is not finite."""
        tops = np.stack([np.max(np.abs(part), axis=1, initial=0.0) for part in parts], axis=1)
        exponents = np.frexp(tops)[1].astype(np.float64)  # top < 2^exponent
        exponents[tops == 0.0] = FIRST
        return np.where(np.isfinite(tops), np.maximum(exponents, FIRST), np.inf)

    def words(self, parts: Sequence[Array], broken: NDArray[np.bool_]) -> Words:
        """High digits of all parts, then low ones; zeros where a row does not fit; how many."""
        scales = self.scales(_widths(parts))
        digits = []
        fits = self.needs(parts) <= np.array(scales)
        for k, part in enumerate(parts):
            scaled = np.ldexp(np.where(fits[:, k : k + 1], part, 0.0), self.bits - scales[k])
            high = np.rint(scaled)  # and what is left is exact
            digits.append((high, np.rint(np.ldexp(scaled - high, self.bits))))
        sorted_ = [digit for kind in zip(*digits, strict=True) for digit in kind]
        columns = [digit.astype(np.int64).view(np.uint64) for digit in sorted_]
        unfit = np.asarray(np.sum(~fits & ~broken, axis=1, dtype=np.uint64))
        return np.concatenate([*columns, unfit[:, None]], axis=1)

    def agree(self, widths: tuple[int, ...], levels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Raise the scales to what somebody needs; which parts are not finite."""
        scales = self.scales(widths)
        for k, level in enumerate(levels.tolist()):
            need = FIRST + STEP * level
            if level < TOP and need > scales[k]:
                # two bits between what was needed and what is agreed
                scales[k] = need + 2
        self.repeated += 1
        return np.asarray(levels == TOP)

    def highest(self, runtime: Runtime, levels: NDArray[np.int64], top: int) -> NDArray[np.int64]:
        """The largest level (0..``top``) of every column; nothing else of them is learned.

        An agent adds a random word at every place up to its own level: a sum of 0 means that nobody
        is there. One averaging.
        """
        places = np.arange(top) < levels[:, :, None]
        random = np.frombuffer(secrets.token_bytes(8 * places.size), dtype=np.uint64)
        words = np.where(places, random.reshape(places.shape), np.uint64(0))
        words = words.reshape(len(levels), -1)
        runtime.ledger.charge_cost(runtime._row_cost(self, words.shape[1], []))
        sums = np.add.reduce(runtime._share(words, [])[0], axis=0, dtype=np.uint64)
        return np.asarray(np.count_nonzero(sums.reshape(-1, top), axis=1))

    def largest(self, runtime: Runtime, values: Array) -> Array:
        """At least the largest of every column of numbers >= 0, at most 2^(1/FINE) times as much.

        First its exponent, in steps of STEP, then where it lies between two of these.
        """
        top = (1024 - LOWEST) // STEP + 2
        exponents = 1 + (np.frexp(values)[1] - LOWEST) // STEP
        coarse = np.where(np.isfinite(values), np.where(values > 0, exponents, 0), top)
        found = self.highest(runtime, coarse, top)
        low = STEP * (found - 1) + LOWEST - 1  # log2 of the end below
        with np.errstate(all="ignore"):
            above = 1 + np.floor(FINE * (np.log2(values) - low))
        inside = (coarse == found) & (found > 0) & (found < top)
        fine = np.clip(np.where(inside, above, 0.0), 0, STEP * FINE + 1).astype(int)
        level = self.highest(runtime, fine, STEP * FINE + 1)
        with np.errstate(over="ignore"):  # the largest float may be passed, as by infinity
            ends = np.ldexp(np.exp2(level / FINE) * (1 + 1e-12), low)
        return np.where(found == 0, 0.0, np.where(found == top, np.inf, ends))

    def sums(self, widths: tuple[int, ...], words: Words, broken: NDArray[np.bool_]) -> list[Array]:
        """The parts' sums, shape (1, width) each, from all agents' words in any order."""
        modular = np.add.reduce(words[:, :-1], axis=0, dtype=np.uint64).view(np.int64)
        high, low = np.split(modular, DIGITS)
        carry = (low + (1 << (self.bits - 1))) >> self.bits
        high = high + carry
        low = low - (carry << self.bits)
        near = high.astype(np.float64)
        rest = (high - near.astype(np.int64)) + np.ldexp(low.astype(np.float64), -self.bits)
        pieces = np.split(near + rest, np.cumsum(widths)[:-1])
        scales = zip(pieces, self.scales(widths), broken, strict=True)
        return [
            np.full((1, len(p)), np.nan) if bad else np.ldexp(p, e - self.bits)[None] + 0.0
            for p, e, bad in scales
        ]


def _widths(parts: Sequence[Array]) -> tuple[int, ...]:
    return tuple(part.shape[1] for part in parts)


@dataclass
class Masks:
    """The streams of the agents ``owned``: X25519 for every pair, ChaCha20 for every message.

    Keys are new in every process, and ``count`` numbers the messages: no stream is used twice,
    also not after a restart.
    """

    owned: range
    n: int
    count: int = 0
    _secret: dict[int, Any] = field(default_factory=dict)
    _streams: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        except ImportError as error:
            raise InputError(
                f"averaging masked needs cryptography ({error}); pip install 'ccmac[owners]'"
            ) from None
        self._secret = {i: X25519PrivateKey.generate() for i in self.owned}

    @classmethod
    def introduced(cls, runtime: Distributed) -> Masks:
        """Masks of a runtime's agents, who have met all others: one gather, as settings are.

        Between owners every key is signed with its owner's certificate: neighbors, which pass keys
        on, cannot put others in their place.
        """
        masks = cls(runtime.owned, runtime.n)
        rows = []
        for i, key in masks.public().items():
            proof = runtime.transport.sign(_statement(i, key))
            if len(proof) > PROOF:
                raise InputError(f"the certificate is too long for masked sums: over {PROOF} bytes")
            room = PROOF if proof else 0
            rows.append(as_floats(key + len(proof).to_bytes(4, "little") + proof.ljust(room)))
        keys = {}
        for j, row in enumerate(runtime._gather(np.array(rows))):
            sent = as_key(row)
            keys[j] = sent[:32]
            size = int.from_bytes(sent[32:36], "little")
            if j not in runtime.owned:
                runtime.transport.check(j, _statement(j, keys[j]), sent[36:][:size])
        masks.meet(keys)
        return masks

    def public(self) -> dict[int, bytes]:
        """The public key of every agent here."""
        return {i: mine.public_key().public_bytes_raw() for i, mine in self._secret.items()}

    def meet(self, keys: Mapping[int, bytes]) -> None:
        """Everybody's public keys: a key of its own for every pair."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        for i, mine in self._secret.items():
            for j in range(self.n):
                if j == i:
                    continue
                try:
                    shared = mine.exchange(X25519PublicKey.from_public_bytes(keys[j]))
                except ValueError:
                    raise InputError(f"agent {j}: its public key is of no use") from None
                pair = f"ccmac masks {min(i, j)} {max(i, j)}".encode()
                self._streams[i, j] = HKDF(hashes.SHA256(), 32, None, pair).derive(shared)

    def hide(self, words: Words) -> Words:
        """The words of the agents here, masked for the next message."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        nonce = bytes(4) + self.count.to_bytes(12, "little")
        self.count += 1
        hidden = words.copy()
        silence = bytes(8 * words.shape[1])
        for (i, j), key in self._streams.items():
            stream = Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(silence)
            mask = np.frombuffer(stream, dtype="<u8")
            row = hidden[i - self.owned.start]
            if i < j:
                np.add(row, mask, out=row)
            else:
                np.subtract(row, mask, out=row)
        return hidden


def _statement(agent: int, key: bytes) -> bytes:
    return f"ccmac: agent {agent} masks with ".encode() + key


def as_floats(key: bytes) -> list[float]:
    """Bytes, four at a time, as numbers that are exact in every message."""
    return [float(v) for v in np.frombuffer(key, dtype="<u4")]


def as_key(floats: Array) -> bytes:
    """The reverse."""
    return np.asarray(floats, dtype=np.float64).astype("<u4").tobytes()
