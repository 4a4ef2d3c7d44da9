"""Data as the user gives it, turned into float64 arrays or one clear line of complaint.

Numbers, vectors and matrices first, then what people write of rows and variables: senses, bounds
and names. A row is ``==``, ``<=`` or ``>=``; None stands for equations only, and for no bound.
``where`` names the place ("agent 3, block A"; "LeastSquares, y") and opens every message.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import shown, steers

Array = NDArray[np.float64]
LARGEST = 1e50
"""Of an entry: its fourth power, which bounds of curvature form, is still a number."""
FLAG = (bool, np.bool_)
EQUAL = "=="
AT_MOST = "<="
AT_LEAST = ">="
Senses = NDArray[np.str_]


def is_sparse(value: Any) -> bool:
    """Whether ``value`` is a SciPy sparse array or matrix."""
    return bool(sp.issparse(value))


def real_matrix(where: str, value: Any, *, infinite: bool = False) -> Any:
    """A float64 ndarray or csr_array in canonical format; ``infinite`` allows +-inf, never NaN."""
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
    _check_finite(where, clean.data if is_sparse(clean) else clean, infinite=infinite)
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
    _check_finite(where, array, infinite=infinite)
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
    if steers(os.fspath(value)):
        raise InputError(f"{where}: {shown(value)} has control characters; give a path")
    return Path(value)


def as_array(where: str, value: Any, wanted: str = "entries of one kind and length") -> Any:
    """An array of anything, but not ragged."""
    try:
        # Some libraries' objects warn while they are turned into arrays; their dtype decides.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(value)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: is ragged or not numeric; give {wanted}") from None


def number(where: str, value: Any) -> float:
    """One number, finite and not beyond :data:`LARGEST`."""
    array = _real(where, value)
    if array.ndim != 0:
        raise InputError(f"{where}: has shape {array.shape}; give one number")
    if not abs(array) <= LARGEST:
        raise InputError(f"{where}: is {array}; give a number of size at most {LARGEST:g}")
    return float(array)


def nonnegative(where: str, value: Any) -> float:
    """A number that is not negative and not beyond :data:`LARGEST`."""
    found = number(where, value)
    if not found >= 0:
        raise InputError(f"{where}: is {found}; it must be at least 0")
    return found


def positive(where: str, value: Any) -> float:
    """A number above zero and not beyond :data:`LARGEST`."""
    found = number(where, value)
    if not found > 0:
        raise InputError(f"{where}: is {found}; it must be positive")
    return found


def labels(where: str, value: Any) -> Array:
    """A vector of -1 and +1."""
    if value is None:
        raise InputError(f"{where}: is missing; give one label, -1 or +1, for each row")
    array = real_vector(where, value)
    if not (np.abs(array) == 1.0).all():
        raise InputError(f"{where}: labels must be -1 or +1; map 0/1 labels with 2*y - 1")
    return array


def _real(where: str, value: Any) -> Array:
    array = as_array(where, value, "real numbers")
    _check_kind(where, array.dtype)
    with np.errstate(over="ignore"):  # what is longer than a double is infinite
        return np.asarray(array, dtype=np.float64)


def _check_kind(where: str, dtype: Any) -> None:
    if dtype.kind == "c":
        raise InputError(f"{where}: has complex entries; give real numbers")
    if dtype.kind not in "biuf":
        raise InputError(f"{where}: is not numeric (dtype {dtype}); give real numbers")


def _check_finite(where: str, entries: Array, *, infinite: bool = False) -> None:
    if infinite:
        if np.isnan(entries).any():
            raise InputError(f"{where}: has entries that are NaN; clean the data")
        entries = entries[np.isfinite(entries)]
    if not np.isfinite(entries).all():
        raise InputError(f"{where}: has entries that are NaN or infinite; clean the data")
    if entries.size and max(entries.max(), -entries.min()) > LARGEST:
        raise InputError(f"{where}: has entries beyond {LARGEST:g}; rescale the data")


# -- rows and variables ----------------------------------------------------------------------------
def senses(where: str, value: Any, count: int) -> Senses | None:
    """One sense for all ``count`` rows, or one for each; None where all are equations."""
    if value is None:
        return None
    given = as_array(where, value)
    if given.ndim == 0:
        given = np.full(count, value if isinstance(value, str) else shown(value))
    if given.ndim != 1 or len(given) != count:
        raise InputError(
            f"{where}: has {given.size} entries but there are {count} rows; "
            "give one sense for all or one for each row"
        )
    for row, text in enumerate(given.tolist()):
        if text not in (EQUAL, AT_MOST, AT_LEAST):
            remedy = "write '==', '<=' or '>='"
            raise InputError(f"{where}, row {row}: {shown(text)} is no sense; {remedy}")
    clean = np.array(given.tolist(), dtype="<U2")
    return clean if (clean != EQUAL).any() else None


def rows_of(sense: Senses | None, count: int, *, equal: bool) -> NDArray[np.intp]:
    """The rows that are equations, or those that are not."""
    if sense is None:
        return np.arange(count if equal else 0)
    return np.flatnonzero((sense == EQUAL) == equal)


def signs(sense: Senses) -> Array:
    """+1 for ``<=``, -1 for ``>=``, 0 for ``==``: the sign of a row's multiplier."""
    return np.where(sense == AT_MOST, 1.0, np.where(sense == AT_LEAST, -1.0, 0.0))


