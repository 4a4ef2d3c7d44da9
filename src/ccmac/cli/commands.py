"""The commands, mounted: one Typer application."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from ccmac.cli.options import opt
from ccmac.version import __version__

EPILOG = (
    "Start with: `ccmac demo`\n\n"
    "Exit codes: 0 done, 1 tolerance not reached, 2 bad input, 3 infeasible, 130 interrupted, "
    "143 terminated."
)
# Module, function or group of commands, and the constant that holds its epilog.
PLACES: dict[str, tuple[str, str, str | None]] = {
    "demo": ("demo", "show", "EPILOG"),
    "geometry": ("geometry", "show", "EPILOG"),
    "complexity": ("complexity", "show", "EPILOG"),
    "plan": ("plan", "show", "EPILOG"),
    "solve": ("solve", "show", "EPILOG"),
    "power": ("power", "show", "EPILOG"),
    "import": ("importing", "show", "EPILOG"),
    "agent": ("agent", "show", "EPILOG"),
    "owners": ("owners", "app", None),
    "relay": ("relay", "show", "EPILOG"),
    "keys": ("keys", "app", None),
    "report": ("report", "show", None),
    "methods": ("methods", "show", None),
    "optimality": ("optimality", "show", None),
    "data": ("data", "app", None),
    "suite": ("suite", "app", None),
    "vfl": ("vfl", "app", None),
}


def application(word: str | None = None) -> typer.Typer:
    """All commands; the one that ``word`` names alone, so that it does not load the others."""
    app = typer.Typer(
        name="ccmac",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
        epilog=EPILOG,
    )
    app.callback()(about)
    for name in [word] if word in PLACES else PLACES:
        place, attribute, words = PLACES[name]
        module = import_module(f"ccmac.cli.{place}")
        found = getattr(module, attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name, epilog=None if words is None else getattr(module, words))(found)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ccmac {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool, opt("Print the version.", "--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Convex problems shared by agents on a network: geometry, plan, certified solution."""
