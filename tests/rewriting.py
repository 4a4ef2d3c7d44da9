"""Checkpoints changed on purpose, with checksums that fit again."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.storage import checkpoint

Arrays = dict[str, Any]


def rewrite(
    folder: Path, arrays: Callable[[Arrays], None], manifest: Callable[[Any], None]
) -> None:
    """Change the only state file and the manifest in place."""
    index = msgspec.json.decode((folder / checkpoint.INDEX).read_bytes(), type=checkpoint.Index)
    [part] = index.parts
    with np.load(folder / part.file, allow_pickle=False) as archive:
        held = {key: archive[key] for key in archive.files}
    arrays(held)
    stream = io.BytesIO()
    np.savez(stream, **held)
    content = stream.getvalue()
    (folder / part.file).write_bytes(content)
    manifest(index.manifest)
    changed = msgspec.structs.replace(part, bytes=len(content), crc=zlib.crc32(content))
    index = msgspec.structs.replace(index, parts=[changed])
    index = msgspec.structs.replace(index, crc=index.checksum())
    (folder / checkpoint.INDEX).write_bytes(msgspec.json.encode(index))
