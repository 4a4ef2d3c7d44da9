"""Files that belong together, in a folder that may hold others: all of the new, or all of the old.

    DIR/.ccmac-new-NUMBER/    a generation while it is written; nobody reads it
    DIR/.ccmac-next/          the same, renamed: from this moment on it is the one that counts
    DIR/INDEX, ...            where its files end up, the index last

The rename is atomic. What is left to do then is to move files, and whoever writes next does it if
the writer was killed; readers look into ``.ccmac-next`` first. So a folder means one generation at
any moment. An index is JSON and may name ``parts`` with their CRC-32: parts of the generation
before that the new one does not have are removed where they still are what was written; no other
file is. One writer at a time has the folder (``.ccmac-lock``), from its first file to the last
rename; whoever comes meanwhile waits. What is there and is no run of this program is left alone.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ccmac.storage.files import atomic_write, flush_directory
from ccmac.storage.locks import locked
from ccmac.texts import MEGABYTE, loads, open_file, read_text

NEXT = ".ccmac-next"
STAGED = re.compile(r"\.ccmac-new-\d{1,20}")
PROBE = ".ccmac-probe-"
LOCK = ".ccmac-lock"
PATIENCE = 30.0  # seconds; a generation is written in less, and a result has other places to go
PART = re.compile(r"solution(-\d{4,}-\d{4,})?\.npz")
BYTES = 64 * MEGABYTE
# What an index of this program holds, one of these: of a run (also before parts were named), of a
# party's model.
MARKS = ({"parts"}, {"status", "ledger"}, {"format", "party"})


def number() -> int:
    """One for a new generation; below 2**53, so that processes can tell it as a float."""
    return time.time_ns() // 1000


def staged(folder: Path, number: int) -> Path:
    """Where the files of a generation are written."""
    return folder / f".ccmac-new-{number}"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One writer at a time; InputError where another one does not come to an end."""
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder}: another run is writing there; wait for it, or choose another place"
    with locked(folder / LOCK, busy, PATIENCE):
        yield


def publish(folder: Path, number: int, index: str) -> None:
    """Make the staged files, ``index`` among them, those that count; :func:`alone`.

    OSError before that moment leaves the old ones; afterwards nothing is raised.
    """
    settle(folder, index)
    place = staged(folder, number)
    flush_directory(place)
    place.rename(folder / NEXT)
    flush_directory(folder)
    with suppress(OSError):
        settle(folder, index)
        for other in folder.iterdir():
            if STAGED.fullmatch(other.name):
                discard(other)
            elif other.name.startswith(PROBE):
                other.unlink(missing_ok=True)


def write(folder: Path, files: Mapping[str, bytes | str], index: str) -> None:
    """A whole generation by one process; nothing of it stays where that fails."""
    with alone(folder):
        mine = number()
        place = staged(folder, mine)
        try:
            for name, content in files.items():
                atomic_write(place / name, content)
            publish(folder, mine, index)
        except BaseException:
            discard(place)
            raise


def discard(place: Path) -> None:
    """Remove what a writer that failed or was killed left behind."""
    with suppress(OSError):
        for file in place.iterdir():
            file.unlink(missing_ok=True)
        place.rmdir()


def attempt(folder: Path, index: str, *others: str) -> None:
    """Make the folder and write there, to see whether that works; OSError where it does not.

    Nor does it where a generation could not take its place: a folder or a file of somebody else has
    the name of one of its files, or something else that of :data:`NEXT`.
    """
    with alone(folder):
        if os.path.lexists(folder / NEXT) and not _left(folder / NEXT, index):
            raise OSError(errno.EEXIST, f"{NEXT} is in the way")
        for name in (index, *others):
            if (folder / name).is_dir():
                raise OSError(errno.EEXIST, f"{name} is a folder")
        _refuse_foreign(folder, index, others)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=PROBE)
        try:
            os.write(descriptor, b"ccmac")
        finally:
            os.close(descriptor)
            os.unlink(name)


def _refuse_foreign(folder: Path, index: str, others: tuple[str, ...]) -> None:
    """OSError where a file that would be replaced is not of a run before."""
    content = _content(current(folder, index))
    ours = isinstance(content, dict) and any(mark <= content.keys() for mark in MARKS)
    parts = parts_of(content) if ours else None
    for name in (index, *others):
        named = ours and (parts is None or not PART.fullmatch(name) or name in parts)
        if not named and os.path.lexists(folder / name):
            raise OSError(errno.EEXIST, f"{name} there was not written by ccmac")


def _left(place: Path, index: str) -> bool:
    """Whether this is what a killed writer leaves: a folder of files, an index with them."""
    if place.is_symlink() or not place.is_dir():
        return False
    files = list(place.iterdir())
    named = not files or place / index in files
    return named and all(file.is_file() and not file.is_symlink() for file in files)


def settle(folder: Path, index: str) -> None:
    """Finish what :func:`publish` began: old parts go, files take their names, the index last."""
    place = folder / NEXT
    if not _left(place, index):
        return
    if (place / index).exists():
        new = _parts(place / index)
        for name, crc in _parts(folder / index).items():
            if name not in new and _stored(folder / name) == crc:
                (folder / name).unlink(missing_ok=True)
        last = [place / index]
        for file in [*(p for p in sorted(place.iterdir()) if p.name != index), *last]:
            file.replace(folder / file.name)
        flush_directory(folder)
    place.rmdir()


def current(folder: Path, name: str) -> Path:
    """Where the file ``name`` of the generation that counts is, if it is there at all."""
    return place if os.path.lexists(place := folder / NEXT / name) else folder / name


def parts_of(content: Any) -> dict[str, int] | None:
    """{name: CRC-32} as the content of an index says; None where it names other files."""
    parts = content.get("parts") if isinstance(content, dict) else None
    plain = isinstance(parts, dict) and all(
        type(crc) is int and PART.fullmatch(name) for name, crc in parts.items()
    )
    return parts if plain else None


def _parts(index: Path) -> dict[str, int]:
    """Of an index on disk; none where it is missing or damaged."""
    return parts_of(_content(index)) or {}


def _content(index: Path) -> Any:
    """What an index says; None where it is missing or damaged."""
    try:
        return loads(read_text(index, str(index), BYTES))
    except (OSError, ValueError):
        return None


def checksum(stream: BinaryIO) -> int:
    """CRC-32 of what is left of a stream."""
    crc = 0
    while piece := stream.read(MEGABYTE):
        crc = zlib.crc32(piece, crc)
    return crc


def _stored(path: Path) -> int | None:
    """The checksum of an ordinary file; None where there is none."""
    try:
        with open_file(path) as stream:
            return checksum(stream)
    except OSError:
        return None
