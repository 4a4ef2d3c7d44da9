"""Checkpoints changed on purpose, with checksums that fit again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.storage import states
from ccmac.storage.index import INDEX, Index

Arrays = dict[str, Any]


def packed(held: Arrays) -> bytes:
    """A file of state with whatever is given, also what this program would not write."""
    named: dict[str, list[Any]] = {}
    for key, row in held.items():
        named.setdefault(key.partition("/")[2], []).append(row)
    entries, pieces = [], []
    for name, rows in named.items():
        kind = max((row.dtype for row in rows), key=lambda kind: kind != np.float64)
        pieces += [row.astype(kind).tobytes() for row in rows]
        entries.append(states.StoredArray(name, kind.str, [list(row.shape) for row in rows]))
    return msgspec.json.encode(states.Header(entries, [])) + b"\n" + b"".join(pieces)


def rewrite(
    folder: Path, arrays: Callable[[Arrays], None], manifest: Callable[[Any], None]
) -> None:
    """Change the only state file and the manifest in place."""
    index = msgspec.json.decode((folder / INDEX).read_bytes(), type=Index)
    [part] = index.parts
    named, _ = states.decode((folder / part.file).read_bytes(), part.stop - part.start)
    held = {f"{i}/{name}": row for name, rows in named.items() for i, row in enumerate(rows)}
    arrays(held)
    content = packed(held)
    (folder / part.file).write_bytes(content)
    manifest(index.manifest)
    changed = msgspec.structs.replace(part, bytes=len(content), crc=zlib.crc32(content))
    index = msgspec.structs.replace(index, parts=[changed])
    index = msgspec.structs.replace(index, crc=index.checksum())
    (folder / INDEX).write_bytes(msgspec.json.encode(index))
