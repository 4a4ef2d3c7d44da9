"""YAML from anybody: plain data with lines, limits, and one line for everything else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ccmac.errors import InputError
from ccmac.storage import located
from ccmac.storage.located import parse


def bomb(levels: str = "abcdefghijklmnop") -> str:
    lines = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise(levels)]
    return "\n".join([f"{levels[0]}: &{levels[0]} [x, x]", *lines])


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With libyaml and without."""
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(located, "LOADER", getattr(yaml, request.param))


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: !!int foo", 1, "'foo' is not a number"),
        ("a: !!float foo", 1, "'foo' is not a number"),
        ("a: !!bool foo", 1, "'foo' is not a number"),
        ("a: 1\nb: " + "9" * 5000, 2, "is not a number that can be read"),
        ("a: !!binary QQ==", 1, "is not plain data"),
        ("a: !!set {b, c}", 1, "is not plain data"),
        ("a: !mine x", 1, "'!mine' is not plain data"),
        ("a: *nothing", 1, "undefined alias"),
        ("a: 1\nb: &b [1, *b]", 2, "too many entries"),
        (bomb(), 1, "too many entries"),
        ("[" * 10_000, 1, "nested more than"),
        ("- " * 1000 + "x", 1, "nested more than"),
        ("? [a]\n: 1", 1, "a key must be a short text, got a list"),
        ("1: 2", 1, "a key must be a short text, got 1"),
        ("k" * 100 + ": 1", 1, "a key must be a short text"),
        ("a: 1\nb: 2\na: 3", 3, "a: the key is given twice"),
        ("a: 1\n--- \nb: 2", 2, "another document"),
        ("a: {b]", 1, "not YAML"),
        ("\x00", 1, "not YAML"),
        ("", 1, "the file is empty"),
        ("# only a comment", 1, "the file is empty"),
        ("[" + "1," * 3000 + "1]", 1, "too many entries"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as told:
        parse(text, "file.yaml", entries=2000)
    assert str(told.value).startswith(f"file.yaml, line {line}: ")
    assert words in str(told.value)
    assert len(str(told.value)) < 300


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [1.5, true, null, text, '1']", {"a": 1, "b": [1.5, True, None, "text", "1"]}),
        ("when: 2024-13-45", {"when": "2024-13-45"}),
        ("when: 2024-01-02", {"when": "2024-01-02"}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("{<<: x, =: y}", {"<<": "x", "=": "y"}),
        (
            "a: !!str 12\nb: !!int 12\nc: !!seq [1]\nd: !!map {e: 1}",
            {"a": "12", "b": 12, "c": [1], "d": {"e": 1}},
        ),
        ("a: 0x1F\nb: 1_000", {"a": 31, "b": 1000}),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_plain_data_are_read(text: str, value: Any) -> None:
    assert parse(text, "f").plain() == value


leaves = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=20)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=30,
)


@given(trees)
def test_what_yaml_writes_is_read_back(value: Any) -> None:
    """An independent writer; texts that look like dates stay texts."""
    text = yaml.safe_dump(value, allow_unicode=False)
    assert parse(text, "f").plain() == value


@given(st.text(alphabet="ab:-[]{}&*!?|>'\"#%@ \n0.~<=", max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    told = "f, line 1"
    try:
        parse(text, "f")
    except InputError as error:
        told = str(error)
    assert told.startswith("f, line ")
    assert "\n" not in told


def test_values_keep_their_lines() -> None:
    root = parse("a:\n  - 1\n  - b: 2\n", "f")
    assert root.mapping()["a"].items()[1].mapping()["b"].line == 3


def test_readers_refuse_with_the_nearest_name() -> None:
    root = parse("netwrk: rong\nn: 2.5\nx: .nan\nlong: '" + "y" * 500 + "'", "f")
    with pytest.raises(
        InputError, match="line 1: netwrk: the key is unknown; did you mean 'network'"
    ):
        root.mapping(("network", "n"))
    entries = root.mapping()
    with pytest.raises(InputError, match=r"line 1: netwrk: 'rong' is unknown; did you mean 'ring'"):
        entries["netwrk"].text(("ring", "path"))
    with pytest.raises(InputError, match=r"expected a whole number, got 2\.5"):
        entries["n"].whole()
    with pytest.raises(InputError, match="line 3: x: nan is not a finite number"):
        root.plain()
    with pytest.raises(InputError, match="nan lies outside"):
        entries["x"].number()
    for read in (entries["long"].number, entries["long"].whole, entries["long"].mapping):
        with pytest.raises(InputError) as told:
            read()
        assert len(str(told.value)) < 160
    with pytest.raises(InputError, match="the key 'tol' is missing"):
        root.mapping(needed=["tol"])
