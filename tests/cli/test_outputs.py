"""One result per output folder, nobody else's files touched, nothing lost when writing fails."""

from __future__ import annotations

import dataclasses
import errno
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmac.cli import kept, solution
from ccmac.cli.solution import read_solution
from ccmac.errors import InputError
from ccmac.problem import Problem
from cli.conftest import Run

PROGRAM = "from ccmac.cli.main import run; run()"


def write_parts(out: Path, ends: list[int], value: float) -> dict[str, int]:
    """Eight agents in parts, all x equal to ``value``."""
    parts = {}
    for start, stop in pairwise(ends):
        arrays = {"z": np.zeros(1)} | {f"x{i}": np.full(2, value) for i in range(start, stop)}
        name = solution.part_name(range(start, stop), 8)
        parts[name] = solution.write_solution(out, name, arrays)
    return parts


class Told:
    """As much of a result as a summary needs."""

    class trace:  # noqa: N801
        @staticmethod
        def to_csv() -> str:
            return ""

    def as_dict(self) -> dict[str, Any]:
        return {}


def test_another_split_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    solution.write_summary(tmp_path, Told(), {}, write_parts(tmp_path, [0, 4, 8], 1.0))  # type: ignore[arg-type]
    for name in ("solution-mine.npz", "solution.npz.bak"):
        (tmp_path / name).write_bytes(b"mine")
    parts = write_parts(tmp_path, [0, 3, 6, 8], 2.0)
    # Before the summary is there the folder still means the old run.
    assert all((x == 1.0).all() for x in read_solution(tmp_path, range(8)).x)
    solution.write_summary(tmp_path, Told(), {}, parts)  # type: ignore[arg-type]
    assert all((x == 2.0).all() for x in read_solution(tmp_path, range(8)).x)
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {*parts, "summary.json", "trace.csv", "solution-mine.npz", "solution.npz.bak"}


def test_half_a_generation_is_not_read(tmp_path: Path) -> None:
    solution.write_summary(tmp_path, Told(), {}, write_parts(tmp_path, [0, 4, 8], 1.0))  # type: ignore[arg-type]
    write_parts(tmp_path, [0, 4], 2.0)
    with pytest.raises(InputError, match="not the file its summary names"):
        read_solution(tmp_path, range(8))


@pytest.mark.parametrize("text", ["{", '{"parts": 3}', '{"parts": {"../x.npz": 1}}', "[" * 9999])
def test_a_summary_that_is_none(tmp_path: Path, text: str) -> None:
    write_parts(tmp_path, [0, 8], 1.0)
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(InputError, match=r"summary\.json"):
        read_solution(tmp_path, range(8))


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


def test_a_refused_run_leaves_no_empty_folder(run: Run, saved: Path, tmp_path: Path) -> None:
    told = run("solve", saved / "kinked", "--method", "cross-apapc", "--out", "out")
    assert told.code == 2
    assert not (tmp_path / "out").exists()


def test_a_full_disk_after_the_solve_loses_nothing(
    run: Run, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = solution.atomic_write

    def full(path: Path, data: bytes) -> None:
        if path.parent.name == "out":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, data)

    monkeypatch.setattr(solution, "atomic_write", full)
    told = run("solve", saved / "calibration", "--method", "cross-apapc", "--out", "out")
    assert told.code == 1
    assert told.err.count("error:") == 1
    assert "No space left on device" in told.err
    [place] = tmp_path.glob("ccmac-rescue-*")
    assert place.name in told.err
    assert len(read_solution(place, range(8)).x) == 8


def test_where_nothing_can_be_written_it_is_one_line(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(solution, "atomic_write", full)
    told = run("solve", saved / "dispatch", "--out", "out")
    assert told.code == 1
    assert told.err.count("\n") == 1


def start(saved: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ["solve", str(saved / "calibration"), "--method", "cross-apapc", "--tol", "1e-13"]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments, "--network", "ring", *more], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_in_the_loop_keeps_the_state(
    saved: Path, tmp_path: Path, number: int, code: int
) -> None:
    job = start(saved, tmp_path, "--checkpoint", "state", "--every", "1", "--out", "out")
    until = time.monotonic() + 60
    while not (tmp_path / "state" / "checkpoint.json").exists() and time.monotonic() < until:
        time.sleep(0.002)
    job.send_signal(number)
    _, err = job.communicate(timeout=60)
    assert job.returncode == code, err
    assert "Traceback" not in err
    assert len(read_solution(tmp_path / "out", range(8)).x) == 8


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "inter")]
)
def test_a_signal_in_the_setup_is_one_line(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int, word: str
) -> None:
    monkeypatch.setattr(
        "ccmac.methods.run.Run.prepare", lambda _: (os.kill(os.getpid(), number), time.sleep(5))
    )
    told = run("solve", saved / "calibration", "--method", "cross-apapc", "--out", "out")
    assert told.code == code
    assert told.err.startswith(f"error: {word}")
    assert told.err.count("\n") == 1


def test_the_handler_of_a_program_stays(tmp_path: Path) -> None:
    """A library does not take SIGTERM over; only the command does."""
    assert not hasattr(signal.SIG_DFL, "note")
    assert kept.prepare(tmp_path / "new")
    assert not kept.prepare(tmp_path / "new")


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
    assert "checkpoint state: the objective of agent 3 differs from the stored" in told.err
    assert told.err.count("\n") == 1
