"""The commands, mounted: one Typer application."""

from __future__ import annotations

from typing import Annotated

import typer

from ccmac.cli import agent, before, complexity, data, lab, power, solve, suite, vfl
from ccmac.version import __version__

EPILOG = (
    "Start with: `ccmac demo`\n\n"
    "Exit codes: 0 done, 1 tolerance not reached, 2 bad input, 3 infeasible, 130 interrupted, "
    "143 terminated."
)
app = typer.Typer(
    name="ccmac",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=EPILOG,
)
app.command("demo", epilog=lab.DEMO_EPILOG)(lab.show_demo)
app.command("geometry", epilog=before.GEOMETRY_EPILOG)(before.show_geometry)
app.command("complexity", epilog=complexity.EPILOG)(complexity.show)
app.command("plan", epilog=before.PLAN_EPILOG)(before.show_plan)
app.command("solve", epilog=solve.EPILOG)(solve.show)
app.command("power", epilog=power.EPILOG)(power.show)
app.command("agent", epilog=agent.EPILOG)(agent.show)
app.command("keys", epilog=agent.KEYS_EPILOG)(agent.keys)
app.add_typer(data.app, name="data")
app.add_typer(suite.app, name="suite")
app.add_typer(vfl.app, name="vfl")
app.command("report")(lab.show_report)
app.command("optimality")(lab.show_optimality)


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
