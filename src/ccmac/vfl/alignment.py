"""Rows of different owners brought together by their keys.

The keys of a DataFrame are its index (or a key column); an array has none and its rows count by
their place. ``join="strict"`` wants the same keys at every party, in any order; ``"inner"`` keeps
the rows that all have. Rows come out in the order of the first party. Cost: one dictionary a party.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.texts import shown
from ccmac.vfl.labels import is_missing
from ccmac.vfl.tables import PartyTable

JOINS = ("strict", "inner")
Keys = NDArray[Any]


def align(
    tables: Sequence[PartyTable],
    y: Any = None,
    weights: Any = None,
    join: str = "strict",
    offset: Any = None,
) -> tuple[list[PartyTable], Any, Any, Any]:
    """Tables, labels, weights and offsets of rows, all in the rows' common order."""
    if not isinstance(join, str) or join not in JOINS:
        raise InputError(f"vfl: join = {shown(join)}; take 'strict' or 'inner'")
    sources = [(f"party {t.party!r}", t.keys, t.rows) for t in _distinct(tables)]
    extras = [("y", y), ("sample_weight", weights), ("offset", offset)]
    for name, values in extras:
        if values is not None:
            sources.append((name, _keys_of(values), _length(name, values)))
    order = _order(sources, join, len(_distinct(tables)))
    if order is None:
        _check_rows(sources)
        return list(tables), _values(y), _values(weights), _values(offset)
    places = dict(zip((name for name, _, _ in sources), order, strict=True))
    moved = [t.taken(places.get(f"party {t.party!r}", order[0])) for t in tables]
    kept = [None if v is None else _values(v)[places[name]] for name, v in extras]
    return moved, kept[0], kept[1], kept[2]


def _distinct(tables: Sequence[PartyTable]) -> list[PartyTable]:
    """One table where all are parts of the same one."""
    alike = all(t.keys is tables[0].keys and t.rows == tables[0].rows for t in tables)
    return [tables[0]] if alike else list(tables)


def _keys_of(values: Any) -> Keys | None:
    return np.asarray(values.index) if hasattr(values, "iloc") else None


def _values(values: Any) -> Any:
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _length(name: str, values: Any) -> int:
    try:
        return len(values)
    except Exception:  # an object of another library may raise anything here
        raise InputError(f"vfl: {name} is {shown(values)}; give one entry for each row") from None


def _check_rows(sources: Sequence[tuple[str, Keys | None, int]]) -> None:
    first, _, rows = sources[0]
    for name, _, other in sources[1:]:
        if other != rows:
            raise InputError(
                f"vfl: {name} has {other} rows but {first} has {rows}: inconsistent numbers of "
                "samples; give keys (a DataFrame's index) to join them by, or the same rows"
            )


def _order(
    sources: Sequence[tuple[str, Keys | None, int]], join: str, parties: int
) -> list[NDArray[np.int64]] | None:
    """Places of the common rows in every source; None: rows already stand side by side."""
    keyed = [(name, keys) for name, keys, _ in sources if keys is not None]
    if not any(keys is not None for _, keys, _ in sources[:parties]):
        return None  # rows count by their place, as in any array
    if parties > 1:
        for name, keys in keyed:
            check_unique(name, keys)
    first, reference = keyed[0]
    if all(_same(keys, reference) for _, keys in keyed[1:]):
        return None
    for name, found_keys, _ in sources:
        if found_keys is None:
            odd = next(n for n, k in keyed[1:] if not _same(k, reference))
            raise InputError(
                f"vfl: {name} has no keys, but the rows of {odd} are in another order than those "
                f"of {first} (or are others); give {name} with keys, as a DataFrame or Series"
            )
    for name, keys in keyed:
        check_unique(name, keys)
    found = [{key: row for row, key in enumerate(keys.tolist())} for _, keys in keyed]
    common = _common(keyed, found, join)
    return [np.array([rows[key] for key in common], dtype=np.int64) for rows in found]


def _common(
    keyed: Sequence[tuple[str, Keys]], found: Sequence[dict[Any, int]], join: str
) -> list[Any]:
    """The keys of the rows to keep, in the first source's order."""
    first = keyed[0][0]
    common = [key for key in found[0] if all(key in rows for rows in found[1:])]
    if not common:
        for (name, _), rows in zip(keyed[1:], found[1:], strict=True):
            if not rows.keys() & found[0].keys():
                a = shown(next(iter(found[0])))
                b = shown(next(iter(rows)))
                raise InputError(
                    f"vfl: {name} shares no key with {first} (they look like {b} and {a}); "
                    "check that both have the same keys, of the same type"
                )
        raise InputError("vfl: no key is in all tables; there is nothing to learn from")
    if join == "strict":
        everything = dict.fromkeys(key for rows in found for key in rows)
        for (name, _), rows in zip(keyed, found, strict=True):
            lost = [key for key in everything if key not in rows]
            if lost:
                holder = next(n for (n, _), r in zip(keyed, found, strict=True) if lost[0] in r)
                more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                raise InputError(
                    f"vfl: {name} lacks the key {shown(lost[0])}{more} that {holder} has; "
                    'add the rows, or keep the common ones with join="inner"'
                )
    return common


def _same(keys: Keys, reference: Keys) -> bool:
    return keys is reference or np.array_equal(keys, reference)


def check_unique(name: str, keys: Keys) -> None:
    """Every row has a key of its own."""
    seen: dict[Any, int] = {}
    for row, key in enumerate(keys.tolist()):
        if is_missing(key):
            raise InputError(f"vfl: {name} has a missing key in row {row}; give every row a key")
        if key in seen:
            raise InputError(
                f"vfl: {name} has the key {shown(key)} twice (rows {seen[key]} and {row}); "
                "keys must be unique"
            )
        seen[key] = row
