"""A checkpoint's folder while a run has it: one run at a time, and nobody else's files touched.

The lock is on the folder itself and leaves nothing behind. Files of this program are told by how
they begin, for a killed run leaves some that no index names.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from ccmac.errors import InputError
from ccmac.storage.files import fresh, try_file
from ccmac.storage.index import INDEX, MOST, Index, exists
from ccmac.storage.locks import lock
from ccmac.storage.rows import NAME as TRACE
from ccmac.texts import open_file

STATE = re.compile(r"state-[01](-\d{5,})?\.bin")
# What atomic_write leaves of a run that is killed while it writes.
HALF = re.compile(r"\.(checkpoint|probe|trace-\d{6,})\.\w{8}\.(bin|json)")
BEGUN = re.compile(rb'[0-9a-f]{8} \{"run":|\{"arrays":')


def hold(folder: Path, held: ExitStack) -> None:
    """Make the folder and have it until ``held`` is closed; InputError where that cannot be.

    A new folder that is still empty goes then.
    """
    try:
        held.enter_context(fresh(folder, keep=False))
        folder.mkdir(parents=True, exist_ok=True)
        if hasattr(os, "O_DIRECTORY"):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            if not lock(descriptor):
                raise InputError(
                    f"checkpoint {folder}: another run is writing there; wait for it, or choose "
                    "another directory"
                )
        if not exists(folder):
            _refuse_foreign(folder)
        try_file(folder / "probe.bin")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"checkpoint {folder}: cannot be written ({reason}); choose another directory"
        ) from None


def _refuse_foreign(folder: Path) -> None:
    """Without an index of a run: a file that has the name of a state must be one.

    Links and pipes are not written through: with them the run goes on without that state.
    """
    for file in sorted(folder.iterdir()):
        named = STATE.fullmatch(file.name) or TRACE.fullmatch(file.name)
        if named and stat.S_ISREG(file.lstat().st_mode) and not _ours(file):
            raise InputError(
                f"checkpoint {folder}: {file.name} there was not written by ccmac; choose another "
                "directory"
            )


def tidy(folder: Path, *indices: Index) -> None:
    """Remove files of this program's making that no index names."""
    keep = {INDEX, *(file for index in indices for file in index.files())}
    for file in folder.iterdir():
        if file.name not in keep and (HALF.fullmatch(file.name) or _ours(file)):
            file.unlink(missing_ok=True)


def _ours(file: Path) -> bool:
    """Whether a file begins like a state or a trace of its name; an empty one was begun."""
    state = STATE.fullmatch(file.name)
    trace = TRACE.fullmatch(file.name)
    if not (state or trace) or file.is_symlink():
        return False
    try:
        with open_file(file) as stream:
            start = stream.read(16)
    except OSError:
        return False
    if state or not start:
        return not start or BEGUN.match(start) is not None
    if len(start) < 16:
        return False
    iteration, seconds = np.frombuffer(start, dtype="<f8")
    return bool(0 <= iteration < MOST and iteration % 1 == 0 and 0 <= seconds < MOST)
