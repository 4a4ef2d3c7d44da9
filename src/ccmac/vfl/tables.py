"""The parties' tables as the user has them, turned into named columns of numbers.

A party's table is a DataFrame, an array or a sparse matrix. X is a mapping or a list of such
tables, or one table whose columns ``parties`` deals out: a number of contiguous parts, lists of
column names or places, or a mapping of such lists by the parties' names. Every complaint names the
party and the column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import LARGEST, is_sparse, is_whole, several
from ccmac.texts import nearest, shown
from ccmac.vfl.labels import floats, unusable

LISTED = 5  # names that a message repeats


@dataclass(frozen=True)
class PartyTable:
    """One party's columns; ``keys`` name the rows (None: rows count by their place)."""

    party: str
    X: Any  # float64 ndarray or csr_array; a DataFrame until it is prepared
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
        X = self.X.iloc[places] if is_frame(self.X) else self.X[places]
        return PartyTable(self.party, X, self.columns, keys, self.named)

    def with_columns(self, places: NDArray[np.int64], names: tuple[Any, ...]) -> PartyTable:
        """The columns at ``places``, in that order."""
        X = self.X.iloc[:, places] if is_frame(self.X) else self.X[:, places]
        return PartyTable(self.party, X, names, self.keys, True)


def read_tables(
    X: Any, parties: Any = None, key: str | None = None, *, raw: bool = False
) -> list[PartyTable]:
    """One :class:`PartyTable` for each party, in the order given; ``raw``: to be prepared."""
    if is_one_table(X):
        X = one_table(X, key)
        names = [str(name) for name in parties] if isinstance(parties, Mapping) else None
        groups = column_groups(columns_of("vfl", X)[0], parties)
        if parties is not None and names is None:
            names = [str(i) for i in range(len(groups))]
        return dealt(X, names, groups, raw=raw)
    if parties is not None:
        raise InputError("vfl: parties= deals out one table, but X holds the parties' own tables")
    if not len(X):
        raise InputError("vfl: X holds no table; give one for each party")
    listed = X.items() if isinstance(X, Mapping) else enumerate(X)
    named = [(str(name), table) for name, table in listed]
    names = [name for name, _ in named]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"vfl: party {twice!r}: is there twice; give each a name of its own")
    tables = []
    for name, value in named:
        table = _plain(_where(name), value, key)
        columns, is_named = columns_of(_where(name), table)
        tables.append(_read(_where(name), name, table, columns, _keys(table), is_named, raw=raw))
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


def as_pandas(value: Any) -> Any:
    """A data frame of any library that narwhals knows as one of pandas; the rest as it is."""
    if is_frame(value) or not hasattr(value, "columns"):
        return value
    import narwhals as nw
    import pandas as pd

    frame = nw.from_native(value, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return value
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a pandas DataFrame (or acts as one)."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def one_table(value: Any, key: str | None = None) -> Any:
    """A DataFrame with the keys as its index, a csr_array, or an array of two dimensions."""
    if value is None or isinstance(value, str | PathLike):
        raise InputError(
            f"vfl: X is {shown(value)}; give tables, such as pandas.read_csv reads them"
        )
    return _plain("vfl", value, key)


def _plain(where: str, value: Any, key: str | None) -> Any:
    value = as_pandas(value)
    if is_frame(value):
        if key is None:
            return value
        if not isinstance(key, Hashable) or key not in value.columns:
            hint = nearest(key, map(str, value.columns))
            raise InputError(f"{where}: has no key column {shown(key)}; {hint}")
        return value.set_index(key)
    if key is not None:
        raise InputError(f"{where}: has no column {shown(key)}; a key column needs a DataFrame")
    try:
        array = sp.csr_array(value) if is_sparse(value) else np.asarray(value)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"{where}: has rows of different lengths; give a table") from None
    if array.ndim != 2:
        hint = "Reshape your data: a table has rows and columns"
        raise InputError(f"{where}: has {array.ndim} dimension(s). {hint}")
    return array


def columns_of(where: str, table: Any) -> tuple[list[Any], bool]:
    """The columns' names, or their places; whether they have names."""
    if not is_frame(table):
        return list(range(table.shape[1])), False
    names = list(table.columns)
    twice = sorted(str(c) for c, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where}, column {shown(twice[0])}: is there twice; rename or drop one")
    return names, True


def _keys(table: Any) -> NDArray[Any] | None:
    return np.asarray(table.index) if is_frame(table) else None


def _where(party: str) -> str:
    return f"vfl: party {shown(party)}"


