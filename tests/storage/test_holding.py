"""A checkpoint's folder belongs to one run at a time, and what others put there stays."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from ccmac.paper.instances import random_quadratic
from ccmac.storage.holding import hold, tidy

ROWS = np.array([[3.0, 0.5], [4.0, 0.75]]).tobytes()
OURS = {
    "state-0.bin": b'0123abcd {"run":1',
    "state-1-00002.bin": b'{"arrays":[],"shared":[]}\n',
    "state-1.bin": b"",
    "trace-000000.bin": ROWS,
    ".probe.abcdefgh.bin": b"ccmac",
    ".checkpoint.abcdefgh.json": b"{",
}
FOREIGN = {
    "state-0.bin": b"mine",
    "state-1.bin": b'0123abcd {"sum":1}',
    "state-1-00002.bin": b"\0" * 40,
    "trace-000000.bin": b"mine",
    "trace-000001.bin": np.array([3.5, 1.0]).tobytes(),
    "trace-000002.bin": np.array([3.0, -1.0]).tobytes(),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_somebody_else_are_refused_and_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FOREIGN[name])
    with ExitStack() as held, pytest.raises(InputError, match=f"{name} there was not written"):
        hold(tmp_path, held)
    tidy(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {name: FOREIGN[name]}


def test_what_a_killed_run_left_is_no_obstacle_and_goes(tmp_path: Path) -> None:
    for name, content in OURS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "notes.txt").write_text("mine")
    with ExitStack() as held:
        hold(tmp_path, held)
    tidy(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_run_leaves_a_file_that_is_called_like_a_trial(tmp_path: Path) -> None:
    for name in ("probe.bin", ".probe"):
        (tmp_path / name).write_text("mine")
    ccmac.solve(random_quadratic(0, 4), "ring", "cross-apapc", checkpoint=str(tmp_path))
    assert [(tmp_path / name).read_text() for name in ("probe.bin", ".probe")] == ["mine"] * 2


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    """They wrote over each other's slots and traces; what was left fitted neither."""
    problem = random_quadratic(0, 4)
    folder = tmp_path / "a" / "state"
    told = list[str]()
    asked = {"path": folder, "every": 1}

    def another(*_: object) -> None:
        with pytest.raises(InputError, match="another run is writing there") as error:
            ccmac.solve(problem, "ring", "cross-apapc", checkpoint=asked)
        told.append(str(error.value))

    ccmac.solve(
        problem, "ring", "cross-apapc", checkpoint=asked, callback=another, max_iterations=2
    )
    assert len(told) == 2
    again = ccmac.solve(problem, "ring", "cross-apapc", checkpoint=asked)  # free once it has ended
    assert again.status == "optimal"


def test_a_run_that_is_refused_leaves_no_folder_and_no_lock(tmp_path: Path) -> None:
    problem = random_quadratic(0, 4)
    folder = tmp_path / "a" / "state"

    def ends(*_: object) -> None:
        raise RuntimeError("the user's own")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="own"):
            ccmac.solve(problem, "ring", "cross-apapc", checkpoint=folder, callback=ends)
        assert not any(tmp_path.iterdir())
    ccmac.solve(problem, "ring", "cross-apapc", checkpoint=folder, max_iterations=3)
    for _ in range(2):
        with pytest.raises(InputError, match="the seed"):
            ccmac.solve(problem, "ring", "cross-apapc", checkpoint=folder, seed=1)
    ccmac.solve(problem, "ring", "cross-apapc", checkpoint=folder)
