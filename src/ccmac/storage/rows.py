"""A table that grows: rows are appended to a file, and the caller's index says how many count.

The newest rows, fewer than :data:`CHUNK`, are not in the file: the caller keeps them with its own
state. What lies beyond the rows that an index names was written by a run that ended before its
index was; whoever appends next writes over it. The checksum runs along with the rows.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.inputs import Array
from ccmac.storage.files import flushed_write
from ccmac.texts import open_file, read_bytes

NAME = re.compile(r"trace-\d{6,}\.bin")
CHUNK = 512  # rows at a time: a save writes half of that on average, which costs less than a file


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a file that counts."""

    file: str
    rows: int
    width: int
    crc: int


@dataclass
class Growing:
    """Appends to ``folder/trace-EPOCH.bin``; a new epoch, whose rows are others, is a new file."""

    folder: Path
    known: Rows | None = None

    def append(self, count: int, since: Callable[[int], Array], epoch: int) -> tuple[Rows, Array]:
        """(what is in the file, the rows after that) of a table of ``count`` rows.

        ``since(k)`` are those from k on. What the file gets is on disk when this returns.
        """
        name = f"trace-{epoch:06d}.bin"
        known = self.known
        if known is None or known.file != name:
            known = Rows(name, 0, since(0).shape[1], 0)
        rest = np.ascontiguousarray(since(known.rows), dtype="<f8")
        if len(rest) >= CHUNK:
            content = rest.tobytes()
            self.folder.mkdir(parents=True, exist_ok=True)
            flushed_write(f"{self.folder}/{name}", content, 8 * known.width * known.rows)
            known = Rows(name, count, known.width, zlib.crc32(content, known.crc))
            rest = rest[:0]
        self.known = known
        return known, rest

    def read(self, record: Any, rest: Array, width: int) -> Array:
        """The rows of a stored record and the ``rest``; ValueError where anything does not fit."""
        try:
            found = msgspec.convert(record, Rows)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        if not NAME.fullmatch(found.file) or found.width != width or found.rows < 0:
            raise ValueError("the record of the trace does not fit")
        if rest.dtype != np.float64 or rest.shape[1:] != (width,):
            raise ValueError("the newest rows of the trace are none")
        self.known = found
        return np.vstack((self._stored(found), rest)) if found.rows else rest

    def _stored(self, found: Rows) -> Array:
        size = 8 * found.width * found.rows
        try:
            with open_file(self.folder / found.file) as stream:
                if os.fstat(stream.fileno()).st_size < size:
                    raise ValueError(f"{found.file} is cut short")
                content = read_bytes(stream, size)[:size]
        except OSError as error:
            raise ValueError(f"{found.file}: {error.strerror}") from None
        if zlib.crc32(content) != found.crc:
            raise ValueError(f"the checksum of {found.file} does not match")
        return np.frombuffer(content, dtype="<f8").reshape(-1, found.width)
