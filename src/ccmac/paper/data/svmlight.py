"""Parse svmlight text: one row per line, ``label index:value index:value ...``, indices from 1.

The text is checked as a whole with array operations. Only when some check fails is it read line by
line, to say where and why. Both readings accept the same language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from scipy.sparse import csr_array, vstack

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.texts import SHOWN, shown

_REAL = rb"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_NUMBER = re.compile(_REAL)
# Nothing is tried twice: a hostile line takes no longer than another.
_ROW = re.compile(rb"[ \t\r]*+" + _REAL + rb"(?:[ \t\r]++\d++:" + _REAL + rb")*+[ \t\r]*+")
_GAP = re.compile(rb"[ \t\r]+")
_PIECE = 1 << 22


def parse_svmlight(
    text: bytes, n_features: int | None = None, source: str = "text"
) -> tuple[csr_array[np.float64], Array]:
    """Return (X, labels) of svmlight ``text``; labels are as written.

    A line with a label and no features is a row. Empty lines are allowed at the end only. With
    ``n_features`` absent the largest index that occurs is taken. ``source`` names the text in the
    :class:`InputError` raised for the first malformed line.
    """
    text = text.rstrip(b" \t\r\n")
    parsed = [_parse_whole(piece, n_features) for piece in _pieces(text)]
    found = [each for each in parsed if each is not None]
    if not found or len(found) < len(parsed):
        _explain(text, n_features, source)
    if len(found) == 1:
        return found[0]
    width = max(X.shape[1] for X, _ in found)
    wide = [csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X, _ in found]
    return vstack(wide, format="csr"), np.concatenate([y for _, y in found])


def _pieces(text: bytes) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time: parsing takes ten times the memory of its text."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _PIECE)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _parse_whole(text: bytes, n_features: int | None) -> tuple[csr_array[np.float64], Array] | None:
    """Parse with array operations; ``None`` when anything at all is not as it should be."""
    lines = text.split(b"\n")
    if not all(map(_ROW.fullmatch, lines)):
        return None
    words = text.replace(b":", b" ").split()
    numbers = np.fromiter(map(float, words), dtype=np.float64, count=len(words))
    if not bool(np.isfinite(numbers).all()):
        return None
    counts = np.array([line.count(b":") for line in lines])
    ends = np.concatenate(([0], np.cumsum(counts)))
    # Each feature gives two numbers, and a row begins with its label.
    at = 2 * ends[:-1] + np.arange(len(lines))
    index, values = np.delete(numbers, at).reshape(-1, 2).T
    steps = np.diff(index, prepend=0.0)
    first = ends[:-1][counts > 0]
    steps[first] = index[first]  # indices start at 1 and increase in a row
    limit = float(n_features) if n_features is not None else float(np.iinfo(np.int32).max)
    if bool((steps <= 0).any()) or index.max(initial=0.0) > limit:
        return None
    columns = n_features if n_features is not None else int(index.max(initial=0.0))
    parts = np.ascontiguousarray(values), (index - 1).astype(np.int32), ends.astype(np.int32)
    return csr_array(parts, shape=(len(lines), columns)), numbers[at]


def _explain(text: bytes, n_features: int | None, source: str) -> NoReturn:
    """Raise the error of the first malformed line."""
    if not text:
        raise InputError(f"{source} is empty: write 'label index:value ...' on each line")
    for number, line in enumerate(text.split(b"\n"), start=1):
        fault = _fault(line, n_features)
        if fault:
            raise InputError(f"{source}, line {number}: {fault}")
    raise InputError(f"{source} is not svmlight text: write 'label index:value ...' on each line")


def _fault(line: bytes, n_features: int | None) -> str | None:
    """Say what is wrong with one line, or return ``None``."""
    label, *features = _GAP.split(line.strip(b" \t\r"))
    if not label:
        return "the line is empty; remove it, or write a label for a row without features"
    if b":" in label:
        return f"the row starts with {_show(label)}; write its label first"
    if not _NUMBER.fullmatch(label):
        return f"label {_show(label)} is not a number; use -1 and 1"
    if not np.isfinite(float(label)):
        return f"label {_show(label)} is not finite; use -1 and 1"
    previous = 0
    limit = n_features if n_features is not None else int(np.iinfo(np.int32).max)
    for feature in features:
        index, colon, value = feature.partition(b":")
        if not colon:
            return f"{_show(feature)} has no colon; write index:value"
        if not index.isdigit():
            return f"index {_show(index)} is not a whole number; indices are 1, 2, 3, ..."
        # Compared by length first: Python refuses to convert thousands of digits.
        digits = index.lstrip(b"0")
        if not digits:
            return f"index {_show(index)} is below 1; indices start at 1"
        if len(digits) > 10 or int(digits) > limit:
            return f"index {_show(index)} is beyond the {limit:,} features declared"
        if int(digits) <= previous:
            return f"index {int(digits)} follows index {previous}; indices must increase in a row"
        previous = int(digits)
        said = value.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
        if not said and not _NUMBER.fullmatch(value):
            return f"the value {_show(value)} of index {previous} is not a number"
        if said or not np.isfinite(float(value)):
            return f"the value of index {previous} is {_show(value)}; values must be finite"
    return None


def _show(word: bytes) -> str:
    """Quote a word of the file so that the message stays one short line."""
    return shown(word[: 2 * SHOWN].decode("latin-1"))
