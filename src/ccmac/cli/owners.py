"""``ccmac owners``: folders to begin with, and a trial of all owners on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ccmac.cli.options import opt
from ccmac.owners.scaffold import Scaffold, run_all

app = typer.Typer(no_args_is_help=True, help="Runs between organisations: to begin with.")
Place = Annotated[Path, typer.Argument(metavar="NAME", help="The folder of the run.")]
Port = Annotated[int, opt("The first owner listens here, others after it.", "--port")]
Requests = Annotated[bool, opt("Requests for certificates instead of a trial's.", "--requests")]
ByRelay = Annotated[
    str | None,
    opt("Nobody takes connections: all dial a relay, made too.", "--relay", metavar="HOST:PORT"),
]


@app.command("new", epilog="Example: `ccmac owners new supply --agents north,south,west`")
def new(
    place: Place,
    *,
    agents: Annotated[str, opt("The owners' names: north,south,west.")],
    port: Port = 7000,
    requests: Requests = False,
    relay: ByRelay = None,
    cvxpy: Annotated[bool, opt("The example is in CVXPY.", "--cvxpy")] = False,
) -> None:
    """Make a folder for each owner: settings, keys, an example, and a README. It runs as it is."""
    made = Scaffold(place, agents.split(","), port, requests, relay).owners(cvxpy=cvxpy)
    list_made(place, made, runs=not (requests or relay))


def list_made(place: Path, made: Sequence[Path], *, runs: bool) -> None:
    """The folders, and what comes next; whether all ``runs`` on this machine as it is."""
    typer.echo("\n".join(map(str, made)))
    here = f"; all of them on this machine: ccmac owners try {place}" if runs else ""
    typer.echo(f"next: README.md in every folder{here}", err=True)


@app.command("try", epilog="Example: `ccmac owners try supply`")
def attempt(place: Place) -> None:
    """Run all owners (or parties) of a folder on this machine, each in a process of its own."""
    raise typer.Exit(run_all(place))
