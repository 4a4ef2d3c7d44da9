"""``ccmac keys``: certificates for a trial, requests for them, and an authority that signs them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ccmac.cli.options import opt
from ccmac.errors import InputError
from ccmac.storage.owner import AGENTS, DAYS


class TrialByDefault(typer.core.TyperGroup):
    """``ccmac keys DIR`` without a command is ``ccmac keys trial DIR``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in what is left out."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args.insert(0, "trial")
        return super().parse_args(ctx, args)


app = typer.Typer(cls=TrialByDefault, no_args_is_help=True, help="Keys and certificates of owners.")
Days = Annotated[int, opt("How long they are good.", "--days", min=1, max=36500)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Where the files are written.")]


@app.command("trial", epilog="Example: `ccmac keys keys --agents 4`")
def trial(
    directory: Folder,
    *,
    agents: Annotated[int, opt("How many agents.", min=0, max=AGENTS)] = 0,
    name: Annotated[list[str] | None, opt("A certificate for this name; repeatable.")] = None,
    days: Days = DAYS,
) -> None:
    """Make a small authority and certificates, for a trial.

    Whoever has authority.key can admit anybody: keep it, and give every owner its own .crt and .key
    and authority.crt.
    """
    names = [*(f"agent-{i}" for i in range(agents)), *(name or [])]
    if not names:
        raise InputError("keys: for whom? give --agents N, or --name NAME")
    from ccmac.storage.keys import make_keys

    _list(make_keys(directory, names, days))


@app.command("request", epilog="Example: `ccmac keys request mine --name agent-1`")
def ask(
    directory: Folder, *, name: Annotated[str, opt("What the public file calls this agent.")]
) -> None:
    """Make NAME.key, which stays here, and NAME.csr, which the authority signs.

    The same again renews: the key stays, and the run takes the new certificate by itself.
    """
    from ccmac.storage.keys import request

    _list(request(directory, name))


@app.command("sign", epilog="Example: `ccmac keys sign authority agent-1.csr`")
def confirm(
    authority: Annotated[
        Path, typer.Argument(metavar="AUTHORITY", help="The authority's folder; made if need be.")
    ],
    requests: Annotated[list[Path], typer.Argument(metavar="NAME.csr...", help="Requests.")],
    *,
    days: Days = DAYS,
) -> None:
    """Sign requests: NAME.crt next to NAME.csr. Look first whether they are from whom they say."""
    from ccmac.storage.keys import sign

    for file in requests:
        _list(sign(authority, file, days))


@app.command("show", epilog="Example: `ccmac keys show agent-1.crt`")
def tell(file: Annotated[Path, typer.Argument(metavar="NAME.crt", help="A certificate.")]) -> None:
    """What a certificate says: names, how long, by whom, and its fingerprint for `revoked`."""
    from ccmac.storage.keys import described

    typer.echo(described(file))


def _list(paths: Iterable[Path]) -> None:
    for path in paths:
        typer.echo(str(path))
