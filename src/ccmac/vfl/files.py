"""A party's files: its table (CSV or Parquet), its model (JSON), its scores (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from ccmac.errors import InputError, needed
from ccmac.texts import MEGABYTE, cut, dumps, loads, nearest, open_file, read_text, shown
from ccmac.vfl.between import PartyModel
from ccmac.vfl.preparation import Column
from ccmac.vfl.selection import derived
from ccmac.vfl.tables import PartyTable, read_tables


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON of a model: a row of ``coef`` for each column, an entry of it for each score."""

    party: str
    columns: list[str]
    coef: list[list[float]]
    offset: list[float]
    classes: list[str | int | float | bool]
    learned: list[Column] = []
    format: Literal["ccmac-vfl-party"] = "ccmac-vfl-party"
    version: Literal[1] = 1


def write_model(model: PartyModel) -> str:
    """The JSON of a model."""
    columns = [str(c) for c in model.columns]
    coef = model.coef.tolist()
    known = (model.offset.tolist(), list(model.classes), list(model.learned))
    stored = Stored(model.party, columns, coef, *known)
    return dumps(msgspec.to_builtins(stored))


def read_model(path: Path) -> PartyModel:
    """A file that ``ccmac vfl party`` wrote."""
    try:
        found = msgspec.convert(loads(read_text(path, str(path), 16 * MEGABYTE)), Stored)
        scores = len(found.offset)
        coef = np.array(found.coef, dtype=np.float64).reshape(len(found.columns), scores)
        if len(found.coef) != len(found.columns) or scores == 0:
            raise ValueError
        if len(found.classes) not in (0, max(scores, 2)):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{path}: not found; run ccmac vfl party first") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{path}: is not a model of ccmac vfl party") from None
    names = [name for column in found.learned for name in column.names]
    if found.learned and names != found.columns:
        raise InputError(f"{path}: is not a model of ccmac vfl party")
    known = (np.array(found.offset), tuple(found.classes), tuple(found.learned))
    return PartyModel(found.party, tuple(found.columns), coef, *known)


def read_table(
    path: Path,
    party: str,
    key: str,
    *,
    label: str | None = None,
    columns: list[str] | None = None,
    raw: bool = False,
) -> tuple[PartyTable, Any]:
    """A party's table and, where it has any, its labels in the column ``label``.

    ``columns`` are those that are taken, by default all; ``raw``: they are to be prepared.
    """
    frame = _frame(path, party, key)
    if label is not None and label not in frame.columns:
        hint = nearest(label, map(str, frame.columns))
        raise InputError(
            f"{path}: has no column {shown(label)}, the labels of {shown(party)}; {hint}"
        )
    y = None if label is None else frame.pop(label).to_numpy()
    for column in columns or ():
        if column == key:
            raise InputError(f"{path}: the key {shown(key)} is among columns; take it out")
        if column not in frame.columns:
            raise InputError(f"{path}: party {shown(party)}, column {shown(column)}: is missing")
    if columns is not None:
        frame = frame[[key, *columns] if key in frame.columns else columns]
    [table] = read_tables({party: frame}, key=key, raw=raw)
    return table, y


def _frame(path: Path, party: str, key: str) -> Any:
    pd = needed("pandas", "vfl: reading tables needs pandas; pip install 'ccmac[vfl]'")
    try:
        with open_file(path) as stream:  # an ordinary file, and nothing that pandas would fetch
            if path.suffix == ".parquet":
                return pd.read_parquet(stream)
            # pandas would rename columns of one name, and shift rows that are too long.
            named = pd.read_csv(stream, header=None, nrows=1, dtype=str).iloc[0].dropna()
            if named.duplicated().any():
                twice = named[named.duplicated()].iloc[0]
                raise ValueError(f"column {shown(twice)} is named twice; give each its own name")
            stream.seek(0)
            frame = pd.read_csv(stream, dtype={key: str})
            if not isinstance(frame.index, pd.RangeIndex):
                raise ValueError("rows have more cells than there are names of columns")
            return frame
    except FileNotFoundError:
        raise InputError(f"{path}: not found; it is the table of party {shown(party)}") from None
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; pip install 'ccmac[parquet]'"
        ) from None
    except (ValueError, OSError, LookupError, TypeError, NotImplementedError) as error:
        raise InputError(f"{cut(str(path), 160)}: cannot be read ({cut(str(error))})") from None


def write_scores(
    keys: Any, scores: Any, model: PartyModel | None = None, loss: str = "squared"
) -> str:
    """Keys, scores and, of a ``model``, what they stand for with the classes it knows: as CSV."""
    k = scores.shape[1]
    names = ["score"] if k == 1 else [f"score_{j}" for j in range(k)]
    columns: dict[str, Any] = dict(zip(names, scores.T, strict=True))
    if model is not None:
        columns |= derived(loss, scores)
        if model.classes:
            best = (scores[:, 0] > 0).astype(int) if k == 1 else scores.argmax(axis=1)
            columns["class"] = np.array(model.classes, dtype=object)[best]
    return _csv(["key", *columns], zip(keys.tolist(), *map(_listed, columns.values()), strict=True))


def write_weights(model: PartyModel) -> str:
    """What a party may read of its part: its columns with their weights."""
    k = model.coef.shape[1]
    names = ["weight"] if k == 1 else [f"weight_{j}" for j in range(k)]
    rows = [[name, *row] for name, row in zip(model.columns, model.coef.tolist(), strict=True)]
    return _csv(["column", *names], [*rows, ["(added)", *model.offset.tolist()]])


def write_tried(model: PartyModel) -> str:
    """The strengths of a grid with their measures."""
    return _csv(list(model.tried[0]), [list(row.values()) for row in model.tried])


def _listed(values: Any) -> list[Any]:
    return list(values.tolist())


def _csv(names: list[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()
