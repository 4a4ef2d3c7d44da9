"""The parties' tables as the user has them, turned into named columns of numbers.

A party's table is a DataFrame, an array or a sparse matrix. X is a mapping or a list of such
tables, or one table whose columns ``parties`` deals out: a number of contiguous parts, lists of
column names or places, or a mapping of such lists by the parties' names. Every complaint names the
party and the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.texts import nearest, shown

LISTED = 5  # names that a message repeats


@dataclass(frozen=True)
class PartyTable:
    """One party's columns; ``keys`` name the rows (None: rows count by their place)."""

    party: str
    X: Any  # float64 ndarray or csr_array
    columns: tuple[Any, ...]
    keys: NDArray[Any] | None = None
    named: bool = False  # the columns have names of their own

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def taken(self, places: NDArray[np.int64]) -> PartyTable:
        """The rows at ``places``, in that order."""
        keys = None if self.keys is None else self.keys[places]
        return PartyTable(self.party, self.X[places], self.columns, keys, self.named)


def read_tables(X: Any, parties: Any = None, key: str | None = None) -> list[PartyTable]:
    """One :class:`PartyTable` for each party, in the order given."""
    if _is_mapping(X):
        names = [str(name) for name in X]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"vfl: party {twice!r}: is there twice; give each a name of its own")
        tables = [_table(str(name), table, key) for name, table in X.items()]
    elif _is_list_of_tables(X):
        tables = [_table(str(i), table, key) for i, table in enumerate(X)]
    else:
        return _dealt(_table("X", X, key), parties)
    if parties is not None:
        raise InputError("vfl: parties= deals out one table, but X holds the parties' own tables")
    if not tables:
        raise InputError("vfl: X holds no table; give one for each party")
    return tables


def is_one_table(X: Any) -> bool:
    """Whether X is one table rather than the parties' own."""
    return not _is_mapping(X) and not _is_list_of_tables(X)


def _is_mapping(X: Any) -> bool:
    """Tables by the parties' names (some sparse matrices are mappings of their own)."""
    return isinstance(X, Mapping) and not is_sparse(X)


def _is_list_of_tables(X: Any) -> bool:
    """A list or tuple of two-dimensional things; a list of lists of numbers is one table."""
    return isinstance(X, list | tuple) and any(
        is_sparse(t) or hasattr(t, "columns") or getattr(t, "ndim", 0) == 2 for t in X
    )


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a pandas DataFrame (or acts as one)."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def _table(party: str, value: Any, key: str | None) -> PartyTable:
    where = _where(party)
    if is_frame(value):
        return _from_frame(party, value, key)
    if key is not None:
        raise InputError(f"{where}: has no column {shown(key)}; a key column needs a DataFrame")
    if is_sparse(value):
        if value.dtype.kind not in "biuf":
            raise InputError(f"{where}: holds {value.dtype}, not real numbers; encode it first")
        X: Any = sp.csr_array(value, dtype=np.float64)
    else:
        X = _numbers(where, value)
    if X.ndim != 2:
        hint = "Reshape your data: a table has rows and columns"
        raise InputError(f"{where}: has {X.ndim} dimension(s). {hint}")
    columns = tuple(range(X.shape[1]))
    return _checked(PartyTable(party, X, columns))


def _where(party: str) -> str:
    return "vfl" if party == "X" else f"vfl: party {shown(party)}"


