"""``ccmac optimality``: methods on the hard families, against the lower bounds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, print_json
from ccmac.paper.optimality import CONSTANTS, KAPPA, TOL, Efficiency, report


def show(
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
