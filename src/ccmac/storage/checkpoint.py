"""Checkpoints: two slots that take turns, so that one is whole at any moment.

    DIR/state-0.bin         a generation: its head, then the arrays of the process that wrote it
    DIR/state-0-00004.bin   the arrays of the process that starts at agent 4
    DIR/state-1.bin, ...    the generation before or after
    DIR/trace-000000.bin    the history of the run, which grows (ccmac.storage.rows)
    DIR/checkpoint.json     whose run it is; written once, after the first state

A save writes the older slot over, in place: other processes first, the head last, each on disk
before the next begins. A crash damages the slot that was being written and no other. No file is
made, renamed or removed, which costs several times what writing does, and a disk that is full takes
nothing away. Files carry agent indices, so any split of the agents over processes can read what
any other has written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.runtime.base import Runtime
from ccmac.storage.files import atomic_write, flushed_write
from ccmac.storage.holding import hold, tidy
from ccmac.storage.index import (
    INDEX,
    Card,
    Head,
    Index,
    Part,
    damaged,
    encode_head,
    encode_run,
    exists,
    head_file,
    part_file,
    read_index,
    read_run,
    read_slots,
)
from ccmac.storage.states import AnyArray, Named, decode, encode
from ccmac.texts import cut, open_file, read_bytes, shown

# A checkpoint that differs in one of these belongs to something else and is never overwritten.
IDENTITY = ("problem", "version")


@dataclass(frozen=True)
class Checkpoint:
    """State of the agents asked for: ``agents[name][k]`` is the array of the k-th of them."""

    iteration: int
    manifest: dict[str, Any]
    agents: dict[str, list[AnyArray]]
    replicated: dict[str, AnyArray]


@dataclass(frozen=True)
class Kept:
    """The run of a folder, how the system knows its file, and the generations it holds."""

    run: Card
    mark: tuple[int, ...]
    newest: Index
    older: Index | None = None

    @property
    def here(self) -> tuple[Index, ...]:
        return (self.newest,) if self.older is None else (self.newest, self.older)


class Store:
    """A folder that checkpoints of one run are written to.

    ``fixed`` is the part of every manifest that never changes; it names the ``problem`` and
    ``version`` that the folder belongs to.
    """

    def __init__(self, folder: str | Path, n: int, fixed: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.fixed = fixed
        self._run, self._content = encode_run(n, fixed)
        self._kept: Kept | None = None
        self._held = contextlib.ExitStack()

    def hold(self) -> None:
        """Have the folder until :meth:`release`; InputError where another run has it."""
        with contextlib.ExitStack() as held:
            hold(self.folder, held)
            self._held = held.pop_all()

    def release(self) -> None:
        """The folder is anybody's again."""
        self._held.close()

    def next(self) -> tuple[int, int]:
        """(generation, slot) of the next save; InputError where the folder is another run's.

        The folder is made where it is missing.
        """
        kept = self._kept
        if kept is None or kept.mark != _mark(self.folder):
            kept = self._kept = self._look()
        if kept is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            return 0, 0
        return kept.newest.generation + 1, 1 - kept.newest.slot

    def _look(self) -> Kept | None:
        """What the folder holds already."""
        if not exists(self.folder):
            return None
        run = read_run(self.folder)
        _check_identity(self.folder, run.manifest, {key: self.fixed.get(key) for key in IDENTITY})
        found = sorted(read_slots(self.folder, apart=True).values(), key=lambda i: -i.generation)
        return Kept(run, _mark(self.folder), *found)

    def write(
        self,
        generation: int,
        slot: int,
        iteration: int,
        manifest: Mapping[str, Any],
        content: bytes,
        parts: list[Part],
    ) -> None:
        """Make a generation the one that counts; the others' parts are on disk."""
        kept = self._kept
        run = self._run if kept is None else kept.run
        head = Head(run.crc, generation, iteration, dict(manifest), parts)
        line = encode_head(head)
        flushed_write(f"{self.folder}/{head_file(slot)}", line + content)
        written = Index(run, head, slot, len(line))
        if kept is None:
            tidy(self.folder, written)  # nobody's slot may look newer than this one
            atomic_write(self.folder / INDEX, self._content)
            self._kept = Kept(run, _mark(self.folder), written)
            return
        self._kept = Kept(run, kept.mark, written, kept.newest)
        before = {name for index in kept.here for name in index.files()}
        for name in before.difference(*(index.files() for index in self._kept.here)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.folder}/{name}")


