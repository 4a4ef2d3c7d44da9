"""Files and directories that appear complete or not at all, and one writer at a time.

Everything is first written under a hidden temporary name in the same directory and then renamed,
which is atomic: a reader sees the old content or the new content and never a mixture.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ccmac.errors import InputError
from ccmac.texts import shown


def atomic_write(path: str | os.PathLike[str], data: bytes | str, *, private: bool = False) -> None:
    """Write ``data`` to ``path`` in one step; text is encoded as UTF-8, newlines kept as given.

    A ``private`` file is for its owner only.
    """
    with atomic_path(path, private=private) as temporary:
        content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
        temporary.write_bytes(content)


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield an empty file next to ``path``; it takes the name ``path`` when the block succeeds.

    The temporary name keeps the suffix, by which writers such as ``numpy.savez`` choose their
    format. If the block raises, ``path`` is untouched.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a directory: give the name of a file")
    with fresh(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
        os.close(
            os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
        )
        try:
            yield temporary
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def try_file(path: Path) -> None:
    """Write there and take it away again: fails where a result would, before the work."""
    with fresh(path.parent, keep=False), suppress(_Tried), atomic_path(path):
        raise _Tried


class _Tried(Exception):
    """A file could be made."""


@contextmanager
def fresh(folder: Path, *, keep: bool = True) -> Iterator[None]:
    """Folders up to this one that the block makes go again where it fails, or is a trial only.

    One that holds something stays.
    """
    new = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        yield
        new = [] if keep else new
    finally:
        for place in new:
            with suppress(OSError):
                place.rmdir()


@contextmanager
def atomic_directory(path: str | os.PathLike[str], *, replace: str | None = None) -> Iterator[Path]:
    """Yield an empty sibling directory; it takes the name ``path`` when the block succeeds.

    A ``path`` that holds anything is refused, but for files whose names all match ``replace``. The
    refusal comes before the block runs. If the block raises, ``path`` is untouched.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        _check_free(target, replace)
        temporary.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}; choose another place") from None
    try:
        yield temporary
        _check_free(target, replace)
        old = target.with_name(f"{temporary.name}.old")
        if target.is_dir():
            target.rename(old)
        temporary.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _check_free(target: Path, replace: str | None) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InputError(f"{target} exists and is not a directory: choose another output name")
    names = sorted(os.listdir(target))
    if names and replace is None:
        raise InputError(
            f"directory {target} is not empty: choose another one, or allow it to be replaced"
        )
    for name in names:
        if not re.fullmatch(replace or "", name):
            raise InputError(
                f"directory {target} holds {shown(name)}, which was not written there by ccmac: "
                "choose another directory, or move it away"
            )


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """One process at a time holds ``path``; the system releases the lock of a killed one.

    Waits for the others, or, where the words of ``busy`` are given, raises InputError with them.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=-1 if busy is None else 0)
    except Timeout:
        raise InputError(busy or f"{path} cannot be locked") from None
    try:
        yield
    finally:
        lock.release()
