"""Folders that others use too: several writers at once, and files that somebody else put there."""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ccmac.errors import InputError
from ccmac.storage import generations
from ccmac.storage.files import try_file
from ccmac.storage.locks import lock, locked

INDEX = "summary.json"
PART = "solution.npz"


def write(out: Path, content: bytes) -> None:
    """One generation of three files."""
    said = json.dumps({"parts": {PART: zlib.crc32(content)}})
    generations.write(out, {PART: content, "trace.csv": "0", INDEX: said}, INDEX)


def beside(works: list[Callable[[], None]]) -> list[int]:
    """Exit codes of processes that do these at once."""
    children = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


def test_writers_at_once_leave_one_whole_generation(tmp_path: Path) -> None:
    def often(byte: int) -> None:
        for size in range(1, 15):
            generations.attempt(tmp_path, INDEX, PART)
            write(tmp_path, bytes([byte]) * 1000 * size)

    assert beside([lambda k=k: often(k) for k in range(3)]) == [0, 0, 0]  # type: ignore[misc]
    assert sorted(os.listdir(tmp_path)) == sorted((INDEX, PART, "trace.csv"))
    said = json.loads((tmp_path / INDEX).read_text())
    assert said["parts"][PART] == zlib.crc32((tmp_path / PART).read_bytes())


def test_a_writer_that_does_not_end_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "PATIENCE", 0.1)
    with (
        locked(tmp_path / generations.LOCK),
        pytest.raises(InputError, match="another run is writing there"),
    ):
        write(tmp_path, b"new")
    assert not any(tmp_path.iterdir())


def test_a_lock_is_waited_for_and_given_back_where_it_comes_too_late(tmp_path: Path) -> None:
    files = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(3)]
    first, second, third = files
    assert lock(first)
    assert not lock(second)
    assert not lock(second, time.monotonic() + 0.05)
    os.close(second)  # whoever still waits for it has a descriptor of its own
    released = threading.Timer(0.1, os.close, (first,))
    released.start()
    assert lock(third, time.monotonic() + 30.0)
    released.join()
    another = os.open(tmp_path / "lock", os.O_RDWR)
    assert not lock(another)
    os.close(third)
    assert lock(another, time.monotonic() + 30.0)
    os.close(another)


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    (tmp_path / generations.LOCK).touch()
    begun = time.monotonic()
    write(tmp_path, b"new")
    assert time.monotonic() - begun < 10
    assert not (tmp_path / generations.LOCK).exists()


@pytest.mark.parametrize("name", [INDEX, PART, "trace.csv"])
@pytest.mark.parametrize("text", ["mine", '{"my": "summary"}', ""])
def test_files_of_somebody_else_are_not_replaced(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(OSError, match=f"{name} there was not written by ccmac"):
        generations.attempt(tmp_path, INDEX, PART, "trace.csv")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {name: text}


def test_a_part_that_no_run_names_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path, b"whole")
    generations.attempt(tmp_path, INDEX, PART, "trace.csv")
    (tmp_path / "solution-0000-0001.npz").write_text("mine")
    with pytest.raises(OSError, match=r"solution-0000-0001\.npz there was not written by ccmac"):
        generations.attempt(tmp_path, INDEX, "trace.csv", "solution-0000-0001.npz")


@pytest.mark.parametrize(
    "index", ['{"status": "optimal", "ledger": {}}', '{"format": "ccmac-vfl-party", "party": "a"}']
)
def test_a_run_before_is_replaced(tmp_path: Path, index: str) -> None:
    for name, text in ((INDEX, index), (PART, "old"), ("trace.csv", "old")):
        (tmp_path / name).write_text(text)
    generations.attempt(tmp_path, INDEX, PART, "trace.csv")


def test_trying_a_file_leaves_one_of_that_name_alone(tmp_path: Path) -> None:
    (tmp_path / "probe.bin").write_text("mine")
    try_file(tmp_path / "probe.bin")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["mine"]
