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

import contextlib
import errno
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.runtime.base import Runtime
from ccmac.storage.files import atomic_write, flushed_write, fresh
from ccmac.storage.index import (
    FORMAT,
    STATE,
    Index,
    Part,
    Written,
    damaged,
    exists,
    files_of,
    here,
    read_index,
    write_index,
)  # fmt: skip
from ccmac.storage.rows import NAME as TRACE
from ccmac.storage.states import AnyArray, Named, decode, encode
from ccmac.texts import cut, open_file, read_bytes, shown

# What atomic_write leaves of a run that is killed while it writes.
HALF = re.compile(r"\.(state-\d{6,}-\d{5,}|trace-\d{6,}|checkpoint|probe)\.\w{8}\.(npz|bin|json)")
# A checkpoint that differs in one of these belongs to something else and is never overwritten.
IDENTITY = ("problem", "version")


@dataclass(frozen=True)
class Checkpoint:
    """State of the agents asked for: ``agents[name][k]`` is the array of the k-th of them."""

    iteration: int
    manifest: dict[str, Any]
    agents: dict[str, list[AnyArray]]
    replicated: dict[str, AnyArray]


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
    if before is not None and not here(folder, before):
        before = None
    generation = _agree(
        runtime, _next_generation(folder, manifest, before) if runtime.is_root else 0
    )
    content = encode(agents, replicated)
    name = f"state-{generation:06d}-{runtime.owned.start:05d}.bin"
    try:
        flushed_write(f"{folder}/{name}", content)
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
    written = write_index(
        folder, Index(FORMAT, generation, iteration, runtime.n, dict(manifest), parts)
    )
    if before is None:
        tidy(folder, written.index)
    else:
        for file in files_of(before.index) - files_of(written.index):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{file}")
    return written


def tidy(folder: Path, *indices: Index) -> None:
    """Remove files of this program's making that no index names."""
    keep = {file for index in indices for file in files_of(index)}
    for file in folder.iterdir():
        name, made = file.name, (STATE, TRACE, HALF)
        if name not in keep and any(pattern.fullmatch(name) for pattern in made):
            file.unlink(missing_ok=True)


def ready(folder: Path) -> None:
    """Try to write there; one line where that fails. The first state makes the folder."""
    try:
        with fresh(folder, keep=False):
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
        raise damaged(folder, "its agents do not have the same arrays")
    chosen = {name: [rows[i] for i in owned] for name, rows in agents.items()}
    return Checkpoint(index.iteration, index.manifest, chosen, replicated)


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
        raise damaged(folder, f"{part.file}: {error.strerror}") from None
    if len(content) != part.bytes:
        raise damaged(folder, f"{part.file} has more or fewer bytes than {shown(part.bytes)}")
    if zlib.crc32(content) != part.crc:
        raise damaged(folder, f"the checksum of {part.file} does not match")
    try:
        return decode(content, part.stop - part.start)
    except ValueError as error:
        raise damaged(folder, f"{part.file}: {cut(str(error))}") from None
