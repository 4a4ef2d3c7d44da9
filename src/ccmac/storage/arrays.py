"""Named dense and sparse arrays in one ``.npz`` file, written and read without pickle."""

from __future__ import annotations

import hashlib
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.storage.npz import read_npz

CSR_PARTS = ("data", "indices", "indptr", "shape")


class ArraySink:
    """Collects arrays under names; a sparse array becomes its four CSR parts."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def put(self, name: str, value: Any) -> None:
        """Keep a dense or sparse array."""
        if not is_sparse(value):
            self.arrays[name] = np.asarray(value, order="C")
            return
        csr = sp.csr_array(value)
        for part in CSR_PARTS:
            self.arrays[f"{name}.{part}"] = np.asarray(getattr(csr, part))

    def write(self, path: Path) -> str:
        """Write the file; return its SHA-256."""
        members: dict[str, Any] = self.arrays
        np.savez(path, **members)  # plain numbers and text: nothing that would need pickle
        return checksum(path)


class ArraySource:
    """The arrays of one file, fully read and checked against the file's checksum."""

    def __init__(self, where: str, path: Path, sha256: str) -> None:
        self.where = where
        try:
            with path.open("rb") as stream:
                _check(where, stream, sha256)
                self.arrays = _arrays(where, stream)
        except FileNotFoundError:
            raise InputError(f"{where}: the file is missing; restore it or save again") from None
        except OSError as error:
            raise InputError(f"{where}: cannot be read ({type(error).__name__})") from None

    def has(self, name: str) -> bool:
        """Whether a dense or sparse array of that name is there."""
        return name in self.arrays or f"{name}.indptr" in self.arrays

    def take(self, name: str, *, sparse: bool | None = None) -> Any:
        """The array ``name``; ``sparse`` None takes whichever form is there."""
        if sparse is None:
            sparse = f"{name}.indptr" in self.arrays
        if not sparse:
            if name not in self.arrays:
                raise InputError(f"{self.where}, block {name}: is missing; save the problem again")
            return self.arrays[name]
        missing = [part for part in CSR_PARTS if f"{name}.{part}" not in self.arrays]
        if missing:
            raise InputError(
                f"{self.where}, block {name}: lacks {', '.join(missing)}; save the problem again"
            )
        return self._csr(name, *(self.arrays[f"{name}.{part}"] for part in CSR_PARTS))

    def _csr(self, name: str, data: Any, indices: Any, indptr: Any, shape: Any) -> sp.csr_array:
        """Every index is checked: a product with a bad one would read foreign memory."""
        try:
            if shape.shape != (2,) or any(
                a.dtype.kind not in "iu" for a in (indices, indptr, shape)
            ):
                raise ValueError
            matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
            matrix.check_format(full_check=True)
        except (TypeError, ValueError, IndexError):
            raise InputError(
                f"{self.where}, block {name}: is not a valid sparse matrix; save the problem again"
            ) from None
        return matrix


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check(where: str, stream: BufferedReader, sha256: str) -> None:
    """Compare the checksum, and go back to the beginning: what was hashed is what is read."""
    if hashlib.file_digest(stream, "sha256").hexdigest() != sha256.lower():
        raise InputError(
            f"{where}: the content does not match its checksum (changed or cut short); "
            "restore it or save the problem again"
        )
    stream.seek(0)


def _arrays(where: str, stream: BufferedReader) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(stream)
    except ValueError:
        raise InputError(
            f"{where}: is not a file of plain arrays; save the problem again"
        ) from None
