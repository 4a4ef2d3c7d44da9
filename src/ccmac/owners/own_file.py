"""An owner's own Python file that defines its agent: executed, because it is the owner's."""

from __future__ import annotations

import os
import runpy
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.problem import Agent
from ccmac.texts import SHOWN, cut


def run_own(path: Path) -> Mapping[str, Any]:
    """What the file defines, among it ``agent``; it may import modules that lie next to it."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name your own file") from None
    mine = not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0)
    if not mine or status.st_mode & stat.S_IWOTH:
        raise InputError(
            f"{path}: belongs to somebody else, or others may write it; only a file of your own is "
            "executed: chmod o-w, or copy what you trust"
        )
    sys.path.insert(0, str(path.parent.resolve()))
    with own_errors(path):
        found = runpy.run_path(str(path))
    if not isinstance(found.get("agent"), Agent):
        raise InputError(f"{path}: defines no agent; write agent = ccmac.cvx.Agent(...)")
    return found


@contextmanager
def own_errors(path: Path) -> Iterator[None]:
    """What the owner's own code raises becomes one line with its place."""
    try:
        yield
    except (KeyboardInterrupt, InputError):
        raise
    except BaseException as error:  # the file may raise anything, SystemExit too
        trace = traceback.extract_tb(error.__traceback__)
        lines = [step.lineno for step in trace if step.filename == str(path)]
        at = f", line {lines[-1]}" if lines else ""
        words = cut(" ".join(str(error).split()), SHOWN)
        raise InputError(f"{path}{at}: {type(error).__name__}: {words}") from error
