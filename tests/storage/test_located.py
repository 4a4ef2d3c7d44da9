"""YAML from anybody: plain data, limits, and one line for everything else."""

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
    monkeypatch.setattr(located, "LOADER", located.bounded(getattr(yaml, request.param)))


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: !!int foo", "not YAML: invalid literal"),
        ("a: !!bool foo", "not YAML: 'foo'"),
        ("a: 1\nb: " + "9" * 5000, "not YAML: Exceeds the limit"),
        ("a: 0x" + "f" * 5000, "line 1: not YAML: a number is too large"),
        ("a: !mine x", "could not determine a constructor for the tag '!mine'"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: &x [1, 2]\nb: *x", "line 2: has an alias"),
        (bomb(), "has an alias"),
        ("[" * 10_000, "nested more than"),
        ("- " * 1000 + "x", "nested more than"),
        ("? [a]\n: 1", "not YAML"),
        ("a: 1\n--- \nb: 2", "another document"),
        ("when: 2024-13-45", "not YAML: month must be"),
        ("a: {b]", "line 1: not YAML"),
        ("\x00", "not YAML"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as told:
        parse(text, "file.yaml")
    assert str(told.value).startswith("file.yaml, line ")
    assert words in str(told.value)
    assert len(str(told.value)) < 300


leaves = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=20)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=30,
)


@given(trees)
def test_what_yaml_writes_is_read_back(value: Any) -> None:
    """An independent writer; texts that look like dates stay texts."""
    text = yaml.safe_dump(value, allow_unicode=False)
    assert parse(text, "f").value == value


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
    with pytest.raises(InputError, match=r"f, line 3: a\[1\].b: here"):
        root.mapping()["a"].items()[1].mapping()["b"].fail("here")


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
    with pytest.raises(InputError, match="nan lies outside"):
        entries["x"].number()
    for read in (entries["long"].number, entries["long"].whole, entries["long"].mapping):
        with pytest.raises(InputError) as told:
            read()
        assert len(str(told.value)) < 160
    with pytest.raises(InputError, match="the key 'tol' is missing"):
        root.mapping(needed=["tol"])
