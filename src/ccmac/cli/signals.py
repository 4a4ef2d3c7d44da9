"""SIGTERM for the command line: the same as Ctrl-C, with an exit code of its own.

Outside the loop of a run it ends the command in one line; the loop, which sees :meth:`note`, ends
after the current step and keeps the state.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

INTERRUPTED = 130
TERMINATED = 143


class Termination:
    """The handler of SIGTERM; remembers that it was sent."""

    def __init__(self) -> None:
        self.seen = False

    def note(self) -> None:
        """Somebody else deals with it."""
        self.seen = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """End what is under way."""
        self.seen = True
        raise KeyboardInterrupt


def listen() -> None:
    """Take SIGTERM over, unless somebody has done so already."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)
    if before is signal.SIG_DFL or isinstance(before, Termination):
        signal.signal(signal.SIGTERM, Termination())


def interrupted(error: BaseException | None) -> bool:
    """Whether an exception came of a signal, which somebody's code turned into another error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def terminated() -> bool:
    """Whether SIGTERM was sent since :func:`listen`."""
    handler = signal.getsignal(signal.SIGTERM)
    return isinstance(handler, Termination) and handler.seen