def bound(where: str, value: Any, size: int, missing: float) -> Array | None:
    """A number for all entries or one for each; None where nothing is bounded."""
    if value is None:
        return None
    given = real_vector(where, value, infinite=True)
    if np.ndim(value) == 0:
        given = np.full(size, given[0])
    if len(given) != size:
        raise InputError(
            f"{where}: has {len(given)} entries but there are {size}; "
            "give one number or one for each entry"
        )
    bad = np.flatnonzero(given == -missing)
    if bad.size:
        raise InputError(
            f"{where}: entry {bad[0]} is {given[bad[0]]:g}, which nothing satisfies; "
            f"{missing:g} means no bound"
        )
    return None if (given == missing).all() else given.copy()


def not_crossed(
    where: str, lower: Array | None, upper: Array | None, called: Sequence[str] | None = None
) -> None:
    """Refuse a lower bound above its upper one; ``where`` ends before the entry."""
    if lower is None or upper is None:
        return
    bad = np.flatnonzero(lower > upper)
    if bad.size:
        k = int(bad[0])
        name = "" if called is None else f" ({shown(called[k])})"
        raise InputError(
            f"{where}[{k}]{name}: lower bound {lower[k]:g} exceeds upper bound {upper[k]:g}; "
            "exchange or widen them"
        )


def names(where: str, value: Sequence[Any] | None, count: int) -> tuple[str, ...] | None:
    """Distinct texts, one for each of ``count`` things."""
    if value is None:
        return None
    listed = several(where, value, f"a list of {count} names")
    given = tuple(one_name(where, name) for name in listed)
    if len(given) != count:
        raise InputError(f"{where}: has {len(given)} names but there are {count} to name")
    distinct(where, given)
    return given


def one_name(where: str, value: Any) -> str:
    """A name: a text that is not empty, without control characters; numbers are written out."""
    text = str(value) if isinstance(value, str) or is_whole(value) else ""
    if not text.strip() or steers(text):
        remedy = "give a text that is not empty and has no control characters"
        raise InputError(f"{where}: {shown(value)} is no name; {remedy}")
    return text


def distinct(where: str, given: Sequence[str]) -> None:
    """Refuse a name that is used twice."""
    if len({*given}) < len(given):
        k, name = next((k, name) for k, name in enumerate(given) if name in given[:k])
        raise InputError(
            f"{where}: the name {shown(name)} is used twice, for {given.index(name)} and {k}; "
            "names must differ, change one"
        )
