"""A table that grows: rows are appended to a file, and the caller's index says how many count.

What lies beyond the rows that an index names was written by a run that ended before its index was;
it is cut off by whoever appends next. The checksum runs along with the rows.
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
from ccmac.storage.files import atomic_write, flushed_write
from ccmac.texts import open_file, read_bytes

NAME = re.compile(r"trace-\d{6,}\.bin")


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

    def append(self, count: int, since: Callable[[int], Array], epoch: int) -> Rows:
        """Write what is new of a table of ``count`` rows; ``since(k)`` are those from k on.

        The file is on disk when this returns.
        """
        name, known = f"trace-{epoch:06d}.bin", self.known
        if known is None or known.file != name:
            known = None
        table = np.ascontiguousarray(since(known.rows if known else 0), dtype="<f8")
        content, width = table.tobytes(), table.shape[1]
        path, crc = f"{self.folder}/{name}", known.crc if known else 0
        if known is None:
            atomic_write(path, content)
        elif content:
            flushed_write(path, content, keep=8 * width * known.rows)
        self.known = Rows(name, count, width, zlib.crc32(content, crc))
        return self.known

    def read(self, record: Any, width: int) -> Array:
        """The rows of a stored record; ValueError for anything that does not fit it."""
        try:
            found = msgspec.convert(record, Rows)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        if not NAME.fullmatch(found.file) or found.width != width or found.rows < 0:
            raise ValueError("the record of the trace does not fit")
        size = 8 * width * found.rows
        try:
            with open_file(self.folder / found.file) as stream:
                if os.fstat(stream.fileno()).st_size < size:
                    raise ValueError(f"{found.file} is cut short")
                content = read_bytes(stream, size)[:size]
        except OSError as error:
            raise ValueError(f"{found.file}: {error.strerror}") from None
        if zlib.crc32(content) != found.crc:
            raise ValueError(f"the checksum of {found.file} does not match")
        self.known = found
        return np.frombuffer(content, dtype="<f8").reshape(-1, width)
