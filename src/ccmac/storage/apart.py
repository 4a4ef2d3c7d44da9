"""Checkpoints of a process that keeps its own files and sees no others'.

Nobody waits for the others' files: a folder keeps the newest generation and, in ``previous.json``,
the one before, and a run continues from the newest that all have. Nobody can be more than one
generation behind, because no iteration ends without everybody.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ccmac.storage.checkpoint import tidy
from ccmac.storage.files import flushed_write
from ccmac.storage.index import FORMAT, INDEX, Index, Part, exists, read_index, write_index
from ccmac.storage.states import AnyArray, encode

PREVIOUS = "previous.json"


def save_apart(
    owned: range, n: int, folder: Path, generation: int, iteration: int,
    manifest: Mapping[str, Any], agents: Mapping[str, Sequence[AnyArray]],
) -> None:  # fmt: skip
    """Write one process's own part, an index of its own with it; the generation before stays."""
    content = encode(agents, {})
    name = f"state-{generation:06d}-{owned.start:05d}.bin"
    flushed_write(folder / name, content)
    if exists(folder):
        (folder / INDEX).replace(folder / PREVIOUS)
    part = Part(name, owned.start, owned.stop, len(content), zlib.crc32(content))
    write_index(folder, Index(FORMAT, generation, iteration, n, dict(manifest), [part]))
    tidy(folder, *generations(folder).values())


def generations(folder: Path) -> dict[int, Index]:
    """What a folder that one process keeps for itself holds: {generation: index}."""
    names = [name for name in (PREVIOUS, INDEX) if (folder / name).exists()]
    return {k.generation: k for k in (read_index(folder, name, apart=True) for name in names)}


def keep_only(folder: Path, index: Index | None) -> None:
    """All continue from ``index`` (None: from the beginning); another generation counts no more."""
    if index is None:
        for name in (INDEX, PREVIOUS):
            (folder / name).unlink(missing_ok=True)
        return
    write_index(folder, index)
    (folder / PREVIOUS).unlink(missing_ok=True)
