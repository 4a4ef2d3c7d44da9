"""The data sets known by name: their shape, their labels, their checksum."""

from __future__ import annotations

from dataclasses import dataclass

from ccmac.errors import InputError
from ccmac.texts import shown

__all__ = ["LIKE", "RECORDS", "Record", "resolve"]

LIKE = "-like"
"""Suffix of a generated look-alike's name."""


@dataclass(frozen=True, slots=True)
class Record:
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

RECORDS: dict[str, Record] = {
    record.name: record
    for record in (
        Record(
            "a1a",
            rows=1_605,
            features=123,
            nnz=22_249,
            counts=(1_210, 395),
            remote="a1a",
            title=_ADULT,
            sha256="eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
        ),
        Record(
            "a8a",
            rows=22_696,
            features=123,
            nnz=314_815,
            counts=(17_190, 5_506),
            remote="a8a",
            title=_ADULT,
            sha256="d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28",
        ),
        Record(
            "a9a",
            rows=32_561,
            features=123,
            nnz=451_592,
            counts=(24_720, 7_841),
            remote="a9a",
            title=_ADULT,
            sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
        ),
        Record(
            "w8a",
            rows=49_749,
            features=300,
            nnz=579_586,
            counts=(48_270, 1_479),
            remote="w8a",
            title="web pages, keyword indicators",
            sha256="6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
        ),
        Record(
            "mushrooms",
            rows=8_124,
            features=112,
            nnz=170_604,
            counts=(3_916, 4_208),
            labels=(1.0, 2.0),
            remote="mushrooms",
            title="UCI Mushroom, categories one-hot encoded",
            sha256="f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
        ),
        Record(
            "rcv1_train.binary",
            rows=20_242,
            features=47_236,
            remote="rcv1_train.binary.bz2",
            title="Reuters news, tf-idf rows of unit length",
            aliases=("rcv1",),
        ),
    )
}


def resolve(name: str) -> Record:
    """Return the record called ``name``, which may be an alias and may end in ``-like``."""
    base = name.removesuffix(LIKE)
    for record in RECORDS.values():
        if base == record.name or base in record.aliases:
            return record
    known = ", ".join(RECORDS)
    raise InputError(
        f"no data set is called {shown(name)}: choose one of {known}, "
        f"or add {LIKE!r} for a generated look-alike"
    )
