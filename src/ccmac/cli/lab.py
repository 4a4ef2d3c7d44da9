"""``ccmac demo``, ``ccmac optimality`` and ``ccmac report``: what the laboratory shows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, fitted, print_json
from ccmac.paper import demo
from ccmac.paper.experiments.report import write_report
from ccmac.paper.optimality import CONSTANTS, KAPPA, TOL, Efficiency, report
from ccmac.storage.files import atomic_write, try_file

DEMO_EPILOG = "Example: `ccmac demo --out my-demo`, then open my-demo/demo.html in a browser."


def show_demo(
    out: Annotated[
        Path, typer.Option("--out", help="Directory for demo.png and demo.html.")
    ] = Path("ccmac-demo"),
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


def show_optimality(
    as_json: AsJson = False,
    family: Annotated[
        list[str] | None, typer.Option("--family", help="Only this family; may be repeated.")
    ] = None,
) -> None:
    """Run the methods on the hard families: measured / lower bound, and the frontier test."""
    rows = report(family)
    if as_json:
        print_json(
            {"tol": TOL, "kappa_f": KAPPA, "rows": [asdict(row) for row in rows], "note": CONSTANTS}
        )
        return
    typer.echo(f"RelErr {TOL:g}, kappa_f = {KAPPA:g}; ratio = measured / lower bound\n")
    head = f"{'family':<20}{'method':<13}{'chi':>6}{'resource':>9}{'used':>7}{'bound':>7}"
    typer.echo(head + f"{'ratio':>7}  frontier")
    for row in rows:
        typer.echo(_line(row))
    typer.echo(f"\n{CONSTANTS}")


def _line(row: Efficiency) -> str:
    held = {None: "-", True: "held", False: "CROSSED"}[row.frontier_held]
    line = (
        f"{row.family:<20}{row.method:<13}{row.cross_factor:>6.2f}{row.resource:>9}"
        f"{row.measured:>7}{row.bound:>7.0f}{row.ratio:>7.1f}  {held}"
    )
    if row.explicit is not None:
        line += f" (explicit {row.explicit:.0f}: {row.measured / max(row.explicit, 1):.1f})"
    return line


def show_report(
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
