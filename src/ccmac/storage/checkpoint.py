"""Checkpoints: one file per process, and an index that makes them valid, written last.

    DIR/state-000007-00000.bin   generation 7, the agents of the process that starts at agent 0
    DIR/state-000007-00004.bin   ... at agent 4
    DIR/trace-000000.bin         the history of the run, which grows (ccmac.storage.rows)
    DIR/checkpoint.json          generation, iteration, the caller's manifest, sizes and checksums

The index takes its name in one step after all files are on disk; only then does the previous
generation go. A crash at any moment leaves one complete checkpoint. Files carry agent indices, so
any split of the agents over processes can read what any other has written.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.errors import InputError
from ccmac.runtime.base import Runtime
from ccmac.storage.files import atomic_write, flushed_write
from ccmac.storage.rows import NAME as TRACE
from ccmac.storage.states import AnyArray, Named, decode, encode
from ccmac.texts import MEGABYTE, cut, open_file, read_bytes, shown

INDEX = "checkpoint.json"
FORMAT = "ccmac-checkpoint-3"
BYTES = 1024 * MEGABYTE  # of an index: a million agents are a hundredth of that
STATE = re.compile(r"state-\d{6,}-\d{5,}\.bin")
# What atomic_write leaves of a run that is killed while it writes.
HALF = re.compile(r"\.(state-\d{6,}-\d{5,}|trace-\d{6,}|checkpoint|probe)\.\w{8}\.(npz|bin|json)")
# A checkpoint that differs in one of these belongs to something else and is never overwritten.
IDENTITY = ("problem", "version")


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
class Checkpoint:
    """State of the agents asked for: ``agents[name][k]`` is the array of the k-th of them."""

    iteration: int
    manifest: dict[str, Any]
    agents: dict[str, list[AnyArray]]
    replicated: dict[str, AnyArray]


@dataclass(frozen=True)
class Written:
    """The index that a run wrote last, and how the system knows the file."""

    index: Index
    mark: tuple[int, ...]


def save(
    runtime: Runtime,
    directory: str | Path,
    iteration: int,
    manifest: Mapping[str, Any],
    *,
    agents: Mapping[str, Sequence[AnyArray]],
    replicated: Mapping[str, AnyArray],
    broken: OSError | None = None,
    before: Written | None = None,
) -> Written | None:
    """Write a checkpoint; collective, with two small gathers that the ledger does not count.

    ``manifest`` is JSON-like and names the ``problem`` and ``version`` it belongs to. ``agents``
    holds one array per owned agent, ``replicated`` what is the same in every process. Where one
    process cannot write (or comes with ``broken``) all raise OSError, and the old one stays.
    ``before`` is what the root's last call returned: the folder need not be read again.
    """
    folder = Path(directory)
    if before is not None and before.mark != _mark(folder):
        before = None
    generation = _agree(
        runtime, _next_generation(folder, manifest, before) if runtime.is_root else 0
    )
    content = encode(agents, replicated)
    name = f"state-{generation:06d}-{runtime.owned.start:05d}.bin"
    try:
        flushed_write(folder / name, content)
    except OSError as error:
        broken = broken or error
    size = -1 if broken is not None else len(content)
    mine = np.array([[runtime.owned.start, runtime.owned.stop, size, zlib.crc32(content)]], float)
    # Nobody's row arrives before its file is on disk: the gather is the barrier too.
    known = mine if runtime.alone else runtime._gather(np.tile(mine, (len(runtime.owned), 1)))
    if broken is not None:
        raise broken
    if (known[:, 2] < 0).any():
        raise OSError(errno.EIO, "another process could not write its part")
    if not runtime.is_root:
        return None
    parts = [
        Part(f"state-{generation:06d}-{start:05d}.bin", start, stop, size, crc)
        for start, stop, size, crc in sorted({tuple(int(v) for v in row) for row in known})
    ]
    index = Index(FORMAT, generation, iteration, runtime.n, dict(manifest), parts)
    index = write_index(folder, index)
    if before is None:
        tidy(folder, index)
    else:
        for file in files_of(before.index) - files_of(index):
            (folder / file).unlink(missing_ok=True)
    return Written(index, _mark(folder))


def _mark(folder: Path) -> tuple[int, ...]:
    """Changes with every index that is written; empty where there is none."""
    try:
        found = os.stat(folder / INDEX)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def write_index(folder: Path, index: Index) -> Index:
    """Make a generation the one that counts."""
    index = msgspec.structs.replace(index, crc=index.checksum())
    atomic_write(folder / INDEX, msgspec.json.format(msgspec.json.encode(index), indent=1))
    return index


def files_of(index: Index) -> set[str]:
    """The names of the files that an index needs."""
    trace = index.manifest.get("trace")
    return {part.file for part in index.parts} | (
        {str(trace.get("file"))} if isinstance(trace, dict) else set()
    )


def tidy(folder: Path, *indices: Index) -> None:
    """Remove files of this program's making that no index names."""
    keep = {file for index in indices for file in files_of(index)}
    for file in folder.iterdir():
        name, made = file.name, (STATE, TRACE, HALF)
        if name not in keep and any(pattern.fullmatch(name) for pattern in made):
            file.unlink(missing_ok=True)


