"""Archives of plain arrays: nothing is unpickled, and nothing grows beyond its file."""

from __future__ import annotations

import hashlib
import io
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import open_file


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write plain arrays; return the SHA-256 of the file."""
    members: dict[str, Any] = dict(arrays)
    np.savez(path, **members)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_file(where: str, path: Path, sha256: str | None) -> dict[str, NDArray[Any]]:
    """The arrays of a file that has the checksum; InputError where it is anything else."""
    try:
        with open_file(path) as stream:
            if sha256 is not None:
                if hashlib.file_digest(stream, "sha256").hexdigest() != sha256.lower():
                    raise InputError(
                        f"{where}: the content does not match its checksum (changed or cut "
                        "short); restore the file or write it again"
                    )
                stream.seek(0)
            return read_npz(stream)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{where}: the file is missing; restore it or write it again") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise InputError(f"{where}: is not a file of plain arrays; write it again") from None


def read_npz(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` that ``numpy.savez`` wrote; ValueError for anything else.

    Sizes that members declare must be those of the file: what is allocated is bounded by it.
    """
    size = stream.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > size:
                raise ValueError("members declare more bytes than the file has")
            found = {m.filename.removesuffix(".npy"): _array(archive.read(m)) for m in members}
    except Exception as error:  # zipfile and numpy raise nearly anything on damaged files
        raise ValueError(str(error) or type(error).__name__) from None
    if len(found) < len(members):
        raise ValueError("a member is there twice")
    return found


def _array(content: bytes) -> NDArray[Any]:
    stream = io.BytesIO(content)
    old = np.lib.format.read_magic(stream) == (1, 0)
    header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("a member declares another size than it has")
    stream.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
