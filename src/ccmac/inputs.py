"""Data as the user gives it, turned into float64 arrays or one clear line of complaint.

``where`` names the place ("agent 3, block A"; "LeastSquares, y") and opens every message.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import shown

Array = NDArray[np.float64]
LARGEST = 1e50
"""Of an entry: its fourth power, which bounds of curvature form, is still a number."""
FLAG = (bool, np.bool_)


def is_sparse(value: Any) -> bool:
    """Whether ``value`` is a SciPy sparse array or matrix."""
    return bool(sp.issparse(value))


def real_matrix(where: str, value: Any) -> Any:
    """A float64 ndarray or csr_array in canonical format; finite entries, two dimensions."""
    if is_sparse(value):
        _check_kind(where, value.dtype)
        clean: Any = sp.csr_array(value, dtype=np.float64)
    else:
        clean = _real(where, value)
    if clean.ndim != 2:
        raise InputError(f"{where}: has {clean.ndim} dimension(s); a matrix has two")
    if is_sparse(clean) and not clean.has_canonical_format:
        clean = clean.copy()  # the caller's own arrays are never reordered
        clean.sum_duplicates()
    _check_finite(where, clean.data if is_sparse(clean) else clean)
    return clean


def matrix_or_operator(where: str, value: Any) -> Any:
    """A clean matrix (:func:`real_matrix`), or an operator with matvec, rmatvec and a shape."""
    if is_sparse(value) or not (hasattr(value, "matvec") and hasattr(value, "rmatvec")):
        return real_matrix(where, value)
    shape: Any = getattr(value, "shape", None)
    sized = isinstance(shape, tuple | list) and len(shape) == 2
    if not sized or not all(is_whole(size) and size >= 0 for size in shape):
        raise InputError(f"{where}: the operator has no shape (rows, columns); give it one")
    return value


def real_vector(where: str, value: Any, *, infinite: bool = False) -> Array:
    """A float64 vector (a number counts as one entry); ``infinite`` allows +-inf, never NaN."""
    array = _real(where, value)
    if array.ndim == 0:
        array = array[None]
    if array.ndim != 1:
        raise InputError(f"{where}: has shape {array.shape}; a vector has one dimension")
    if infinite and np.isnan(array).any():
        raise InputError(f"{where}: has entries that are NaN; clean the data")
    _check_finite(where, array[np.isfinite(array)] if infinite else array)
    return array


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number; True, 2.0 and spans of time (NumPy's are) are none."""
    other = isinstance(value, bool | np.timedelta64)
    return isinstance(value, int | np.integer) and not other


def whole(where: str, value: Any, least: int = 0) -> int:
    """A whole number, at least ``least``; True and 2.0 are none."""
    if not is_whole(value) or value < least:
        raise InputError(f"{where} = {shown(value)} must be a whole number >= {least}")
    return int(value)


def index(where: str, value: Any, count: int) -> int:
    """One of ``count`` things by its number 0, 1, ...; True and -1 are none."""
    if not is_whole(value) or not 0 <= value < count:
        raise InputError(f"{where} {shown(value)} is none of 0..{count - 1}; give such a number")
    return int(value)


def of_kind(where: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> None:
    """Refuse what is none of ``kinds``; ``expected`` says it in words."""
    if not isinstance(value, kinds):
        raise InputError(f"{where}: expected {expected}, got {type(value).__name__}")


def several(where: str, value: Any, expected: str) -> list[Any]:
    """The entries of a list or whatever can be gone through; a text or a number has none."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return list(value)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: is {shown(value)}; give {expected}") from None


def text(where: str, value: Any) -> str:
    """A text."""
    of_kind(where, value, str, "a text")
    return str(value)


def folder(where: str, value: Any) -> Path:
    """A path."""
    of_kind(where, value, (str, os.PathLike), "a path")
    if len(str(value).splitlines()) > 1:
        raise InputError(f"{where}: {shown(value)} has several lines; give a path")
    try:
        if b"\0" in os.fsencode(value):
            raise ValueError
    except ValueError:
        raise InputError(f"{where}: {shown(value)}: no file has such a name; give a path") from None
    return Path(value)


def as_array(where: str, value: Any) -> NDArray[Any]:
    """An array of anything, but not ragged."""
    try:
        return np.asarray(value)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: is ragged; give entries of one kind and length") from None


def number(where: str, value: Any) -> float:
    """One number, finite and not beyond :data:`LARGEST`."""
    found = _number(where, value)
    _check_finite(where, np.asarray(found))
    return found


def nonnegative(where: str, value: Any) -> float:
    """A number that is not negative and not beyond :data:`LARGEST`."""
    number = _number(where, value)
    if not 0 <= number <= LARGEST:
        raise InputError(f"{where}: is {number}; it must be at least 0 and at most {LARGEST:g}")
    return number


def positive(where: str, value: Any) -> float:
    """A number above zero and not beyond :data:`LARGEST`."""
    number = _number(where, value)
    if not 0 < number <= LARGEST:
        raise InputError(f"{where}: is {number}; it must be positive and at most {LARGEST:g}")
    return number


def labels(where: str, value: Any) -> Array:
    """A vector of -1 and +1."""
    if value is None:
        raise InputError(f"{where}: is missing; give one label, -1 or +1, for each row")
    array = real_vector(where, value)
    if not (np.abs(array) == 1.0).all():
        raise InputError(f"{where}: labels must be -1 or +1; map 0/1 labels with 2*y - 1")
    return array


def _number(where: str, value: Any) -> float:
    array = _real(where, value)
    if array.ndim != 0:
        raise InputError(f"{where}: has shape {array.shape}; give one number")
    return float(array)


def _real(where: str, value: Any) -> Array:
    try:
        # Some libraries' objects warn while they are turned into arrays; the dtype check below
        # decides, not the warning.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(value)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: is ragged or not numeric; give real numbers") from None
    _check_kind(where, array.dtype)
    with np.errstate(over="ignore"):  # what is longer than a double is infinite
        return np.asarray(array, dtype=np.float64)


def _check_kind(where: str, dtype: Any) -> None:
    if dtype.kind == "c":
        raise InputError(f"{where}: has complex entries; give real numbers")
    if dtype.kind not in "biuf":
        raise InputError(f"{where}: is not numeric (dtype {dtype}); give real numbers")


def _check_finite(where: str, entries: Array) -> None:
    if not np.isfinite(entries).all():
        raise InputError(f"{where}: has entries that are NaN or infinite; clean the data")
    if entries.size and max(entries.max(), -entries.min()) > LARGEST:
        raise InputError(f"{where}: has entries beyond {LARGEST:g}; rescale the data")
