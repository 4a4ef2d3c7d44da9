"""Files of the sets: where they are looked for, how they are read, whether they are intact.

They are looked for in ``$CCMAC_DATA``, then in the user's cache.
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import platformdirs

from ccmac.errors import InputError
from ccmac.paper.data.registry import KnownSet
from ccmac.paper.data.svmlight import parse_svmlight
from ccmac.texts import MEGABYTE, is_file, open_file, shown

VARIABLE = "CCMAC_DATA"
SUFFIXES = ("", ".txt", ".bz2", ".xz")
"""Endings under which a set may be stored; the last two are compressed."""

LIMIT = 1 << 30  # bytes of text: many times the largest known set


def read_text(path: Path, *, compression: str | None = None) -> bytes:
    """Return the decompressed content of ``path``.

    The compression is known by the ending of the name, or by ``compression`` (``".bz2"``, ``".xz"``
    or ``""``) for a file whose name does not show it.
    """
    ending = path.suffix if compression is None else compression
    unpacked: Any = {".bz2": bz2.open, ".xz": lzma.open}.get(ending, lambda stream: stream)
    try:
        with open_file(path) as packed, unpacked(packed) as stream:
            pieces = iter(lambda: stream.read(MEGABYTE), b"")
            text = b"".join(islice(pieces, LIMIT // MEGABYTE + 1))
    except (EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}): replace the file") from None
    except OSError as error:
        # bz2 reports bad content as an OSError without an error number.
        what = error.strerror or f"damaged content, {error}"
        raise InputError(f"cannot read {path} ({what}): replace or repair the file") from None
    if len(text) > LIMIT:
        raise InputError(f"{path} holds more than {LIMIT:,} bytes of text: it is not a known set")
    return text


def digest(text: bytes) -> str:
    """Return the sha256 of ``text`` without empty lines at its end.

    Copies of the sets in circulation differ by such a line, which carries no data.
    """
    end = len(text)
    while text.endswith(b"\n\n", 0, end):
        end -= 1
    return hashlib.sha256(memoryview(text)[:end]).hexdigest()


def data_directory() -> Path | None:
    """Return the directory that ``$CCMAC_DATA`` names, or ``None`` when it is not set."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    directory = Path(os.path.expanduser(value))  # names of unknown users stay as they are
    if not os.path.isdir(directory):
        text = shown(value)
        raise InputError(f"{VARIABLE}={text} is not a directory: create it or unset the variable")
    return directory.absolute()


def cache_directory() -> Path:
    """Return the directory that downloads go to; it need not exist yet."""
    return platformdirs.user_cache_path("ccmac")


def find(record: KnownSet) -> Path | None:
    """Return the file of a set that is on this machine, or ``None``; never uses the network."""
    for directory in (data_directory(), cache_directory()):
        if directory is None:
            continue
        for name in (record.name, *record.aliases):
            for suffix in SUFFIXES:
                path = directory / f"{name}{suffix}"
                if is_file(path):
                    return path
    return None


@dataclass(frozen=True, slots=True)
class Status:
    """One set as found on this machine.

    ``state`` is ``absent``, ``present`` (not looked into), ``verified``, ``unverified`` (there is
    no checksum on record to compare with) or ``bad``; ``detail`` explains the last two.
    """

    name: str
    rows: int
    features: int
    state: str
    path: Path | None = None
    size: int | None = None
    detail: str = ""


def check_digest(record: KnownSet, text: bytes, path: Path) -> None:
    """Raise :class:`InputError` unless ``text`` is the set on record, if its checksum is known."""
    found = digest(text)
    if record.sha256 is not None and found != record.sha256:
        raise InputError(
            f"{path} is not {record.name} (sha256 {found[:12]}..., expected "
            f"{record.sha256[:12]}...): replace or remove the file"
        )


def status(record: KnownSet) -> Status:
    """Say where a set is, without reading it."""
    path = find(record)
    if path is None:
        return Status(record.name, record.rows, record.features, "absent")
    size = path.stat().st_size
    return Status(record.name, record.rows, record.features, "present", path, size)


def verify(record: KnownSet) -> Status:
    """Read a set and compare it with the record; never downloads."""
    seen = status(record)
    if seen.path is None:
        return seen
    state = "verified"
    detail = ""
    try:
        text = read_text(seen.path)
        check_digest(record, text, seen.path)
        if record.sha256 is None:
            state = "unverified"
            detail = _compare_shape(record, text, seen.path)
    except InputError as error:
        state = "bad"
        detail = str(error)
    return Status(seen.name, seen.rows, seen.features, state, seen.path, seen.size, detail)


def check_rows(record: KnownSet, rows: int, path: Path) -> None:
    """Raise :class:`InputError` unless the file has the rows on record."""
    if rows != record.rows:
        raise InputError(
            f"{path} has {rows:,} rows, {record.name} has {record.rows:,}: "
            "replace the file by the complete training split"
        )


def _compare_shape(record: KnownSet, text: bytes, path: Path) -> str:
    """Check what can be checked without a checksum; returns the caveat to print."""
    matrix, _ = parse_svmlight(text, record.features, str(path))
    check_rows(record, matrix.shape[0], path)
    return "no checksum is on record: only the number of rows and the index range were checked"
