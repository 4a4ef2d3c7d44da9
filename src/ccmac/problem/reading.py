"""Senses of rows, bounds and names as people write them, or one clear line of complaint.

A row is ``==``, ``<=`` or ``>=``. What is left after reading: an array of such texts, or None where
every row is an equation; vectors of bounds, or None where none is finite; tuples of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array, as_array, is_whole, real_vector, several
from ccmac.texts import shown, steers

EQUAL = "=="
AT_MOST = "<="
AT_LEAST = ">="
MEANT = {"=": EQUAL, "<": AT_MOST, "=<": AT_MOST, ">": AT_LEAST, "=>": AT_LEAST}
Senses = NDArray[np.str_]


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
            remedy = f"'{MEANT[text]}'" if text in list(MEANT) else "'==', '<=' or '>='"
            raise InputError(f"{where}, row {row}: {shown(text)} is no sense; write {remedy}")
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
    if not text.strip():
        raise InputError(f"{where}: {shown(value)} is no name; give a text that is not empty")
    if steers(text):
        raise InputError(f"{where}: {shown(value)} has control characters; leave them out")
    return text


def distinct(where: str, given: Iterable[str]) -> None:
    """Refuse a name that is used twice."""
    seen: dict[str, int] = {}
    for k, name in enumerate(given):
        if name in seen:
            raise InputError(
                f"{where}: the name {shown(name)} is used twice, for {seen[name]} and {k}; names "
                "must differ, change one"
            )
        seen[name] = k
