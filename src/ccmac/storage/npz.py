"""Archives of plain arrays from anybody: nothing is unpickled, nothing grows beyond its file."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ccmac.texts import MEGABYTE, shown

LONG = 256 * MEGABYTE
ODD = (tokenize.TokenError, AttributeError, IndexError)  # numpy's, of headers that are none
_HEADERS: dict[Any, Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def refuse_endless(stream: IO[bytes]) -> None:
    """ValueError for a long file that does not end like an archive: it may take hours to read."""
    if stream.seek(0, os.SEEK_END) > LONG and not zipfile.is_zipfile(stream):
        raise ValueError("is no archive")
    stream.seek(0)


def read_npz(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` that ``numpy.savez`` wrote; ValueError for anything else.

    Members must be stored, not compressed, beside each other and hold as many bytes as their header
    declares: what is allocated is bounded by what is there.
    """
    found: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > stream.seek(0, os.SEEK_END):
                raise ValueError("members lie over each other")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in found or name == member.filename:
                    raise ValueError(f"member {shown(member.filename)} is double or no array")
                if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                    raise ValueError(f"member {shown(name)} is compressed or encrypted")
                with archive.open(member) as content:
                    found[name] = _array(content, name, member.file_size)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise ValueError(str(error)) from None
    except (TypeError, SyntaxError, ArithmeticError, RuntimeError, MemoryError, *ODD) as error:
        raise ValueError(type(error).__name__) from None
    return found


def _array(content: IO[bytes], name: str, size: int) -> NDArray[Any]:
    version = np.lib.format.read_magic(content)
    if version not in _HEADERS:
        raise ValueError(f"member {shown(name)} has format {version}")
    shape, fortran, dtype = _HEADERS[version](content)
    if dtype.hasobject or any(length < 0 for length in shape):
        raise ValueError(f"member {shown(name)} is no plain array")
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize != size - content.tell():
        raise ValueError(f"member {shown(name)} declares another size than it has")
    data = content.read()
    if len(data) != count * dtype.itemsize:
        raise ValueError(f"member {shown(name)} is cut short")
    array = np.frombuffer(data, dtype=dtype).copy() if count else np.zeros(0, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
