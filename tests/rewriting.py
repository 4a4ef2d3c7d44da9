"""Checkpoints changed on purpose, with checksums that fit again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ccmac.storage import states
from ccmac.storage.index import INDEX, Card, head_file, read_index

Arrays = dict[str, Any]


def packed(held: Arrays, shared: Arrays) -> bytes:
    """A state with whatever is given, also what this program would not write."""
    named: dict[str, list[Any]] = {}
    for key, row in held.items():
        named.setdefault(key.partition("/")[2], []).append(row)
    pieces: list[bytes] = []

    def entry(name: str, rows: list[Any]) -> states.StoredArray:
        kind = max((row.dtype for row in rows), key=lambda kind: kind != np.float64)
        pieces.extend(row.astype(kind).tobytes() for row in rows)
        return states.StoredArray(name, kind.str, [list(row.shape) for row in rows])

    header = states.Header(
        [entry(name, rows) for name, rows in named.items()],
        [entry(name, [row]) for name, row in shared.items()],
    )
    return msgspec.json.encode(header) + b"\n" + b"".join(pieces)


class Stored:
    """The newest generation of a folder: what it says, to be changed, and the arrays behind it.

    ``run`` is checkpoint.json, ``head`` the head of the slot, ``part`` what it says of its arrays.
    """

    def __init__(self, folder: Path) -> None:
        index = read_index(folder)
        self.folder, self.path = folder, folder / head_file(index.slot)
        self.older = folder / head_file(1 - index.slot)
        self.run: Any = msgspec.to_builtins(index.run)
        self.head: Any = msgspec.to_builtins(index.head)
        [self.part] = self.head["parts"]
        self.content = self.path.read_bytes()[index.begin :][: self.part["bytes"]]

    def write(self, line: bytes | None = None) -> None:
        """Everything, with checksums that fit; ``line`` in the place of the head, if given."""
        self.write_run(msgspec.json.encode(self.run))
        if line is None:
            self.part |= {"bytes": len(self.content), "crc": zlib.crc32(self.content)}
            if isinstance(self.head, dict) and isinstance(self.head.get("run"), int):
                self.head["run"] = self.run.get("crc", 0)
            line = msgspec.json.encode(self.head)
        self.path.write_bytes(b"%08x %s\n" % (zlib.crc32(line), line) + self.content)

    def write_run(self, text: bytes) -> None:
        """``text`` as checkpoint.json, with its checksum where it still is one."""
        try:
            run = msgspec.json.decode(text, type=Card)
            run = msgspec.structs.replace(run, crc=run.checksum())
            text, self.run = msgspec.json.encode(run), msgspec.to_builtins(run)
        except (msgspec.DecodeError, ValueError, RecursionError):
            pass
        (self.folder / INDEX).write_bytes(text)

    def arrays(self) -> Arrays:
        """{agent/name: array}, without what is shared."""
        named, _ = states.decode(self.content, self.part["stop"] - self.part["start"])
        return {f"{i}/{name}": row for name, rows in named.items() for i, row in enumerate(rows)}

    def shared(self) -> Arrays:
        return states.decode(self.content, self.part["stop"] - self.part["start"])[1]


def rewrite(
    folder: Path, arrays: Callable[[Arrays], None], manifest: Callable[[Any], None]
) -> None:
    """Change the newest state and its manifest in place; the older slot goes."""
    stored = Stored(folder)
    held, shared = stored.arrays(), stored.shared()
    arrays(held)
    stored.content = packed(held, shared)
    told = stored.head["manifest"] | (fixed := stored.run["manifest"])
    manifest(told)
    stored.run["manifest"] = {key: told.pop(key, None) for key in fixed}
    stored.head["manifest"] = told
    stored.write()
    stored.older.unlink(missing_ok=True)
