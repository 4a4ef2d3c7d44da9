"""Parse svmlight text: one row per line, ``label index:value index:value ...``, indices from 1."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.texts import SHOWN, shown


def parse_svmlight(
    text: bytes, n_features: int | None = None, source: str = "text"
) -> tuple[csr_array[np.float64], Array]:
    """Return (X, labels) of svmlight ``text``; labels are as written.

    A line with a label and no features is a row. Empty lines are allowed at the end only. With
    ``n_features`` absent the largest index that occurs is taken. ``source`` names the text in the
    :class:`InputError` raised for the first malformed line.
    """
    text = text.rstrip(b" \t\r\n")
    if not text:
        raise InputError(f"{source} is empty: write 'label index:value ...' on each line")
    limit = np.iinfo(np.int32).max if n_features is None else n_features
    lines = text.split(b"\n")
    parsed = _parsed(lines, limit)
    if parsed is None:
        bad = next(k for k, line in enumerate(lines) if _parsed([line], limit) is None)
        raise InputError(
            f"{source}, line {bad + 1}: {_show(lines[bad])} is no row; write 'label index:value "
            f"...' with finite numbers and indices that increase from 1 to {limit}"
        )
    X, labels = parsed
    width = X.shape[1] if n_features is None else n_features
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width)), labels


def _parsed(lines: list[bytes], limit: int) -> tuple[csr_array[np.float64], Array] | None:
    """Rows by array operations; None when a line is not as it should be."""
    words = [line.split() for line in lines]
    counts = np.array([len(row) - 1 for row in words])
    pairs = [word.split(b":") for row in words for word in row[1:]]
    if (counts < 0).any() or any(len(pair) != 2 for pair in pairs):
        return None
    try:
        labels = np.array([float(row[0]) for row in words])
        index = np.array([int(pair[0]) for pair in pairs], dtype=np.float64)
        values = np.array([float(pair[1]) for pair in pairs], dtype=np.float64)
    except (ValueError, OverflowError):
        return None
    ends = np.concatenate(([0], np.cumsum(counts)))
    steps = np.diff(index, prepend=0.0)
    first = ends[:-1][counts > 0]
    steps[first] = index[first]  # indices start at 1 and increase in a row
    finite = bool(np.isfinite(values).all() and np.isfinite(labels).all())
    if not finite or bool((steps <= 0).any()) or index.max(initial=0.0) > limit:
        return None
    parts = values, (index - 1).astype(np.int32), ends.astype(np.int32)
    return csr_array(parts, shape=(len(lines), int(index.max(initial=0.0)))), labels


def _show(line: bytes) -> str:
    """Quote the start of a line so that the message stays one short line."""
    return shown(line[: 2 * SHOWN].decode("latin-1"))
