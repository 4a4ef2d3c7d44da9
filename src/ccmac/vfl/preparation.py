"""Tables as they come, turned into numbers by what each party learns from its own columns.

Numbers: a missing one becomes the median, then (x - mean)/deviation. All else are categories, by
their texts: a missing one becomes the most frequent, then there is a column of 0 and 1 for each
category of the fit. A category that the fit did not have counts as none of them, with a warning.
The same as scikit-learn's SimpleImputer, StandardScaler and OneHotEncoder(handle_unknown="ignore"),
kept as names and numbers, so that it is stored without pickle.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp

from ccmac.errors import AssumptionWarning, InputError
from ccmac.inputs import LARGEST, Array, is_sparse
from ccmac.texts import shown
from ccmac.vfl.labels import floats, unusable
from ccmac.vfl.tables import PartyTable, checked

STANDARD = "standard"


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was learned of a column of numbers, or of one of ``categories``."""

    name: Any
    fill: float | str
    mean: float = 0.0
    scale: float = 1.0
    categories: list[str] | None = None

    @property
    def names(self) -> list[Any]:
        """Of the columns that it becomes."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]


class Preparation:
    """The columns of one party's table, in the manner of a scikit-learn transformer."""

    def __init__(self, party: str, columns: tuple[Column, ...] = ()) -> None:
        self.party = party
        self.columns = columns

    def fit(self, frame: Any) -> Preparation:
        """Learn from all rows of a data frame."""
        self.columns = tuple(self._learned(name, frame[name]) for name in frame.columns)
        return self

    def transform(self, frame: Any) -> Array:
        """Numbers for the rows of a data frame with the same columns."""
        return np.column_stack(
            [self._entered(column, frame[column.name]) for column in self.columns]
        )

    def get_feature_names_out(self) -> list[Any]:
        """Names of the columns that come out."""
        return [name for column in self.columns for name in column.names]

    def _where(self, name: Any) -> str:
        return f"vfl: party {shown(self.party)}, column {shown(name)}"

    def _learned(self, name: Any, series: Any) -> Column:
        missing = series.isna().to_numpy()
        if missing.all():
            raise InputError(f"{self._where(name)}: holds nothing but missing values; drop it")
        if not _categorical(series, missing):
            values = self._numbers(name, series, missing)
            fill = float(np.median(values[~missing]))
            values[missing] = fill
            deviation = float(values.std())
            constant = (values == values[0]).all()
            return Column(name, fill, float(values.mean()), 1.0 if constant else deviation)
        found, counts = np.unique(_texts(series, missing)[~missing], return_counts=True)
        categories = [str(category) for category in found]
        return Column(name, categories[int(counts.argmax())], categories=categories)

    def _entered(self, column: Column, series: Any) -> Array:
        missing = series.isna().to_numpy()
        if column.categories is None:
            values = self._numbers(column.name, series, missing)
            values[missing] = column.fill
            return np.asarray((values - column.mean) / column.scale)
        texts = _texts(series, missing)
        texts[missing] = column.fill
        strange = texts[~np.isin(texts, column.categories)]
        if len(strange):
            warnings.warn(
                f"{self._where(column.name)}: {shown(str(strange[0]))} was not there when the "
                f"model was fitted; it counts as none of its categories ({len(strange)} rows)",
                AssumptionWarning,
                stacklevel=2,
            )
        return np.asarray(texts[:, None] == np.array(column.categories), dtype=np.float64)

    def _numbers(self, name: Any, series: Any, missing: Any) -> Array:
        """Missing ones are NaN."""
        values = np.full(len(series), np.nan)
        listed = np.array(series.to_numpy()[~missing].tolist())
        values[~missing] = floats(f"{self._where(name)}:", listed, "the fit had numbers there")
        bad = np.flatnonzero(np.abs(values) > LARGEST)
        if len(bad):
            row = shown(series.index[bad[0] : bad[0] + 1].tolist()[0])
            raise InputError(
                f"{self._where(name)}: has {unusable(values[bad[0]])} in row {row}; drop it"
            )
        return values


def _categorical(series: Any, missing: Any) -> bool:
    """Declared so, or texts among the values."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return True
    values = series.to_numpy()
    return values.dtype.kind not in "biufmMc" and any(
        isinstance(value, str) for value in values[~missing].tolist()
    )


def _texts(series: Any, missing: Any) -> Any:
    texts = np.full(len(series), "", dtype=object)
    texts[~missing] = [str(value) for value in series.to_numpy()[~missing].tolist()]
    return texts


def fitted(asked: Any, table: PartyTable) -> Any:
    """What ``preprocess=`` asks for, fitted on one party's table."""
    if isinstance(asked, Mapping):
        if table.party not in asked:
            raise InputError(f"vfl: preprocess: says nothing of party {shown(table.party)}")
        asked = asked[table.party]
    if isinstance(asked, str) and asked == STANDARD:
        return Preparation(table.party).fit(table.X)
    if not hasattr(asked, "fit"):
        raise InputError(
            f"vfl: preprocess = {shown(asked)}; take 'standard', a scikit-learn transformer or one "
            "for each party"
        )
    from sklearn.base import clone

    return _tried(table, lambda: clone(asked).fit(table.X))


def applied(transformer: Any, table: PartyTable) -> PartyTable:
    """The table in numbers."""
    values = _tried(table, lambda: transformer.transform(table.X))
    names = tuple(_tried(table, transformer.get_feature_names_out))
    X: Any = sp.csr_array(values) if is_sparse(values) else np.asarray(values, dtype=np.float64)
    return checked(replace(table, X=X, columns=names, named=True))


def _tried(table: PartyTable, step: Any) -> Any:
    try:
        return step()
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        said = " ".join(str(error).split())[:160]
        raise InputError(f"vfl: party {shown(table.party)}: preprocess: {said}") from None
