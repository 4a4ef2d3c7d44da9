"""Reading with limits, strict JSON, and messages that stay short."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmac.texts import SHOWN, dumps, loads, nearest, plain, shown


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
    "text", ["NaN", "[Infinity]", "1e999", "9" * 5000, "[" * 100_000, "", "{", "'a'"]
)
def test_what_is_not_strict_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        loads(text)


@given(st.recursive(st.integers() | st.text() | st.binary(), st.lists, max_leaves=30))
def test_a_shown_value_is_one_short_line(value: Any) -> None:
    assert len(shown(value)) <= SHOWN + 1
    assert "\n" not in shown(value)


def test_nearest_names() -> None:
    assert nearest("rinf", ["ring", "path"]) == "did you mean 'ring'?"
    assert nearest("zzz", ["ring", "path"]) == "take one of ring, path"
    assert len(nearest("zzz", ["a" * 5000, "b" * 5000])) < 6 * SHOWN
