"""``ccmac keys``: certificates for a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac.errors import InputError
from ccmac.storage.keys import DAYS, make_keys
from ccmac.storage.owner import LARGEST

EPILOG = "Example: `ccmac keys keys --agents 4`"


def show(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files are written.")],
    *,
    agents: Annotated[
        int, typer.Option("--agents", min=0, max=LARGEST["agents"], help="How many agents.")
    ] = 0,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A certificate for this name; repeatable.")
    ] = None,
    days: Annotated[
        int, typer.Option("--days", min=1, max=36500, help="How long they are good.")
    ] = DAYS,
) -> None:
    """Make a small authority and certificates, for a trial.

    Whoever has authority.key can admit anybody: keep it, and give every owner its own .crt and .key
    and authority.crt.
    """
    names = [*(f"agent-{i}" for i in range(agents)), *(name or [])]
    if not names:
        raise InputError("keys: for whom? give --agents N, or --name NAME")
    for path in make_keys(directory, names, days):
        typer.echo(str(path))
