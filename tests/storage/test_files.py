"""Files appear complete or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ccmac.errors import InputError
from ccmac.storage.files import atomic_directory, atomic_path, atomic_write, locked


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_failed_block_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "state.bin"
    atomic_write(target, b"old")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_bytes(b"half of the ne")
        raise RuntimeError
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["state.bin"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_modes_follow_the_umask_and_keys_are_private(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        atomic_write(tmp_path / "new", b"")
        with atomic_directory(tmp_path / "folder"):
            pass
        atomic_write(tmp_path / "private", b"x", private=True)
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_directory_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "first"
    with atomic_directory(target) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "x").write_text("1")
        assert not target.exists()
    assert (target / "inner" / "x").read_text() == "1"
    assert names(tmp_path / "runs") == ["first"]


def test_foreign_directory_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years")
    entered = False
    with pytest.raises(InputError, match=r"home is not empty"), atomic_directory(tmp_path / "home"):
        entered = True
    assert not entered
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years"
    assert names(tmp_path) == ["home"]


def test_what_others_put_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "older").touch()
    with (
        pytest.raises(InputError, match="holds 'older', which was not written there"),
        atomic_directory(tmp_path / "run", replace="old|new"),
    ):
        pass
    assert names(tmp_path / "run") == ["older"]


@pytest.mark.parametrize("replace", [None, ".*"])
def test_file_and_link_are_not_replaced_by_a_directory(tmp_path: Path, replace: str | None) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("file", "link"):
        with (
            pytest.raises(InputError, match="not a directory"),
            atomic_directory(tmp_path / name, replace=replace),
        ):
            pass
    assert (tmp_path / "link").is_symlink()


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    count = [0]

    def add() -> None:
        for _ in range(100):
            with locked(tmp_path / "lock"):
                before = count[0]
                os.stat(tmp_path / "lock")  # lets the others run
                count[0] = before + 1

    crowd = [threading.Thread(target=add) for _ in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert count == [400]
    with (
        locked(tmp_path / "lock"),
        pytest.raises(InputError, match="in use"),
        locked(tmp_path / "lock", "in use"),
    ):
        pass
