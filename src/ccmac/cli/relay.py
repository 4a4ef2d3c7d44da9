"""``ccmac relay``: where owners meet who all dial out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

EPILOG = (
    "Example: `ccmac relay relay.toml`\n\n"
    "Exit codes: 2 bad input, 130 interrupted, 143 terminated; it does not end by itself."
)


def show(
    file: Annotated[Path, typer.Argument(metavar="RELAY.TOML", help="See the page owners.")],
) -> None:
    """Pass on what owners say to each other who take no connections: ciphertext, end to end.

    Killed and started again it loses nothing: owners dial again within their patience.
    """
    from ccmac.owners.relay import read_relay

    relay, sock = read_relay(file)
    asyncio.run(relay.serve(sock))
