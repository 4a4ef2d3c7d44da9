"""``ccmac owners``: folders to begin with, and a trial of all owners on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac.owners.scaffold import new_owners, run_all

app = typer.Typer(no_args_is_help=True, help="Runs between organisations: to begin with.")
Place = Annotated[Path, typer.Argument(metavar="NAME", help="The folder of the run.")]
Port = Annotated[int, typer.Option("--port", help="The first owner listens here, others after it.")]
Requests = Annotated[
    bool, typer.Option("--requests", help="Requests for certificates instead of a trial's.")
]
ByRelay = Annotated[
    str | None,
    typer.Option(
        "--relay", metavar="HOST:PORT", help="Nobody takes connections: all dial a relay, made too."
    ),
]


@app.command("new", epilog="Example: `ccmac owners new supply --agents north,south,west`")
def new(
    place: Place,
    *,
    agents: Annotated[str, typer.Option("--agents", help="The owners' names: north,south,west.")],
    port: Port = 7000,
    requests: Requests = False,
    relay: ByRelay = None,
    cvxpy: Annotated[bool, typer.Option("--cvxpy", help="The example is in CVXPY.")] = False,
) -> None:
    """Make a folder for each owner: settings, keys, an example, and a README. It runs as it is."""
    made = new_owners(place, agents.split(","), port, requests=requests, relay=relay, cvxpy=cvxpy)
    typer.echo("\n".join(map(str, made)))


@app.command("try", epilog="Example: `ccmac owners try supply`")
def attempt(place: Place) -> None:
    """Run all owners (or parties) of a folder on this machine, each in a process of its own."""
    raise typer.Exit(run_all(place))
