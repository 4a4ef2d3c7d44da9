"""``ccmac report``: a page about the records of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac.paper.experiments.report import write_report


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out of `ccmac suite run`.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a self-contained page with tables and interactive curves.

    Example: ccmac report out/comparison -o report.html
    """
    write_report(folder, out)
    typer.echo(f"{out} ({out.stat().st_size / 1024:.0f} kB)")
