"""The data sets known by name: their shape, their labels, their checksum."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Literal

import msgspec
import numpy as np
from scipy.sparse import csr_array

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.texts import shown

LIKE = "-like"
"""Suffix of a generated look-alike's name."""


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    """A binary classification set: rows ``X`` (CSR, float64), labels ``y`` in {-1, +1}.

    ``source`` is ``"libsvm"`` for the published file and ``"generated"`` for a look-alike, whose
    ``name`` ends in ``-like``.
    """

    name: str
    X: csr_array[np.float64]
    y: Array
    source: Literal["libsvm", "generated"]

    def __repr__(self) -> str:
        (rows, columns), name = self.X.shape, repr(self.name)
        size = f"{rows:,} rows, {columns:,} features, {self.X.nnz:,} nonzeros"
        return f"Dataset({name}, {size}, {self.source})"


@dataclass(frozen=True, slots=True)
class KnownSet:
    """What is known of one LIBSVM binary set (training split).

    ``labels`` are the two labels of the file, the one mapped to -1 first. ``sha256`` is that of
    the decompressed text; ``None`` where no trustworthy value is known, and then ``nnz`` and
    ``counts`` (rows of each label) are unknown too.
    """

    name: str
    rows: int
    features: int
    remote: str
    title: str
    nnz: int | None = None
    counts: tuple[int, int] | None = None
    labels: tuple[float, float] = (-1.0, 1.0)
    sha256: str | None = None
    aliases: tuple[str, ...] = ()


def _known() -> dict[str, KnownSet]:
    file = resources.files("ccmac.paper.data") / "sets.json"
    found = msgspec.json.decode(file.read_bytes(), type=list[KnownSet])
    return {record.name: record for record in found}


RECORDS = _known()


def resolve(name: str) -> KnownSet:
    """Return the record called ``name``, which may be an alias and may end in ``-like``."""
    base = name.removesuffix(LIKE)
    for record in RECORDS.values():
        if base == record.name or base in record.aliases:
            return record
    raise InputError(
        f"no data set is called {shown(name)}: choose one of {', '.join(RECORDS)}, "
        f"or add {LIKE!r} for a generated look-alike"
    )
