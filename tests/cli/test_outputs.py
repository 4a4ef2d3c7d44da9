"""The folder of a result, and signals at any moment."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ccmac
from ccmac.cli import solution
from ccmac.errors import InputError
from ccmac.problem import Problem
from cli.conftest import Run

PROGRAM = "from ccmac.cli.main import run; run()"


def solved(saved: Path, out: Path) -> ccmac.Result:
    """A result in ``out``, as a program of its own would write it."""
    problem = Problem.load(saved / "calibration")
    result = ccmac.solve(problem, "ring", "cross-apapc", 1e-3)
    solution.write(out, result, problem.n, {"asked": "nothing"})
    return result


def test_a_result_is_read_as_it_was_written(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "solution-0000-0003.npz").write_bytes(b"of another split")
    (tmp_path / "solution-mine.npz").write_bytes(b"mine")
    result = solved(saved, tmp_path)
    found = ccmac.Result.load(tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(found.x, result.x, strict=True))
    assert np.array_equal(found.multipliers.coupled, result.multipliers.coupled)
    names = {"proof.json", "summary.json", "trace.csv", "solution.npz", "solution-mine.npz"}
    assert {file.name for file in tmp_path.iterdir()} == names


def test_a_solution_of_another_run_than_the_summarys(saved: Path, tmp_path: Path) -> None:
    """As a run leaves it that is killed between the two."""
    solved(saved, tmp_path)
    content = (tmp_path / "solution.npz").read_bytes()
    (tmp_path / "solution.npz").write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match="does not match its checksum"):
        ccmac.Result.load(tmp_path)


@pytest.mark.parametrize("place", ["/proc/new", "file/below"])
@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_a_place_is_tried_before_the_solve(
    run: Run, saved: Path, tmp_path: Path, option: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("ccmac.methods.run.Run.prepare", lambda _: pytest.fail("it was solved"))
    told = run("solve", saved / "calibration", "--method", "cross-apapc", option, place)
    assert told.code == 2
    assert told.err.count("\n") == 1
    assert "cannot" in told.err


def start(saved: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ["solve", str(saved / "calibration"), "--method", "cross-apapc", "--tol", "1e-13"]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments, "--network", "ring", *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts its background jobs with SIGINT ignored, and so would be these tests'."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "inter")]
)
@pytest.mark.parametrize("place", ["ccmac.methods.run.Run.prepare", "typer.main.get_command"])
def test_a_signal_in_the_setup_is_one_line(
    run: Run,
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
    word: str,
    place: str,
) -> None:
    monkeypatch.setattr(place, lambda _: (os.kill(os.getpid(), number), time.sleep(0.3)))
    told = run("solve", saved / "calibration", "--method", "cross-apapc", "--out", "out")
    assert told.code == code
    assert told.err.startswith(f"error: {word}")
    assert told.err.count("\n") == 1


def test_the_checkpoint_of_another_problem_is_refused_by_name(
    run: Run, tmp_path: Path, saved: Path
) -> None:
    """A problem saved anew into the same folder does not continue the old run."""
    problem = Problem.load(saved / "calibration")
    problem.save(tmp_path / "p")
    common = ("solve", "p", "--method", "cross-apapc", "--checkpoint", "state")
    assert run(*common, "--max-iterations", "5").code == 1
    agents = list(problem.agents.values())
    agents[3] = dataclasses.replace(agents[3], objective=agents[2].objective)
    Problem(agents).save(tmp_path / "p", replace=True)
    told = run(*common)
    assert told.code == 2
    assert "checkpoint state: the data of agent 3 differs from the stored" in told.err
    assert told.err.count("\n") == 1
