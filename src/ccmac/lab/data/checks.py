"""Compare files with the checksums on record, and say what is where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ccmac.errors import InputError
from ccmac.lab.data.places import find
from ccmac.lab.data.registry import Record
from ccmac.lab.data.svmlight import parse_svmlight
from ccmac.lab.data.text import digest, read_text

__all__ = ["Status", "check_digest", "check_rows", "digest_fault", "status", "verify"]


@dataclass(frozen=True, slots=True)
class Status:
    """One set as found on this machine.

    ``state`` is ``absent``, ``present`` (not looked into), ``verified``, ``unverified`` (there is
    no checksum on record to compare with) or ``bad``; ``detail`` explains the last two.
    """

    name: str
    rows: int
    features: int
    state: str
    path: Path | None = None
    size: int | None = None
    detail: str = ""


def digest_fault(record: Record, text: bytes) -> str | None:
    """Say how the checksum of ``text`` differs from the one on record; ``None`` if it does not."""
    found = digest(text)
    if record.sha256 is None or found == record.sha256:
        return None
    return f"sha256 {found[:12]}..., expected {record.sha256[:12]}..."


def check_digest(record: Record, text: bytes, path: Path) -> None:
    """Raise :class:`InputError` unless ``text`` is the set on record, if its checksum is known."""
    fault = digest_fault(record, text)
    if fault:
        raise InputError(f"{path} is not {record.name} ({fault}): replace or remove the file")


def status(record: Record) -> Status:
    """Say where a set is, without reading it."""
    path = find(record)
    if path is None:
        return Status(record.name, record.rows, record.features, "absent")
    size = path.stat().st_size
    return Status(record.name, record.rows, record.features, "present", path, size)


def verify(record: Record) -> Status:
    """Read a set and compare it with the record; never downloads."""
    seen = status(record)
    if seen.path is None:
        return seen
    state, detail = "verified", ""
    try:
        text = read_text(seen.path)
        check_digest(record, text, seen.path)
        if record.sha256 is None:
            state, detail = "unverified", _compare_shape(record, text, seen.path)
    except InputError as error:
        state, detail = "bad", str(error)
    return Status(seen.name, seen.rows, seen.features, state, seen.path, seen.size, detail)


def check_rows(record: Record, rows: int, path: Path) -> None:
    """Raise :class:`InputError` unless the file has the rows on record."""
    if rows != record.rows:
        raise InputError(
            f"{path} has {rows:,} rows, {record.name} has {record.rows:,}: "
            "replace the file by the complete training split"
        )


def _compare_shape(record: Record, text: bytes, path: Path) -> str:
    """Check what can be checked without a checksum; returns the caveat to print."""
    matrix, _ = parse_svmlight(text, record.features, str(path))
    check_rows(record, matrix.shape[0], path)
    return "no checksum is on record: only the number of rows and the index range were checked"
