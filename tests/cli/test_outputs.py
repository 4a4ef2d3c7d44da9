"""One result per output folder, nobody else's files touched, nothing lost when writing fails."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.cli import solution
from ccmac.cli.solution import SUMMARY, read_solution
from ccmac.errors import InputError
from ccmac.problem import Problem
from ccmac.storage import generations
from ccmac.storage.files import atomic_write
from cli.conftest import Run

PROGRAM = "from ccmac.cli.main import run; run()"


def write_parts(out: Path, ends: list[int], value: float) -> list[str]:
    """Eight agents in parts as ranks write them, all x equal to ``value``; what is in it."""
    parts = {}
    number = generations.number()
    place = generations.staged(out, number)
    for start, stop in pairwise(ends):
        arrays = {"z": np.zeros(1)} | {f"x{i}": np.full(2, value) for i in range(start, stop)}
        name = solution.part_name(range(start, stop), 8)
        content = solution.packed(arrays)
        parts[name] = zlib.crc32(content)
        atomic_write(place / name, content)
    atomic_write(place / "trace.csv", str(value))
    atomic_write(place / SUMMARY, json.dumps({"parts": parts, "value": value}))
    generations.publish(out, number, SUMMARY)
    return [*parts, SUMMARY, "trace.csv"]


def values(out: Path) -> set[float]:
    """What a reader sees: of the solution, the trace and the summary."""
    seen = {float(v) for x in read_solution(out, range(8)).x for v in x}
    seen.add(float(generations.current(out, "trace.csv").read_text()))
    return seen | {json.loads(generations.current(out, SUMMARY).read_text())["value"]}


def test_another_split_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    write_parts(tmp_path, [0, 4, 8], 1.0)
    mine = ("solution-mine.npz", "solution.npz.bak", "solution-0000-0007.npz", ".next")
    for name in mine:
        (tmp_path / name).write_bytes(b"mine")
    names = write_parts(tmp_path, [0, 3, 6, 8], 2.0)
    assert values(tmp_path) == {2.0}
    assert {file.name for file in tmp_path.iterdir()} == {*names, *mine}


def test_a_part_that_somebody_has_changed_is_not_removed(tmp_path: Path) -> None:
    write_parts(tmp_path, [0, 4, 8], 1.0)
    (tmp_path / "solution-0000-0003.npz").write_bytes(b"mine")
    names = write_parts(tmp_path, [0, 8], 2.0)
    assert {file.name for file in tmp_path.iterdir()} == {*names, "solution-0000-0003.npz"}


CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod")


def killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Run ``work`` in a child that is killed before its change number ``moment``; whether it was.

    Counted are calls that change a file or folder, as the interpreter's audit tells them.
    """
    pid = os.fork()
    if pid == 0:
        left = [moment]

        def audit(event: str, _: tuple[Any, ...]) -> None:
            if event in CHANGES:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(audit)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("ends", [[0, 8], [0, 4, 8], [0, 3, 6, 8]])
def test_killed_at_any_moment_the_folder_is_the_old_run_or_the_new_one(
    tmp_path: Path, ends: list[int]
) -> None:
    seen = []
    moment = 0
    while True:
        out = tmp_path / str(moment)
        write_parts(out, [0, 4, 8], 1.0)
        killed = killed_at(moment, lambda out=out: write_parts(out, ends, 2.0))  # type: ignore[misc]
        [value] = values(out)  # one generation, the same in all of its files
        seen.append(value)
        names = write_parts(out, [0, 2, 8], 3.0)
        assert values(out) == {3.0}
        assert sorted(file.name for file in out.iterdir()) == sorted(names)
        if not killed:
            break
        moment += 1
    assert moment > 12
    assert seen == sorted(seen)  # first the old one, from one moment on the new one
    assert {seen[0], seen[-1]} == {1.0, 2.0}


def test_a_reader_beside_a_writer_sees_whole_runs(tmp_path: Path) -> None:
    write_parts(tmp_path, [0, 4, 8], 1.0)
    pid = os.fork()
    if pid == 0:
        for k in range(40):
            write_parts(tmp_path, [0, 4, 8] if k % 2 else [0, 8], 2.0 + k)
        os._exit(0)
    while not os.waitpid(pid, os.WNOHANG)[0]:
        assert len({float(v) for x in read_solution(tmp_path, range(8)).x for v in x}) == 1


@pytest.mark.parametrize("text", ["{", '{"parts": 3}', '{"parts": {"../x.npz": 1}}', "[" * 9999])
def test_a_summary_that_is_none(tmp_path: Path, text: str) -> None:
    write_parts(tmp_path, [0, 8], 1.0)
    (tmp_path / SUMMARY).write_text(text)
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
    def full(path: Path, data: bytes) -> None:
        if path.parent.parent.name == "out":
            raise OSError(errno.ENOSPC, "No space left on device")
        atomic_write(path, data)

    monkeypatch.setattr(generations, "atomic_write", full)
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

    monkeypatch.setattr(generations, "atomic_write", full)
    told = run("solve", saved / "dispatch", "--out", "out")
    assert told.code == 1
    assert told.err.count("\n") == 1


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


def test_a_signal_that_an_extension_turns_into_its_own_error(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException as error:
            raise ImportError("initialization failed") from error

    monkeypatch.setattr("ccmac.methods.run.Run.prepare", load)
    told = run("solve", saved / "calibration", "--method", "cross-apapc")
    assert (told.code, told.err) == (143, "error: terminated\n")


def test_the_handler_of_a_program_stays(saved: Path) -> None:
    """A library does not take SIGTERM over; only the command does."""
    problem = Problem.load(saved / "calibration")
    seen = []

    def mine(number: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGTERM, mine)
    try:
        ccmac.solve(
            problem,
            "ring",
            "cross-apapc",
            max_iterations=3,
            callback=lambda *_: seen.append(signal.getsignal(signal.SIGTERM)),
        )
        assert [*seen, signal.getsignal(signal.SIGTERM)] == [mine] * 4
    finally:
        signal.signal(signal.SIGTERM, before)


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
