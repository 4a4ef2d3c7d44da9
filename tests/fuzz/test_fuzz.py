"""A sample of the fuzzing in every test run; `make fuzz` tries thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fuzz.inputs import TARGETS
from fuzz.judge import workshop

Attempt = Callable[[str, int], tuple[list[str], int, str]]


@pytest.fixture(scope="module")
def attempt() -> Iterator[Attempt]:
    with workshop() as tried:
        yield tried


@pytest.mark.parametrize("target", TARGETS)
def test_accepted_or_refused_in_one_line(attempt: Attempt, target: str) -> None:
    found = {number: attempt(target, number) for number in range(12)}
    assert not {number: fault for number, (_, _, fault) in found.items() if fault}
    assert 2 in {code for _, code, _ in found.values()}  # something was changed
