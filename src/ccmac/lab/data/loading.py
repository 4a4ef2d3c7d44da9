"""Load a set by name, or any svmlight file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.lab.data.download import fetch
from ccmac.lab.data.files import cache_directory, check_digest, check_rows, find, read_text
from ccmac.lab.data.lookalike import generate
from ccmac.lab.data.registry import LIKE, Dataset, KnownSet, resolve
from ccmac.lab.data.svmlight import parse_svmlight


def read_svmlight(path: Path, n_features: int | None = None) -> tuple[csr_array[np.float64], Array]:
    """Read a plain, ``.bz2`` or ``.xz`` svmlight file; returns the matrix and the labels."""
    return parse_svmlight(read_text(path), n_features, str(path))


def locate(name: str) -> Path:
    """Return the file of a set, downloading it to the user's cache if it is nowhere else."""
    if name.endswith(LIKE):
        raise InputError(
            f"{name} is generated and has no file: leave out {LIKE!r} for the original"
        )
    record = resolve(name)
    return find(record) or fetch(record, cache_directory())


def load(name: str, *, fallback: bool = False) -> Dataset:
    """Return the set called ``name`` (see :data:`ccmac.lab.data.RECORDS`).

    The file is looked for in ``$CCMAC_DATA``, then in the user's cache, then downloaded. With
    ``fallback`` nothing is downloaded: if the file is not on this machine, the generated look-alike
    is returned, under the look-alike's name. A name ending in ``-like`` is always generated.

    Of the two labels in the file the smaller becomes -1 and the larger +1 (in ``mushrooms``
    1 -> -1, poisonous, and 2 -> +1, edible).
    """
    record = resolve(name)
    if name.endswith(LIKE) or (fallback and find(record) is None):
        return generate(record.name)
    return _read(record, locate(name))


def _read(record: KnownSet, path: Path) -> Dataset:
    text = read_text(path)
    check_digest(record, text, path)
    X, labels = parse_svmlight(text, record.features, str(path))
    check_rows(record, X.shape[0], path)
    negative, positive = record.labels
    strange = np.flatnonzero((labels != negative) & (labels != positive))
    if strange.size:
        raise InputError(
            f"{path}, line {strange[0] + 1}: label {labels[strange[0]]:g} is neither "
            f"{negative:g} nor {positive:g}; replace the file by the binary set"
        )
    return Dataset(record.name, X, np.where(labels == positive, 1.0, -1.0), "libsvm")
