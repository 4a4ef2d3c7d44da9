"""Reading with limits, strict JSON, and messages that stay short."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.texts import SHOWN, cut, dumps, loads, nearest, plain, read_text, shown


def test_json_knows_numpy_and_no_infinity() -> None:
    value = {
        "a": np.float64(1.5),
        "b": np.array([[1, 2], [3, 4]]),
        3: (math.nan, -math.inf),
        "c": np.int64(7),
        "d": np.bool_(True),
        "e": range(3),
        "f": Path("x"),
        "g": np.float64("nan"),
    }
    expected = {
        "a": 1.5,
        "b": [[1, 2], [3, 4]],
        "3": [None, None],
        "c": 7,
        "d": True,
        "e": [0, 1, 2],
        "f": "x",
        "g": None,
    }
    assert plain(value) == expected
    assert loads(dumps(value)) == loads(dumps(value, None)) == expected
    assert dumps({"a": [1]}, None) == '{"a":[1]}'


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "1e999", "9" * 5000, "[" * 100_000, '{"a": 1, "a": 2}', "", "{", "'a'"],
)
def test_what_is_not_strict_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        loads(text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert loads(dumps(value)) == value == json.loads(dumps(value, None))


@given(st.recursive(st.integers() | st.text() | st.binary(), st.lists, max_leaves=30))
def test_a_shown_value_is_one_short_line(value: Any) -> None:
    assert len(shown(value)) <= SHOWN + 1
    assert "\n" not in shown(value)


def test_shown_values_do_not_unfold() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(60):
        bomb = [bomb] * 10
    assert len(shown(bomb)) <= SHOWN
    assert shown(10**5000) == "a whole number of about 5000 digits"
    assert len(shown("x" * 10**6)) <= SHOWN
    assert cut("ab\n  c") == "ab c"


def test_nearest_names() -> None:
    assert nearest("rinf", ["ring", "path"]) == "did you mean 'ring'?"
    assert nearest("zzz", ["ring", "path"]) == "take one of ring, path"
    assert len(nearest("zzz", ["a" * 5000, "b" * 5000])) < 6 * SHOWN


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"abc")
    assert read_text(path, "it", 3) == "abc"
    with pytest.raises(InputError, match="it: holds more than 2 bytes"):
        read_text(path, "it", 2)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="it: is not a UTF-8 text"):
        read_text(path, "it", 9)
    with pytest.raises(InputError, match="it: cannot be read"):
        read_text(tmp_path, "it", 9)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "absent", "it", 9)


def test_a_name_too_long_for_the_disk_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 5000)
    with pytest.raises(InputError) as told:
        read_text(path, str(path), 100)
    assert "cannot be read" in str(told.value)
    assert len(str(told.value)) < 300
