"""Checkpoints of a process that keeps its own files and sees no others'.

Nobody waits for the others' files: the two slots of a folder hold the newest generation and the one
before, and a run continues from the newest that all have. Nobody can be more than one generation
behind, because no iteration ends without everybody.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ccmac.storage.checkpoint import Store
from ccmac.storage.index import INDEX, Index, Part, exists, head_file, read_slots
from ccmac.storage.states import AnyArray, encode


def save_apart(
    owned: range,
    store: Store,
    generation: int,
    iteration: int,
    manifest: Mapping[str, Any],
    agents: Mapping[str, Sequence[AnyArray]],
    replicated: Mapping[str, AnyArray],
) -> None:
    """Write one process's own part into the slot that does not hold its newest generation."""
    content = encode(agents, replicated)
    part = Part(owned.start, owned.stop, len(content), zlib.crc32(content))
    store.write(generation, store.next()[1], iteration, manifest, content, [part])


def generations(folder: Path) -> dict[int, Index]:
    """What a folder that one process keeps for itself holds: {generation: index}."""
    return read_slots(folder, apart=True) if exists(folder) else {}


def keep_only(folder: Path, index: Index | None) -> None:
    """All continue from ``index`` (None: from the beginning); another generation counts no more."""
    if index is None:
        (folder / INDEX).unlink(missing_ok=True)
    else:
        (folder / head_file(1 - index.slot)).unlink(missing_ok=True)