def _read(
    where: str,
    party: str,
    table: Any,
    columns: Sequence[Any],
    keys: Any,
    named: bool,
    *,
    raw: bool = False,
) -> PartyTable:
    """Numbers, all of them finite; ``raw``: a data frame."""
    if raw:
        return _sized(where, PartyTable(party, _framed(where, table), tuple(columns), keys, named))
    if is_frame(table) or not (is_sparse(table) or table.dtype.kind in "biuf"):
        parts = [
            _column(f"{where}, column {shown(c)}", table.iloc[:, j] if named else table[:, j])
            for j, c in enumerate(columns)
        ]
        X: Any = np.column_stack(parts) if parts else np.zeros((len(table), 0))
    elif is_sparse(table):
        if table.dtype.kind not in "biuf":
            raise InputError(f"{where}: holds {table.dtype}, not real numbers; encode it first")
        X = sp.csr_array(table, dtype=np.float64)
    else:
        X = np.asarray(table, dtype=np.float64)
    return checked(PartyTable(party, X, tuple(columns), keys, named), where)


def _framed(where: str, table: Any) -> Any:
    """A data frame of what is to be prepared."""
    if is_frame(table):
        return table
    if is_sparse(table):
        raise InputError(f"{where}: preprocess takes data frames and arrays, not sparse matrices")
    import pandas as pd

    return pd.DataFrame(table)


def _column(where: str, column: Any) -> NDArray[np.float64]:
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    return floats(f"{where}:", values, "encode the column as numbers first")


def _sized(where: str, table: PartyTable) -> PartyTable:
    """Something is there."""
    X = table.X
    if X.shape[0] == 0:
        raise InputError(f"{where}: Found array with 0 sample(s), a minimum of 1 is required")
    if X.shape[1] == 0:
        raise InputError(
            f"{where}: has no columns: 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
            "required; leave the party out"
        )
    return table


def checked(table: PartyTable, where: str | None = None) -> PartyTable:
    """Something is there, and all of it is finite."""
    where = where or _where(table.party)
    X = _sized(where, table).X
    coo = sp.coo_array(X) if is_sparse(X) else None
    bad = ~(np.abs(X if coo is None else coo.data) <= LARGEST)
    if bad.any():
        row, j = np.argwhere(bad)[0] if coo is None else (coo.row[bad][0], coo.col[bad][0])
        key = int(row) if table.keys is None else table.keys[row : row + 1].tolist()[0]
        raise InputError(
            f"{where}, column {shown(table.columns[j])}: has {unusable(X[row, j])} in row "
            f"{shown(key)}; fill or drop it"
        )
    return table


# -- one table dealt out ---------------------------------------------------------------------------
def dealt(
    table: Any,
    names: Sequence[str] | None,
    groups: Sequence[NDArray[np.int64]],
    *,
    raw: bool = False,
) -> list[PartyTable]:
    """The columns of :func:`one_table` at these places, for each party (of no name) its own."""
    (columns, named), keys = columns_of("vfl", table), _keys(table)
    return [
        _read(
            "vfl" if names is None else _where(names[i]),
            str(i) if names is None else names[i],
            table.iloc[:, places] if named else table[:, places],
            [columns[j] for j in places],
            keys,
            named,
            raw=raw,
        )
        for i, places in enumerate(groups)
    ]


def column_groups(columns: Sequence[Any], parties: Any) -> list[NDArray[np.int64]]:
    """The places of each party's columns; every column belongs to exactly one party."""
    d = len(columns)
    if parties is None:
        return [np.arange(d)]
    if is_whole(parties):
        if not 1 <= parties <= d:
            raise InputError(f"vfl: {parties} parties for {d} columns; give each at least one")
        return list(np.array_split(np.arange(d), int(parties)))
    listed = (
        parties.items()
        if isinstance(parties, Mapping)
        else enumerate(several("vfl: parties", parties, "a number, or lists of columns (by name)"))
    )
    place = {name: j for j, name in enumerate(columns)}
    if not any(isinstance(name, int) for name in columns):  # places may stand for names
        place |= {j: j for j in range(d)}
    owner: dict[int, Any] = {}
    groups = []
    for party, own in listed:
        found = [_place(party, c, place) for c in _listed(own, place)]
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


def _listed(own: Any, place: Mapping[Any, int]) -> list[Any]:
    """One column, or several."""
    alone = isinstance(own, str) or not isinstance(own, Iterable) or getattr(own, "ndim", 1) == 0
    return [own] if alone or (isinstance(own, tuple) and own in place) else list(own)


def _place(party: Any, column: Any, place: Mapping[Any, int]) -> int:
    """The place of a column given by its name, or by its place where no name is a number."""
    where = f"vfl: party {shown(str(party))}, column {shown(column)}"
    if isinstance(column, bool | np.bool_ | np.void) or not isinstance(column, Hashable):
        raise InputError(f"{where}: give names of columns, or places 0, 1, ...")
    if column not in place:
        raise InputError(f"{where}: is not in the table; {nearest(str(column), map(str, place))}")
    return place[column]
