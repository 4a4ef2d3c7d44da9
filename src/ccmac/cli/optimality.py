"""``ccmac optimality``: methods on the hard families, against the lower bounds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, opt, print_json
from ccmac.paper.optimality import CONSTANTS, IMPRACTICAL, KAPPA, REGIMES, Efficiency, report


def show(
    as_json: AsJson = False,
    family: Annotated[list[str] | None, opt("Only this family; may be repeated.")] = None,
) -> None:
    """Run the methods on the hard families: measured / lower bound, and the frontier test."""
    rows = report(family)
    if as_json:
        notes = [CONSTANTS, IMPRACTICAL]
        print_json(
            {
                "tol": REGIMES,
                "kappa_f": KAPPA,
                "rows": [asdict(row) for row in rows],
                "notes": notes,
            }
        )
        return
    head = f"{'family':<20}{'method':<20}{'chi':>6}{'resource':>11}{'used':>7}{'bound':>7}"
    for regime, tol in REGIMES.items():
        own = [row for row in rows if row.regime == regime]
        if own:
            typer.echo(f"{regime}: RelErr {tol:g}, kappa_f = {KAPPA:g}; ratio = used / lower bound")
            typer.echo(head + f"{'ratio':>9}  frontier")
            for row in own:
                typer.echo(_line(row))
            typer.echo("")
    typer.echo(f"{CONSTANTS}\n\n{IMPRACTICAL}")


def _line(row: Efficiency) -> str:
    held = {None: "-", True: "held", False: "CROSSED"}[row.frontier_held]
    line = (
        f"{row.family:<20}{row.method:<20}{row.cross_factor:>6.2f}{row.resource:>11}"
        f"{row.measured:>7}{row.bound:>7.0f}{row.ratio:>9.1f}  {held}"
    )
    if row.explicit is not None:
        line += f" (explicit {row.explicit:.0f}: {row.measured / max(row.explicit, 1):.1f})"
    if row.scheduled is not None:
        line += f" (certified schedule: {row.scheduled:,} gradients)"
    return line
