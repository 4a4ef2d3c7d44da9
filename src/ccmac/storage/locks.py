"""Locks between processes, which the system releases where a process is killed."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ccmac.errors import InputError
from ccmac.storage.files import UNTRUSTED


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
        if not lock(descriptor, until):
            raise InputError(busy or f"{path} cannot be locked")
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def lock(descriptor: int, until: float | None = 0.0) -> bool:
    """Lock what is open, by the monotonic time ``until`` (None: whenever that may be); False where
    another process has it. True too where there are no locks.
    """
    if sys.platform == "win32":
        return True
    if _flock(descriptor, wait=until is None):
        return True
    left = 0.0 if until is None else until - time.monotonic()
    return left > 0 and _waited(descriptor, left)


def _flock(descriptor: int, *, wait: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def _waited(descriptor: int, seconds: float) -> bool:
    """Whether the lock comes in time. The system's call has no limit: a thread waits in it, with a
    descriptor of its own, and gives back what comes too late.
    """
    own = os.dup(descriptor)
    came = threading.Event()

    def wait() -> None:
        _flock(own, wait=True)
        came.set()
        os.close(own)  # the lock stays with the other descriptor, unless that is closed

    threading.Thread(target=wait, daemon=True).start()
    return came.wait(seconds)