def _mark(folder: Path) -> tuple[int, ...]:
    """Of the file that says whose run it is; another one where that was written again."""
    try:
        found = os.stat(f"{folder}/{INDEX}")
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def save(
    runtime: Runtime,
    store: Store,
    iteration: int,
    manifest: Mapping[str, Any],
    *,
    agents: Mapping[str, Sequence[AnyArray]],
    replicated: Mapping[str, AnyArray],
    broken: OSError | None = None,
) -> None:
    """Write a checkpoint; collective, with two small gathers that the ledger does not count.

    ``manifest`` is JSON-like: what changes from save to save. ``agents`` holds one array per owned
    agent, ``replicated`` what is the same in every process. Where one process cannot write (or
    comes with ``broken``) all raise OSError, and the generation before stays.
    """
    told = 0, 0
    try:
        told = store.next() if runtime.is_root else told
    except OSError as error:
        broken = broken or error
    generation, slot = _agree(runtime, told)
    content = encode(agents, replicated)
    if not runtime.is_root:
        try:
            flushed_write(store.folder / part_file(slot, runtime.owned.start), content)
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
    if runtime.is_root:
        parts = [Part(*row) for row in sorted({tuple(int(v) for v in row) for row in known})]
        store.write(generation, slot, iteration, manifest, content, parts)


def load(
    directory: str | Path,
    owned: range,
    expected: Mapping[str, Any] | None = None,
    index: Index | None = None,
) -> Checkpoint:
    """Read the state of the agents ``owned``; every entry of ``expected`` must be as saved.

    Of the generation of ``index``, if one is given.
    """
    folder = Path(directory)
    index = read_index(folder) if index is None else index
    _check_identity(folder, index.manifest, expected or {})
    if owned.stop > index.run.n:
        raise InputError(
            f"checkpoint {folder} holds {index.run.n} agents, not agent {owned.stop - 1}: "
            "resume the problem it was written for"
        )
    agents: dict[str, dict[int, AnyArray]] = {}
    replicated: dict[str, AnyArray] = {}
    for part in index.parts:
        if part == index.parts[0] or (part.start < owned.stop and part.stop > owned.start):
            found, shared = _decode(folder, index, part)
            replicated = shared | replicated
            for name, rows in found.items():
                agents.setdefault(name, {}).update(enumerate(rows, part.start))
    if any(i not in rows for rows in agents.values() for i in owned):
        raise damaged(folder, "its agents do not have the same arrays")
    chosen = {name: [rows[i] for i in owned] for name, rows in agents.items()}
    return Checkpoint(index.iteration, index.manifest, chosen, replicated)


def _agree(runtime: Runtime, told: tuple[int, int]) -> tuple[int, int]:
    """Everyone learns the root's numbers."""
    if runtime.alone:
        return told
    rows = np.tile(np.array([told], dtype=float), (len(runtime.owned), 1))
    generation, slot = runtime._gather(rows)[0]
    return int(generation), int(slot)


def _check_identity(folder: Path, manifest: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for key, value in expected.items():
        saved = manifest.get(key)
        if saved != value:
            raise InputError(
                f"checkpoint {folder} was written with {key} {shown(saved)}, this run has "
                f"{shown(value)}; "
                "choose another directory, or resume what was saved (nothing was changed)"
            )


def _decode(folder: Path, index: Index, part: Part) -> tuple[Named, dict[str, AnyArray]]:
    name, begin = index.place(part)
    try:
        with open_file(folder / name) as stream:
            stream.seek(begin)
            content = read_bytes(stream, part.bytes)[: max(part.bytes, 0)]
    except OSError as error:
        raise damaged(folder, f"{name}: {error.strerror}") from None
    if len(content) != part.bytes:
        raise damaged(folder, f"{name} has fewer bytes than {shown(part.bytes)}")
    if zlib.crc32(content) != part.crc:
        raise damaged(folder, f"the checksum of {name} does not match")
    try:
        return decode(content, part.stop - part.start)
    except ValueError as error:
        raise damaged(folder, f"{name}: {cut(str(error))}") from None
