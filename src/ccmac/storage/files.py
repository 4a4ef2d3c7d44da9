"""Files and directories that appear complete or not at all.

Everything is first written under a hidden temporary name beside its target, flushed to disk, and
then renamed. A rename within one directory is atomic, so a reader, or a run resumed after a crash,
sees the old content or the new content and never a mixture.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ccmac.errors import InputError
from ccmac.texts import shown

# How a name that somebody else may have taken is opened to write.
UNTRUSTED = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC"))
__all__ = ["atomic_directory", "atomic_path", "atomic_write", "flushed_write"]


def atomic_write(path: str | os.PathLike[str], data: bytes | str, *, private: bool = False) -> None:
    """Write ``data`` to ``path`` in one step; text is encoded as UTF-8, newlines kept as given.

    Half a character, which UTF-8 does not know, is written as its escape. A ``private`` file is
    for its owner only.
    """
    content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    target = Path(path)
    descriptor, temporary = _beside(target)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            if not private:
                os.chmod(temporary, _file_mode(target))
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(target.parent)


def flushed_write(path: str | os.PathLike[str], content: bytes, at: int = 0) -> None:
    """Write over what is there, from the byte ``at`` on: on disk when this returns.

    Whoever reads it knows by a checksum whether it is whole; what is longer stays as it was.
    This is what a checkpoint costs, so it makes no more calls than it must. A pipe of that name is
    not waited for, a link not followed: OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | UNTRUSTED, 0o666)
    try:
        os.lseek(descriptor, at, os.SEEK_SET)
        left = memoryview(content)
        while left:  # a disk that is nearly full takes a part, and says so at the next call
            left = left[os.write(descriptor, left) :]
        _synchronize(descriptor)
    finally:
        os.close(descriptor)


# The times of a file need not be on disk.
_synchronize = getattr(os, "fdatasync", os.fsync)


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it takes the name ``path`` when the block succeeds.

    The temporary name keeps the suffix of ``path``, because writers such as ``numpy.savez`` choose
    their format, or append a suffix, by looking at it. If the block raises, ``path`` is untouched.
    """
    target = Path(path)
    descriptor, temporary = _beside(target)
    os.close(descriptor)
    try:
        yield temporary
        # mkstemp makes private files; a result is as readable as any other file of the user.
        if not private:
            temporary.chmod(_file_mode(target))
        _flush(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(target.parent)


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


def try_file(path: Path) -> None:
    """Write beside ``path`` and take it away again: fails where a result would, before the work."""
    with fresh(path.parent, keep=False):
        descriptor, temporary = _beside(path)
        try:
            os.write(descriptor, b"ccmac")
        finally:
            os.close(descriptor)
            temporary.unlink()


def _beside(target: Path) -> tuple[int, Path]:
    """A hidden file beside ``target``, open and private; its parents are made."""
    if target.is_dir():
        raise InputError(f"{target} is a directory: give the name of a file")
    with fresh(target.parent):
        if not target.parent.is_dir():
            _make_parent(target)
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix
        )
    return descriptor, Path(name)


@contextmanager
def atomic_directory(path: str | os.PathLike[str], *, replace: str | None = None) -> Iterator[Path]:
    """Yield an empty sibling directory; it takes the name ``path`` when the block succeeds.

    A ``path`` that holds anything is refused, but for files whose names all match ``replace``: no
    others may go with the old directory. The refusal comes before the block runs, so that no work
    is lost to it, and is repeated before the rename. If the block raises, ``path`` is untouched.
    With ``replace`` the old directory is moved aside first and deleted last: a crash between the
    two renames leaves both versions on disk.
    """
    target = Path(path)
    _check_free(target, replace)
    _make_parent(target)
    try:
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):  # no fault of the name
            raise
        raise InputError(f"{target}: {error.strerror}; choose another place") from None
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        _flush_tree(temporary)
        _check_free(target, replace)
        _take_name(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    flush_directory(target.parent)


def _check_free(target: Path, replace: str | None) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InputError(
            f"{target} exists and is not a directory of its own: choose another output name"
        )
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


def _take_name(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``, moving an existing directory out of the way."""
    if not target.exists():
        temporary.rename(target)
        return
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old."))
    old = aside / target.name
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _make_parent(target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(
            f"cannot create {target}: a parent of it is a file; choose another place"
        ) from None


def _umask() -> int:
    """Return the process's umask, which the system only tells by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _file_mode(target: Path) -> int:
    """Return the mode of the file to be replaced, or that of a newly created file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    return 0o666 & ~_umask()


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def flush_directory(path: Path) -> None:
    """Make a rename durable. Systems that cannot open directories do without."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_tree(root: Path) -> None:
    for folder, _, files in os.walk(root):
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                _flush(file)
        flush_directory(Path(folder))
