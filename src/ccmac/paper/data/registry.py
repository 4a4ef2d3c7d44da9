"""The data sets known by name: their shape, their labels, their checksum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


_ADULT = "census income (UCI Adult), binarised"
_SETS = (
    KnownSet(
        "a1a",
        1_605,
        123,
        "a1a",
        _ADULT,
        22_249,
        (1_210, 395),
        sha256="eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
    ),
    KnownSet(
        "a8a",
        22_696,
        123,
        "a8a",
        _ADULT,
        314_815,
        (17_190, 5_506),
        sha256="d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28",
    ),
    KnownSet(
        "a9a",
        32_561,
        123,
        "a9a",
        _ADULT,
        451_592,
        (24_720, 7_841),
        sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    ),
    KnownSet(
        "w8a",
        49_749,
        300,
        "w8a",
        "web pages, keyword indicators",
        579_586,
        (48_270, 1_479),
        sha256="6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
    ),
    KnownSet(
        "mushrooms",
        8_124,
        112,
        "mushrooms",
        "UCI Mushroom, categories one-hot encoded",
        170_604,
        (3_916, 4_208),
        (1.0, 2.0),
        sha256="f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    ),
    KnownSet(
        "rcv1_train.binary",
        20_242,
        47_236,
        "rcv1_train.binary.bz2",
        "Reuters news, tf-idf rows of unit length",
        aliases=("rcv1",),
    ),
)
RECORDS: dict[str, KnownSet] = {record.name: record for record in _SETS}


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
