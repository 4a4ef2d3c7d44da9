"""The entry of the console command: turns errors into lines and exit codes.

0 done, 1 ended without reaching the tolerance, 2 bad input, 3 infeasible or unbounded,
130 interrupted, 143 terminated.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ccmac.cli.signals import INTERRUPTED, TERMINATED, interrupted, listen, terminated
from ccmac.errors import CcmacError, short

BAD_INPUT = 2
FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ENOMEM)  # no fault of the input


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
        return _command(arguments or ["--help"])
    except BrokenPipeError:
        # The reader of a pipe went away (ccmac ... | head); nobody is left to tell.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return _ended()
    except CcmacError as error:
        return _say_error(str(error), error.exit_code)
    except MemoryError:
        return _say_error("out of memory: take a larger machine, or more processes with MPI", 1)
    except OSError as error:
        what = "a file" if error.filename is None else str(error.filename)
        reason = error.strerror or type(error).__name__
        code = 1 if error.errno in FAULTS else BAD_INPUT
        return _say_error(f"{what}: {reason}; choose another place", code)
    except Exception as error:
        # Usage errors come from typer's own copy of click or from click itself, by its version.
        if hasattr(error, "format_message"):
            return _usage(error)
        if interrupted(error):
            return _ended()
        raise


def _command(arguments: Sequence[str]) -> int:
    """Parse and run: what typer's own main does, which would end at a signal without a word."""
    if list(arguments) == ["--version"]:  # answered without loading the commands
        from ccmac.version import __version__

        print(f"ccmac {__version__}")
        return 0
    import typer

    from ccmac.cli.commands import application

    if "_CCMAC_COMPLETE" in os.environ:  # a shell asks what may follow
        typer.main.get_command(application())(prog_name="ccmac")
    command = typer.main.get_command(application(arguments[0]))
    try:
        with command.make_context("ccmac", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _ended() -> int:
    """By a signal."""
    if terminated():
        return _say_error("terminated", TERMINATED)
    return _say_error("interrupted", INTERRUPTED)


def _usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # some versions raise it, others do not
        print(error.format_message())
        return 0
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ccmac"
    return _say_error(f"{error.format_message().rstrip('.')}; see: {command} --help", BAD_INPUT)


def _say_error(message: str, code: int) -> int:
    print(f"error: {short(message)}", file=sys.stderr, flush=True)
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {short(str(message))}", file=sys.stderr, flush=True)
