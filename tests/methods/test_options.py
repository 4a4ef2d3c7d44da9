"""Options as fields of a method: kinds, choices, owners, and texts read as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from ccmac.errors import InputError
from ccmac.methods.options import built, check, described, option, options_of


@dataclass(frozen=True)
class Inside:
    """A record that an option may be."""

    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class Toy:
    """One option of every kind."""

    name: ClassVar[str] = "toy"

    realization: str = option("plain", str, "which", choices=("plain", "fancy"))
    note: str = "no option"
    steps: int | None = option(None, int, "how many", only=["fancy"])
    weight: float = option(1.0, float, "how much", below=2.0)
    careful: bool = option(True, bool, "whether")
    inside: Inside | None = option(None, Inside, "where")

    def __post_init__(self) -> None:
        check(self)


def test_options_are_the_marked_fields_in_order() -> None:
    assert list(options_of(Toy)) == ["realization", "steps", "weight", "careful", "inside"]
    assert list(options_of(Toy())) == list(options_of(Toy))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"realization": "fance"}, "did you mean 'fancy'"),
        ({"realization": None}, "realization = None"),
        ({"realization": "fancy", "steps": 0}, "whole number, at least 1"),
        ({"realization": "fancy", "steps": 2.0}, "whole number, at least 1"),
        ({"realization": "fancy", "steps": True}, "whole number, at least 1"),
        ({"realization": "fancy", "steps": 10**400}, "is more than 1,000,000"),
        ({"steps": 3}, "steps belongs to realization fancy"),
        ({"weight": 0.0}, "positive number below 2"),
        ({"weight": 2.0}, "positive number below 2"),
        ({"weight": float("nan")}, "positive number"),
        ({"weight": True}, "positive number"),
        ({"careful": 1}, "true or false"),
        ({"inside": 3}, "expected Inside, got int"),
    ],
)
def test_wrong_values_are_refused_when_the_method_is_made(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=rf"toy: .*{text}"):
        Toy(**given)


def test_a_default_is_never_misplaced() -> None:
    assert Toy(steps=None).steps is None
    assert Toy(realization="fancy", steps=3).steps == 3


def test_texts_become_the_kind_of_the_option() -> None:
    given = {"realization": "fancy", "steps": "3", "weight": "0.5", "careful": "No"}
    assert built(Toy, given, {}) == Toy("fancy", "no option", 3, 0.5, False)
    assert isinstance(built(Toy, {"weight": 1}, {}).weight, float)
    assert built(Toy, {"inside": {"low": 0.5}}, {}).inside == Inside(0.5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"stebs": 3}, "option 'stebs' is unknown; did you mean 'steps'"),
        ({"penalty": 3}, "has no option 'penalty'; other has"),
        ({"note": "x"}, "option 'note' is unknown"),
        ({"realization": "fancy", "steps": "3.5"}, "whole number"),
        ({"realization": "fancy", "steps": "many"}, "whole number"),
        ({"weight": "nan"}, "positive number"),
        ({"careful": "perhaps"}, "true or false"),
        ({"inside": {"lo": 0.5}}, "inside: 'lo' is unknown; did you mean 'low'"),
    ],
)
def test_texts_that_do_not_fit_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=f"toy: .*{text}"):
        built(Toy, given, {"penalty": "other", "steps": "other"})


def test_the_table_says_all_of_an_option() -> None:
    rows = {row["name"]: row for row in described(Toy)}
    assert rows["realization"]["choices"] == ["plain", "fancy"]
    assert rows["steps"] == {
        "name": "steps",
        "default": None,
        "kind": "int",
        "choices": [],
        "realizations": ["fancy"],
        "meaning": "how many",
    }
