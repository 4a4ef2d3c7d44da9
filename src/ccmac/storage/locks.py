"""Locks between processes, which the system releases where a process is killed."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ccmac.errors import InputError
from ccmac.storage.files import UNTRUSTED

PAUSE = 0.02


@contextmanager
def locked(path: Path, busy: str | None = None, patience: float = 0.0) -> Iterator[None]:
    """One process at a time holds ``path``; the system releases the lock of a killed one.

    Waits for the others, or, where the words of ``busy`` are given, raises InputError with them
    after ``patience`` seconds. The file goes with the lock. Where the system has no such locks,
    everybody enters.
    """
    if sys.platform == "win32":
        yield
        return
    until = None if busy is None else time.monotonic() + patience
    while (descriptor := _held(path, busy, until)) is None:
        pass
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _held(path: Path, busy: str | None, until: float | None) -> int | None:
    """The file, open and locked; None where the one who had it has just taken it away."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | UNTRUSTED, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise InputError(f"{path} is no ordinary file: move it away") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{path} is no ordinary file: move it away")
        while not lock(descriptor, wait=until is None):
            if until is None or time.monotonic() >= until:
                raise InputError(busy or f"{path} cannot be locked")
            time.sleep(PAUSE)
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock what is open; False where another process has. True too where there are no locks."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True
