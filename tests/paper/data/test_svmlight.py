"""The parser against scikit-learn's, and against hand-made faults."""

from __future__ import annotations

import bz2
import io
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ccmac.errors import InputError
from ccmac.paper.data import parse_svmlight, read_svmlight
from ccmac.paper.data.files import digest, read_text

SAMPLE = b"+1 1:1 3:0.5 \n-1\t2:-2e-3\r\n-1 \n1 1:.25 2:1. 4:7\n"


def test_rows_values_and_labels() -> None:
    X, y = parse_svmlight(SAMPLE, 5)
    expected = [[1, 0, 0.5, 0, 0], [0, -2e-3, 0, 0, 0], [0, 0, 0, 0, 0], [0.25, 1, 0, 7, 0]]
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, [1, -1, -1, 1])
    assert X.dtype == np.float64
    assert X.has_canonical_format


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"1 1:1\nyes 1:1\n", 2),
        (b"1 1:1\nnan 1:1\n", 2),
        (b"1 0:1\n", 1),
        (b"1 -3:1\n", 1),
        (b"1 1.5:1\n", 1),
        (b"1 qid:3 1:1\n", 1),
        (b"1 1:1\n\n1 3:1 2:1\n", 2),
        (b"1 1:1\n1 3:1 2:1\n", 2),
        (b"1 1:1 6:1\n", 1),
        (b"1 99999999999999999999:1\n", 1),
        (b"1 1:1 3\n", 1),
        (b"1:1 3:1\n", 1),
        (b"1 1:2:3\n", 1),
        (b"1 1:-inf\n", 1),
        (b"1 1:\xff\n", 1),
    ],
)
def test_a_malformed_line_is_named(text: bytes, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_svmlight(text, 5, "file")
    message = str(caught.value)
    assert message.startswith(f"file, line {line}: ")
    assert "\n" not in message


rows = st.lists(
    st.tuples(
        st.floats(allow_nan=False, allow_infinity=False),
        st.dictionaries(st.integers(1, 40), st.floats(allow_nan=False, allow_infinity=False)),
    ),
    min_size=1,
    max_size=8,
)


@given(rows)
def test_agrees_with_scikit_learn(table: list[tuple[float, dict[int, float]]]) -> None:
    text = "".join(
        f"{label!r} " + " ".join(f"{j}:{v!r}" for j, v in sorted(row.items())) + "\n"
        for label, row in table
    ).encode()
    X, y = parse_svmlight(text, 40)
    reference, labels = load_svmlight_file(io.BytesIO(text), n_features=40, zero_based=False)
    np.testing.assert_array_equal(X.toarray(), reference.toarray())
    np.testing.assert_array_equal(y, labels)


def test_compressed_files_read_the_same(tmp_path: Path) -> None:
    for name, content in (
        ("s", SAMPLE),
        ("s.txt", SAMPLE),
        ("s.bz2", bz2.compress(SAMPLE)),
        ("s.xz", lzma.compress(SAMPLE)),
    ):
        (tmp_path / name).write_bytes(content)
        X, _ = read_svmlight(tmp_path / name, 5)
        assert X.nnz == 6


@pytest.mark.parametrize(
    ("suffix", "whole"), [(".bz2", bz2.compress(SAMPLE)), (".xz", lzma.compress(SAMPLE))]
)
def test_damaged_files_are_refused(suffix: str, whole: bytes, tmp_path: Path) -> None:
    for content in (whole[:-5], b"<html>not here</html>", whole[:20] + b"?" + whole[21:]):
        path = tmp_path / f"s{suffix}"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"replace"):
            read_text(path)
    with pytest.raises(InputError, match="cannot read"):
        read_text(tmp_path / f"missing{suffix}")


def test_the_checksum_ignores_empty_last_lines() -> None:
    assert digest(b"1 1:1\n\n\n") == digest(b"1 1:1\n")
    assert digest(b"1 1:1") != digest(b"1 1:1\n")
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
