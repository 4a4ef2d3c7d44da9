"""Read a possibly compressed text file, and name its content by a checksum."""

from __future__ import annotations

import bz2
import hashlib
import lzma
from pathlib import Path

from ccmac.errors import InputError

__all__ = ["SUFFIXES", "digest", "read_text"]

SUFFIXES = ("", ".txt", ".bz2", ".xz")
"""Endings under which a set may be stored; the last two are compressed."""

# Many times the largest known set; a compressed file of a few kilobytes can claim terabytes.
_LIMIT = 1 << 30


def read_text(path: Path, *, compression: str | None = None) -> bytes:
    """Return the decompressed content of ``path``.

    The compression is told by the ending of the name, or by ``compression`` (``".bz2"``, ``".xz"``
    or ``""``) for a file whose name does not show it.
    """
    ending = path.suffix if compression is None else compression
    try:
        if ending == ".bz2":
            with bz2.open(path) as packed:
                text = packed.read(_LIMIT + 1)
        elif ending == ".xz":
            with lzma.open(path) as packed_xz:
                text = packed_xz.read(_LIMIT + 1)
        else:
            with path.open("rb") as plain:
                text = plain.read(_LIMIT + 1)
    except (EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}): replace the file") from None
    except OSError as error:
        # bz2 reports bad content as an OSError without an error number.
        what = error.strerror or f"damaged content, {error}"
        raise InputError(f"cannot read {path} ({what}): replace or repair the file") from None
    if len(text) > _LIMIT:
        raise InputError(f"{path} holds more than {_LIMIT:,} bytes of text: it is not a known set")
    return text


def digest(text: bytes) -> str:
    """Return the sha256 of ``text`` without empty lines at its end.

    Copies of the sets in circulation differ by such a line, which carries no data.
    """
    end = len(text)
    while text.endswith(b"\n\n", 0, end):
        end -= 1
    return hashlib.sha256(memoryview(text)[:end]).hexdigest()
