"""``ccmac demo``: a vertical federated problem, solved and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac.cli.options import fitted, opt
from ccmac.paper import demo
from ccmac.storage.files import atomic_write, try_file

EPILOG = "Example: `ccmac demo --out my-demo`, then open my-demo/demo.html in a browser."


def show(
    out: Annotated[Path, opt("Directory for demo.png and demo.html.")] = Path("ccmac-demo"),
) -> None:
    """Solve a bundled vertical federated problem and tell the story; needs no network.

    Eight agents hold different columns of one table. They fit one model without showing each other
    their columns: only predictions travel, and only between neighbors.
    """
    try_file(out / "demo.html")
    story = demo.compute()
    paragraphs = demo.tell(story)
    for paragraph in paragraphs:
        typer.echo(fitted(paragraph, indent=0) + "\n")
    drawn = demo.picture(story.result, story.balanced)
    if drawn is None:
        typer.echo("no picture: matplotlib is not installed (pip install 'ccmac[plot]')")
    else:
        atomic_write(out / "demo.png", drawn)
        typer.echo(f"picture       {out / 'demo.png'}")
    atomic_write(out / "demo.html", demo.page(paragraphs, story.result, story.balanced, drawn))
    typer.echo(f"report        {out / 'demo.html'}")