def ready(folder: Path) -> None:
    """Make the folder and try to write there; one line where that fails."""
    try:
        atomic_write(folder / "probe.bin", b"ccmac")
        (folder / "probe.bin").unlink()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"checkpoint {folder}: cannot be written ({reason}); choose another directory"
        ) from None


def load(
    directory: str | Path, owned: range, expected: Mapping[str, Any] | None = None,
    index: Index | None = None,
) -> Checkpoint:  # fmt: skip
    """Read the state of the agents ``owned``; every entry of ``expected`` must be as saved.

    Of the generation of ``index``, if one is given.
    """
    folder = Path(directory)
    index = read_index(folder) if index is None else index
    _check_identity(folder, index, expected or {})
    if owned.stop > index.n:
        raise InputError(
            f"checkpoint {folder} holds {index.n} agents, not agent {owned.stop - 1}: "
            "resume the problem it was written for"
        )
    agents: dict[str, dict[int, AnyArray]] = {}
    replicated: dict[str, AnyArray] = {}
    for part in index.parts:
        if part.start < owned.stop and part.stop > owned.start:
            found, shared = _decode(folder, part)
            replicated |= shared
            for name, rows in found.items():
                agents.setdefault(name, {}).update(enumerate(rows, part.start))
    if any(i not in rows for rows in agents.values() for i in owned):
        raise _damaged(folder, "its agents do not have the same arrays")
    chosen = {name: [rows[i] for i in owned] for name, rows in agents.items()}
    return Checkpoint(index.iteration, index.manifest, chosen, replicated)


def read_index(directory: str | Path, name: str = INDEX, *, apart: bool = False) -> Index:
    """The index of a checkpoint, without its state; of one process alone where it is ``apart``."""
    folder = Path(directory)
    try:
        with open_file(folder / name) as stream:
            content = read_bytes(stream, BYTES)
        if len(content) > BYTES:
            raise _damaged(folder, f"{name} is too large")
        index = msgspec.json.decode(content, type=Index)
    except FileNotFoundError:
        raise InputError(f"{folder} holds no checkpoint ({name} is missing)") from None
    except OSError as error:
        raise InputError(f"checkpoint {folder} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(folder, f"{name}: {cut(str(error))}") from None
    if index.format != FORMAT:
        raise InputError(
            f"{folder / name} has format {shown(index.format)}; this version reads {FORMAT}"
        )
    for part in index.parts:
        if not STATE.fullmatch(part.file):
            raise _damaged(folder, f"{name} names a file {shown(part.file)}")
    if index.crc != index.checksum():
        raise _damaged(folder, f"the checksum of {name} does not match")
    spans = [(part.start, part.stop) for part in index.parts]
    whole = [0, *(stop for _, stop in spans)] == [*(start for start, _ in spans), index.n]
    if not (whole or apart) or min(index.iteration, index.generation) < 0:
        raise _damaged(folder, f"{name} does not list agents 0..{index.n - 1} once each")
    return index


def exists(directory: str | Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return os.path.exists(Path(directory) / INDEX)


def _next_generation(folder: Path, manifest: Mapping[str, Any], before: Written | None) -> int:
    if before is None and not exists(folder):
        return 0
    index = read_index(folder) if before is None else before.index
    _check_identity(folder, index, {key: manifest.get(key) for key in IDENTITY})
    return index.generation + 1


def _agree(runtime: Runtime, generation: int) -> int:
    """Everyone learns the root's number."""
    if runtime.alone:
        return generation
    row = np.full((len(runtime.owned), 1), float(generation))
    return int(runtime._gather(row)[0, 0])


def _check_identity(folder: Path, index: Index, expected: Mapping[str, Any]) -> None:
    for key, value in expected.items():
        saved = index.manifest.get(key)
        if saved != value:
            raise InputError(
                f"checkpoint {folder} was written with {key} {shown(saved)}, this run has "
                f"{shown(value)}; "
                "choose another directory, or resume what was saved (nothing was changed)"
            )


def _decode(folder: Path, part: Part) -> tuple[Named, dict[str, AnyArray]]:
    try:
        with open_file(folder / part.file) as stream:
            content = read_bytes(stream, part.bytes)
    except OSError as error:
        raise _damaged(folder, f"{part.file}: {error.strerror}") from None
    if len(content) != part.bytes:
        raise _damaged(folder, f"{part.file} has more or fewer bytes than {shown(part.bytes)}")
    if zlib.crc32(content) != part.crc:
        raise _damaged(folder, f"the checksum of {part.file} does not match")
    try:
        return decode(content, part.stop - part.start)
    except ValueError as error:
        raise _damaged(folder, f"{part.file}: {cut(str(error))}") from None


def _damaged(folder: Path, what: str) -> InputError:
    return InputError(
        f"checkpoint {folder} is damaged: {what}; start afresh in another directory "
        "(nothing was changed)"
    )
