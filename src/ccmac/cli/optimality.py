"""``ccmac optimality``: methods on the hard families, against the lower bounds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, opt, print_json, table
from ccmac.paper.optimality import CONSTANTS, IMPRACTICAL, KAPPA, REGIMES, Efficiency, report

HEAD = "family|method|>chi|resource|>used|>bound|>ratio|frontier"


def show(
    as_json: AsJson = False,
    family: Annotated[list[str] | None, opt("Only this family; may be repeated.")] = None,
) -> None:
    """Run the methods on the hard families: measured / lower bound, and the frontier test."""
    rows = report(family)
    if as_json:
        facts = {"tol": REGIMES, "kappa_f": KAPPA, "rows": [asdict(row) for row in rows]}
        print_json({**facts, "notes": [CONSTANTS, IMPRACTICAL]})
        return
    for regime, tol in REGIMES.items():
        own = [_cells(row) for row in rows if row.regime == regime]
        if own:
            typer.echo(f"{regime}: RelErr {tol:g}, kappa_f = {KAPPA:g}; ratio = used / lower bound")
            typer.echo(table(HEAD, own) + "\n")
    typer.echo(f"{CONSTANTS}\n\n{IMPRACTICAL}")


def _cells(row: Efficiency) -> tuple[object, ...]:
    held = {None: "-", True: "held", False: "CROSSED"}[row.frontier_held]
    if row.explicit is not None:
        held += f" (explicit {row.explicit:.0f}: {row.measured / max(row.explicit, 1):.1f})"
    if row.scheduled is not None:
        held += f" (certified schedule: {row.scheduled:,} gradients)"
    numbers = (f"{row.bound:.0f}", f"{row.ratio:.1f}", held)
    return (row.family, row.method, f"{row.cross_factor:.2f}", row.resource, row.measured, *numbers)