def _numbers(where: str, value: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{where}: has rows of different lengths; give a table") from None
    if array.dtype.kind == "c":
        raise InputError(f"{where}: Complex data not supported; give real numbers")
    if array.dtype.kind not in "biuf":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            for column in range(array.shape[1]) if array.ndim == 2 else ():
                _column(f"{where}, column {column}", array[:, column])
            raise InputError(f"{where}: is not numeric ({array.dtype}); encode it first") from None
    return np.asarray(array, dtype=np.float64)


def _from_frame(party: str, frame: Any, key: str | None) -> PartyTable:
    where = _where(party)
    if key is not None:
        if key not in frame.columns:
            hint = nearest(str(key), map(str, frame.columns))
            raise InputError(f"{where}: has no key column {shown(key)}; {hint}")
        frame = frame.set_index(key)
    names = list(frame.columns)
    twice = sorted(str(c) for c in set(names) if names.count(c) > 1)
    if twice:
        raise InputError(f"{where}, column {shown(twice[0])}: is there twice; rename or drop one")
    keys = np.asarray(frame.index)
    parts = [_column(f"{where}, column {shown(c)}", frame[c]) for c in names]
    X = np.column_stack(parts) if parts else np.zeros((len(frame), 0))
    return _checked(PartyTable(party, X, tuple(names), keys, named=True))


def _column(where: str, column: Any) -> NDArray[np.float64]:
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind in "mM":
        raise InputError(f"{where}: holds dates or times; turn them into numbers first")
    if values.dtype.kind == "c":
        raise InputError(f"{where}: Complex data not supported; give real numbers")
    try:
        if any(isinstance(v, str) for v in values):
            raise ValueError
        return np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise InputError(f"{where}: holds a whole number that no float can hold") from None
    except (TypeError, ValueError):
        first = next((v for v in values if not isinstance(v, int | float)), values[0])
        raise InputError(
            f"{where}: holds {shown(first)}, which is no number; encode the column as numbers first"
        ) from None


def _checked(table: PartyTable) -> PartyTable:
    """Something is there, and all of it is finite."""
    where, X = _where(table.party), table.X
    if X.shape[0] == 0:
        raise InputError(f"{where}: Found array with 0 sample(s), a minimum of 1 is required")
    if X.shape[1] == 0:
        raise InputError(
            f"{where}: has no columns: 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
            "required; leave the party out"
        )
    entries = X.data if is_sparse(X) else X
    if not np.isfinite(entries).all():
        coo = sp.coo_array(X) if is_sparse(X) else None
        bad = ~np.isfinite(entries if coo is None else coo.data)
        places = np.argwhere(bad)[0] if coo is None else [coo.row[bad][0], coo.col[bad][0]]
        value, row, column = X[places[0], places[1]], places[0], table.columns[places[1]]
        key = int(row) if table.keys is None else table.keys[row : row + 1].tolist()[0]
        kind = "NaN (a missing value)" if np.isnan(value) else "infinity (inf)"
        raise InputError(
            f"{where}, column {shown(column)}: has {kind} in row {shown(key)}; fill or drop it"
        )
    return table


# -- one table dealt out ---------------------------------------------------------------------------
def _dealt(table: PartyTable, parties: Any) -> list[PartyTable]:
    """The columns of one table, for each party its own."""
    names = _names_of(parties)
    groups = column_groups(table.columns, table.named, parties)
    return [
        PartyTable(
            name, table.X[:, places], tuple(table.columns[j] for j in places), table.keys,
            table.named,
        )
        for name, places in zip(names or map(str, range(len(groups))), groups, strict=True)
    ]  # fmt: skip


def _names_of(parties: Any) -> list[str] | None:
    return [str(name) for name in parties] if isinstance(parties, Mapping) else None


def column_groups(columns: Sequence[Any], named: bool, parties: Any) -> list[NDArray[np.int64]]:
    """The places of each party's columns; every column belongs to exactly one party."""
    d = len(columns)
    if parties is None:
        return [np.arange(d)]
    if isinstance(parties, int | np.integer) and not isinstance(parties, bool):
        if not 1 <= parties <= d:
            raise InputError(f"vfl: {parties} parties for {d} columns; give each at least one")
        return list(np.array_split(np.arange(d), int(parties)))
    if isinstance(parties, str) or not isinstance(parties, Iterable):
        raise InputError(
            f"vfl: parties = {shown(parties)}; give a number, or lists of columns (by name)"
        )
    listed = parties.items() if isinstance(parties, Mapping) else enumerate(parties)
    place = {name: j for j, name in enumerate(columns)}
    owner: dict[int, Any] = {}
    groups = []
    for party, own in listed:
        found = [_place(party, c, place, d, named) for c in np.atleast_1d(np.asarray(own, object))]
        if not found:
            raise InputError(f"vfl: party {shown(str(party))}: has no columns; leave it out")
        for j in found:
            if j in owner:
                raise InputError(
                    f"vfl: column {shown(columns[j])}: belongs to party {shown(str(owner[j]))} "
                    f"and to party {shown(str(party))}; give it to one"
                )
            owner[j] = party
        groups.append(np.array(found, dtype=np.int64))
    left = [shown(columns[j]) for j in range(d) if j not in owner]
    if left:
        more = f" and {len(left) - LISTED} more" if len(left) > LISTED else ""
        raise InputError(
            f"vfl: column {', '.join(left[:LISTED])}{more}: belongs to no party; "
            "list it in parties= or drop it from the table"
        )
    return groups


def _place(party: Any, column: Any, place: Mapping[Any, int], d: int, named: bool) -> int:
    """The place of a column given by its name, or by its place where it has no name."""
    if column in place:
        return place[column]
    where = f"vfl: party {shown(str(party))}, column {shown(column)}"
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -d <= column < d:
            return int(column) % d
        raise InputError(f"{where}: the table has columns 0..{d - 1}")
    hint = nearest(str(column), map(str, place)) if named else "give places 0, 1, ..."
    raise InputError(f"{where}: is not in the table; {hint}")
