"""The entry of the console command: mounts the commands, turns errors into lines and exit codes.

0 done, 1 ended without reaching the tolerance, 2 bad input, 3 infeasible, 130 interrupted.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ccmac.cli import complexity, data, demo, geometry, plan, solve
from ccmac.errors import CcmacError
from ccmac.version import __version__

BAD_INPUT = 2
INTERRUPTED = 130
# Mounted when their module is part of the installation, imported when they are asked for.
OPTIONAL = ("suite", "report", "optimality")

EPILOG = (
    "Start with: `ccmac demo`\n\n"
    "Exit codes: 0 done, 1 tolerance not reached, 2 bad input, 3 infeasible, 130 interrupted."
)


class Commands(TyperGroup):
    """The commands of this package, and those optional ones that are installed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order in which one meets them."""
        return [*super().list_commands(ctx), *(name for name in OPTIONAL if _installed(name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; an optional one is imported now."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in OPTIONAL and _installed(cmd_name):
            found = _mounted(cmd_name)
        return found


app = typer.Typer(
    name="ccmac",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=EPILOG,
)
demo.register(app)
geometry.register(app)
complexity.register(app)
plan.register(app)
solve.register(app)
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ccmac {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Convex problems shared by agents on a network: geometry, plan, certified solution."""


def run() -> None:
    """What the installed command calls."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command; errors become one line on standard error and an exit code."""
    warnings.showwarning = _show_warning
    try:
        code = typer.main.get_command(app).main(
            args=list(arguments), prog_name="ccmac", standalone_mode=False
        )
    except CcmacError as error:
        return _told(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _told("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe went away (ccmac ... | head); nobody is left to tell.
        sys.stderr.close()
        return 1
    except Exception as error:
        # Usage errors come from typer's own copy of click or from click itself, by its version.
        if not hasattr(error, "format_message"):
            raise
        return _usage(error)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help() if error.ctx is not None else error.format_message())
        return BAD_INPUT
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ccmac"
    message = " ".join(error.format_message().split()).rstrip(".")
    return _told(f"{message}; see: {command} --help", BAD_INPUT)


def _told(message: str, code: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"warning: {' '.join(str(message).split())}", err=True)


def _installed(name: str) -> bool:
    return importlib.util.find_spec(f"ccmac.cli.{name}") is not None


def _mounted(name: str) -> Any:
    """The module's ``app``, or its function of the same name, as a command."""
    module = importlib.import_module(f"ccmac.cli.{name}")
    found = getattr(module, "app", None)
    if found is None:
        found = typer.Typer(rich_markup_mode="markdown")
        found.command(name)(getattr(module, name))
    command = typer.main.get_command(found)
    command.name = name
    return command
