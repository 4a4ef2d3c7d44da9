"""Arrays of agents in one file: a line of JSON that says what follows, then the bytes.

    {"arrays": [{"name": ..., "kind": "<f8", "shapes": [[3], [2], ...]}, ...], "shared": [...]}

``shapes`` has an entry for each agent; the agents' arrays follow one another. What is shared has
one. Writing takes time in proportion to the bytes, not to the number of agents or names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import PHASES
from ccmac.texts import cut, shown

AnyArray = NDArray[Any]
Named = dict[str, list[AnyArray]]
KINDS = ("<f8", "<f4", "<i8", "<i4", "<u8", "|b1")
RANK = 8


class StoredArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arrays of one name."""

    name: str
    kind: str
    shapes: list[list[int]]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file holds, in order."""

    arrays: list[StoredArray]
    shared: list[StoredArray]


def encode(agents: Mapping[str, Sequence[AnyArray]], replicated: Mapping[str, AnyArray]) -> bytes:
    """The content of a file: numbers and nothing else."""
    pieces: list[bytes] = []
    arrays = [_entry(name, rows, pieces) for name, rows in agents.items()]
    shared = [_entry(name, [array], pieces) for name, array in replicated.items()]
    header = msgspec.json.encode(Header(arrays, shared))
    return b"".join((header, b"\n", *pieces))


def _entry(name: str, given: Iterable[AnyArray], pieces: list[bytes]) -> StoredArray:
    rows = [np.asarray(row) for row in given]
    [kind, *others] = {row.dtype.newbyteorder("<").str for row in rows}
    if others or kind not in KINDS:
        raise ValueError(f"{name}: arrays of kind {kind} cannot be saved, or not together")
    pieces += [row.astype(kind, copy=False).tobytes() for row in rows]
    return StoredArray(name, kind, [list(row.shape) for row in rows])


def decode(content: bytes, count: int) -> tuple[Named, dict[str, AnyArray]]:
    """(arrays of ``count`` agents by name, what is shared); ValueError if it is anything else."""
    end = content.find(b"\n")
    try:
        header = msgspec.json.decode(content[: max(end, 0)], type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"says {cut(str(error))}") from None
    agents: Named = {}
    shared: Named = {}
    place = end + 1
    for entries, found, rows in ((header.arrays, agents, count), (header.shared, shared, 1)):
        for entry in entries:
            if entry.name in found or len(entry.shapes) != rows:
                raise ValueError(f"{shown(entry.name)} is double or not there for each of {rows}")
            found[entry.name], place = _read(content, place, entry)
    if place != len(content):
        raise ValueError("holds more than it says")
    return agents, {name: array for name, [array] in shared.items()}


def _read(content: bytes, place: int, entry: StoredArray) -> tuple[list[AnyArray], int]:
    if entry.kind not in KINDS:
        raise ValueError(f"{shown(entry.name)} is of kind {shown(entry.kind)}")
    dtype = np.dtype(entry.kind)
    rows = []
    for shape in entry.shapes:
        length = math.prod(shape)
        after = place + dtype.itemsize * length
        if len(shape) > RANK or min(shape, default=0) < 0 or after > len(content):
            raise ValueError(f"{shown(entry.name)} is not of the shape {shown(shape)}")
        flat = np.frombuffer(content, dtype, length, place) if length else np.zeros(0, dtype)
        rows.append(flat.reshape(shape).copy())
        place = after
    return rows, place


# -- numbers in JSON -------------------------------------------------------------------------------
def told(value: Any) -> Any:
    """A number for JSON, which knows no infinity."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def number(name: str, before: Any, stored: Any) -> Any:
    """``stored`` as the same kind of number as ``before``."""
    if isinstance(before, float) and isinstance(stored, int | float | str):
        return float(stored)
    if type(stored) is not type(before):
        raise ValueError(f"{name} is no {type(before).__name__}")
    return stored


def counts(ledger: Any) -> dict[str, dict[str, int]]:
    """The counts of a stored ledger, none of them negative."""
    for phase, units in ledger.items():
        if phase not in PHASES or any(type(v) is not int or v < 0 for v in units.values()):
            raise ValueError(f"the ledger of {phase} holds no counts")
    return dict(ledger)
