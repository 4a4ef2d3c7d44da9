"""``ccmac data``: which sets are here, are they intact, where is their file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, print_json, table
from ccmac.paper.data import RECORDS, Status, locate, resolve, status, verify

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="LIBSVM data sets: $CCMAC_DATA, then the cache, then a download."
)


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """Show every known set and where it is found; downloads nothing."""
    _print([status(record) for record in RECORDS.values()], as_json)


@app.command("verify")
def verify_sets(
    names: Annotated[
        list[str] | None, typer.Argument(help="Sets to check; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the files found with the checksums on record; exit code 1 if one is bad."""
    records = [resolve(name) for name in names] if names else list(RECORDS.values())
    found = [verify(record) for record in records]
    _print(found, as_json)
    if any(one.state == "bad" for one in found):
        raise typer.Exit(1)


@app.command("path")
def path_of(
    name: Annotated[str, typer.Argument(help="Name of a set.")], as_json: AsJson = False
) -> None:
    """Print the path of a set's file, downloading it if it is not here."""
    path = locate(name)
    if as_json:
        print_json({"name": resolve(name).name, "path": path})
    else:
        typer.echo(str(path))


def _print(found: list[Status], as_json: bool) -> None:
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [
        (
            one.name,
            f"{one.rows:,}",
            f"{one.features:,}",
            "" if one.size is None else f"{one.size:,}",
            one.state,
            one.path or "(not on this machine)",
        )
        for one in found
    ]
    typer.echo(table("set|>rows|>features|>size|status|path", rows))
    for one in found:
        if one.detail:
            typer.echo(f"{one.name}: {one.detail}")
