"""The index of a checkpoint: which files make it, their sizes and checksums; written last.

It takes its name in one step, after all files that it names are on disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ccmac.errors import InputError
from ccmac.storage.files import flush_directory, flushed_write
from ccmac.texts import MEGABYTE, cut, open_file, read_bytes, shown

INDEX = "checkpoint.json"
FORMAT = "ccmac-checkpoint-3"
BYTES = 256 * MEGABYTE  # of an index, which has a line for each process
MOST = 2**53  # of what is counted: processes tell it as a float
STATE = re.compile(r"state-\d{6,}-\d{5,}\.bin")


class Part(msgspec.Struct, frozen=True):
    """One file: agents ``start .. stop - 1``, its length and CRC-32."""

    file: str
    start: int
    stop: int
    bytes: int
    crc: int


class Index(msgspec.Struct, frozen=True):
    """What ``checkpoint.json`` says."""

    format: str
    generation: int
    iteration: int
    n: int
    manifest: dict[str, Any]
    parts: list[Part]
    crc: int = 0

    def checksum(self) -> int:
        """CRC-32 of everything else."""
        return zlib.crc32(msgspec.json.encode(msgspec.structs.replace(self, crc=0)))


@dataclass(frozen=True)
class Written:
    """The index that a run wrote last, and how the system knows the file."""

    index: Index
    mark: tuple[int, ...]


def _mark(found: os.stat_result) -> tuple[int, ...]:
    """Of a file: changes with every index that is written."""
    return found.st_ino, found.st_size, found.st_mtime_ns


def here(folder: Path, written: Written) -> bool:
    """Whether the index in the folder is still the one that was written."""
    try:
        return _mark(os.stat(f"{folder}/{INDEX}")) == written.mark
    except OSError:
        return False


def write_index(folder: Path, index: Index) -> Written:
    """Make a generation the one that counts: in one step, and on disk when this returns."""
    index = msgspec.structs.replace(index, crc=index.checksum())
    # A name that tidy() knows; nobody else writes here.
    beside = f"{folder}/.checkpoint.newindex.json"
    try:
        found = flushed_write(beside, msgspec.json.format(msgspec.json.encode(index), indent=1))
        os.replace(beside, f"{folder}/{INDEX}")
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    flush_directory(folder)
    return Written(index, _mark(found))


def files_of(index: Index) -> set[str]:
    """The names of the files that an index needs."""
    trace = index.manifest.get("trace")
    return {part.file for part in index.parts} | (
        {str(trace.get("file"))} if isinstance(trace, dict) else set()
    )


def read_index(directory: str | Path, name: str = INDEX, *, apart: bool = False) -> Index:
    """The index of a checkpoint, without its state; of one process alone where it is ``apart``."""
    folder = Path(directory)
    try:
        with open_file(folder / name) as stream:
            content = read_bytes(stream, BYTES)
        if len(content) > BYTES:
            raise damaged(folder, f"{name} is too large")
        index = msgspec.json.decode(content, type=Index)
    except FileNotFoundError:
        raise InputError(f"{folder} holds no checkpoint ({name} is missing)") from None
    except OSError as error:
        raise InputError(f"checkpoint {folder} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(folder, f"{name}: {cut(str(error))}") from None
    if index.format != FORMAT:
        raise InputError(
            f"{folder / name} has format {shown(index.format)}; this version reads {FORMAT}"
        )
    for part in index.parts:
        if not STATE.fullmatch(part.file):
            raise damaged(folder, f"{name} names a file {shown(part.file)}")
    if index.crc != index.checksum():
        raise damaged(folder, f"the checksum of {name} does not match")
    spans = [(part.start, part.stop) for part in index.parts]
    whole = [0, *(stop for _, stop in spans)] == [*(start for start, _ in spans), index.n]
    if not all(0 <= count < MOST for count in (index.iteration, index.generation)):
        raise damaged(folder, f"{name} counts beyond what a run can reach")
    if not (whole or apart):
        raise damaged(folder, f"{name} does not list agents 0..{index.n - 1} once each")
    return index


def exists(directory: str | Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return os.path.exists(Path(directory) / INDEX)


def damaged(folder: Path, what: str) -> InputError:
    return InputError(
        f"checkpoint {folder} is damaged: {what}; start afresh in another directory "
        "(nothing was changed)"
    )
