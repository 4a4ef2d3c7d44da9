"""The line a failing process leaves, checked without MPI."""

from __future__ import annotations

import pytest

from ccmac.errors import GradientError, InputError
from ccmac.runtime import failure


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure.time, "sleep", lambda _: None)


def fail(error: BaseException, rank: int = 1) -> list[int]:
    codes: list[int] = []
    with pytest.raises(type(error)), failure.aborting(codes.append, rank, range(2, 4), alone=False):
        raise error
    return codes


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            InputError("agent 2:\n  b is empty"),
            2,
            "ccmac: rank 1 (agents 2-3): agent 2: b is empty",
        ),
        (GradientError("agent 3: NaN"), 1, "ccmac: rank 1 (agents 2-3): agent 3: NaN"),
        (KeyboardInterrupt(), 130, "ccmac: rank 1 (agents 2-3): interrupted"),
    ],
)
def test_one_line_and_the_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(error) == [code]
    assert capsys.readouterr().err == line + "\n"


def test_a_bug_tells_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(KeyError("x")) == [1]
    assert "KeyError at test_failure.py:" in capsys.readouterr().err


def test_leaving_together_is_no_failure() -> None:
    codes: list[int] = []
    with pytest.raises(SystemExit), failure.aborting(codes.append, 0, None, alone=False):
        raise SystemExit(1)
    assert codes == []


def test_nobody_waits_for_a_process_that_is_alone(capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    with pytest.raises(InputError), failure.aborting(codes.append, 0, None, alone=True):
        raise InputError("b is empty")
    assert (codes, capsys.readouterr().err) == ([], "")
