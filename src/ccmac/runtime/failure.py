"""How a failing process ends the whole job: one line that names the rank and its agents."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ccmac.errors import CcmacError
from ccmac.runtime.partition import describe

INTERRUPTED = 130


def message(error: BaseException, rank: int, agents: range | None) -> str:
    """One line; an error that was not raised on purpose also tells where it comes from."""
    who = f"rank {rank}" + (f" ({describe(agents)})" if agents is not None else "")
    what = str(error) if isinstance(error, CcmacError) else unexpected(error)
    if isinstance(error, KeyboardInterrupt):
        what = "interrupted"
    return f"ccmac: {who}: {' '.join(what.split())}"


def unexpected(error: BaseException) -> str:
    """An error that was not raised on purpose, and where it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {error}"


@contextmanager
def one_line() -> Iterator[None]:
    """Between owners whatever fails is one line: false numbers of others may be behind it."""
    try:
        yield
    except (CcmacError, OSError, MemoryError):
        raise
    except Exception as error:
        raise CcmacError(f"{unexpected(error)}; are all owners' numbers right?") from error


@contextmanager
def aborting(
    abort: Callable[[int], object], rank: int, agents: range | None, *, alone: bool
) -> Iterator[None]:
    """End the job by ``abort(exit code)`` when the block raises; no rank is left waiting.

    SystemExit passes: it is the way in which all ranks leave together. So does every error of a
    process that is ``alone``.
    """
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        if alone:
            raise
        if rank:
            # An error that every rank meets (a bad argument) is said by rank 0 alone: the others
            # give it time to speak and to end the job before they speak themselves.
            time.sleep(0.5)
        sys.stdout.flush()
        sys.stderr.write(message(error, rank, agents) + "\n")
        sys.stderr.flush()
        # The launcher forwards the line through a pipe of its own and drops what it has not yet
        # read when the job is aborted.
        time.sleep(0.3)
        interrupted = isinstance(error, KeyboardInterrupt)
        abort(INTERRUPTED if interrupted else getattr(error, "exit_code", 1))
        raise
