"""``ccmac report``: a page about one result, or about the records of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccmac import page
from ccmac.cli.options import opt
from ccmac.paper.experiments.report import write_report
from ccmac.results import Result
from ccmac.storage.files import atomic_write
from ccmac.storage.proofs import HEAD


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out of a solve or a suite.")],
    out: Annotated[Path, opt("The page to write.", "-o", "--out")] = Path("report.html"),
) -> None:
    """Write a self-contained page: a result's answer and bill, or a suite's curves and tables.

    Example: ccmac report result -o report.html
    """
    if (folder / HEAD).exists():
        atomic_write(out, page.of_result(Result.load(folder)))
    else:
        write_report(folder, out)
    typer.echo(f"{out} ({out.stat().st_size / 1024:.0f} kB)")
