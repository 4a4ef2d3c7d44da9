"""A sample of the fuzzing in every test run; `make fuzz` tries thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fuzz.judge import TARGETS, Verdict, workshop

SAMPLE = 12  # of each of 27 targets


@pytest.fixture(scope="module")
def attempt() -> Iterator[Callable[[str, int], Verdict]]:
    with workshop() as tried:
        yield tried


@pytest.mark.parametrize("target", TARGETS)
def test_accepted_or_refused_in_one_line(
    attempt: Callable[[str, int], Verdict], target: str
) -> None:
    verdicts = {number: attempt(target, number) for number in range(SAMPLE)}
    faults = {number: verdict.fault for number, verdict in verdicts.items() if verdict.fault}
    assert not faults
    assert 2 in {verdict.code for verdict in verdicts.values()}  # something was changed
