"""The entry of the console command: turns errors into lines and exit codes.

0 done, 1 ended without reaching the tolerance, 2 bad input, 3 infeasible, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import errno
import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ccmac.cli.signals import INTERRUPTED, TERMINATED, interrupted, listen, terminated, waiting
from ccmac.errors import SHOWN, CcmacError, cut, short

BAD_INPUT = 2
PLACES = frozenset(
    (
        errno.EACCES,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENODEV,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.ENXIO,
        errno.EPERM,
        errno.EROFS,
    )
)


def run() -> None:
    """What the installed command calls."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command; errors become one line on standard error and an exit code."""
    warnings.showwarning = _show_warning
    # What overflows on the way is judged where it arrives: in the result, or in one line.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files need not be text
            stream.reconfigure(errors="backslashreplace")
    listen()
    try:
        return _told_of(arguments)
    except BrokenPipeError:
        # The reader of a pipe went away (ccmac ... | head); nobody is left to tell.
        sys.stderr.close()
        return 1


def _told_of(arguments: Sequence[str]) -> int:
    try:
        if list(arguments) == ["--version"]:  # answered without loading the commands
            from ccmac.version import __version__

            print(f"ccmac {__version__}")
            return 0
        return _command(arguments or ["--help"])
    except KeyboardInterrupt:
        return _ended()
    except CcmacError as error:
        return _told(_abridged(" ".join(map(str, error.args)), arguments), error.exit_code)
    except MemoryError:
        return _told("out of memory: take a larger machine, or more processes with MPI", 1)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _files(error, arguments)
    except Exception as error:
        # Usage errors come from typer's own copy of click or from click itself, by its version.
        if hasattr(error, "format_message"):
            return _usage(error, arguments)
        if interrupted(error):
            return _ended()
        raise


def _ended() -> int:
    """By a signal."""
    return _told("terminated", TERMINATED) if terminated() else _told("interrupted", INTERRUPTED)


def _command(arguments: Sequence[str]) -> int:
    """Parse and run: what typer's own main does, which would end at a signal without a word."""
    with waiting():
        import typer

        from ccmac.cli.commands import application

        command = typer.main.get_command(application(arguments[0]))
    try:
        with command.make_context("ccmac", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _files(error: OSError, arguments: Sequence[str]) -> int:
    """A file or folder that the system refuses; a fault of the disk is no fault of the input."""
    what = "a file" if error.filename is None else str(error.filename)
    reason = error.strerror or type(error).__name__
    message = _abridged(f"{what}: {reason}; choose another place", arguments)
    return _told(message, BAD_INPUT if error.errno in PLACES else 1)


def _usage(error: Any, arguments: Sequence[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # some versions raise it, others do not
        print(error.format_message())
        return 0
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ccmac"
    message = _abridged(error.format_message().rstrip("."), arguments)
    return _told(f"{message}; see: {command} --help", BAD_INPUT)


def _abridged(message: str, arguments: Sequence[str]) -> str:
    """Without the middle of long arguments, which blanks hide from :func:`short`."""
    for given in arguments:
        value = given.partition("=")[2]
        for said in (given, value, repr(given)[1:-1], repr(value)[1:-1], *given.split("/")):
            most = 2 * SHOWN if "/" in said else SHOWN
            message = message.replace(said, cut(said, most)) if len(said) > most else message
    return message


def _told(message: str, code: int) -> int:
    _say(f"error: {short(message)}")
    return code


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {short(str(message))}")
