"""``ccmac plan``: what a solve would do, what that should cost, and what else was considered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ccmac.api import plan
from ccmac.cli.options import (
    Access,
    AsJson,
    AveragingName,
    MethodName,
    MethodOptions,
    NetworkSpec,
    Prices,
    ProblemDir,
    Realization,
    Tolerance,
    chosen,
    load,
    parse_costs,
)  # fmt: skip
from ccmac.cli.output import WIDTH, fitted, print_json
from ccmac.plans import Plan

EPILOG = (
    "Example: `ccmac plan my-problem --network ring --tol 1e-6`\n\n"
    "Rounds ten times as expensive as gradients: `ccmac plan my-problem --network ring "
    "--costs gradient=1,round=10`"
)
# Column of the table, its heading, its format; those that a method's candidates have are shown.
COLUMNS = {
    "normalizer": ("normalizer", ""),
    "inner": ("steps", "d"),
    "outer": ("outer", "d"),
    "scale": ("scale", ".3g"),
    "kappa_f": ("kappa_f", ".3g"),
    "cross_factor": ("chi", ".3g"),
    "iterations": ("iters", ",.0f"),
    "gradients": ("grads", ",.0f"),
    "rounds": ("rounds", ",.0f"),
    "bill": ("bill", ",.0f"),
}
LEGEND = (
    "steps: size of the normalizer; outer: degree of the Chebyshev filter over both channels; "
    "scale: of z against the balanced one; kappa_f, chi: condition of the objective and cross "
    "factor after scaling; bill: gradients and rounds at their prices. The first row is taken."
)


def show(
    problem_dir: ProblemDir,
    *,
    network: NetworkSpec = "complete",
    method: MethodName = "auto",
    tol: Tolerance = 1e-6,
    costs: Prices = None,
    realization: Realization = None,
    access: Access = None,
    settings: MethodOptions = None,
    averaging: AveragingName = "auto",
    rows: Annotated[int, typer.Option("--rows", help="Candidates to show.", min=1)] = 8,
    as_json: AsJson = False,
) -> None:
    """Show what a solve would do: method, settings, predicted bill and the alternatives.

    Executes the setup only: a few averagings that measure the spectrum.
    """
    problem, graph = load(problem_dir, network)
    made = plan(
        problem, graph, chosen(method, realization, access, settings), tol, parse_costs(costs),
        averaging=averaging,
    )  # fmt: skip
    if as_json:
        print_json({"network": graph.name, "tol": tol, **made.as_dict(limit=rows)})
        return
    print_plan(made, rows)


def print_plan(made: Plan, rows: int = 8) -> None:
    """Summary, candidates as a table, and what the columns mean."""
    typer.echo(fitted(str(_without_candidates(made)), indent=16))
    found = made.as_dict(limit=rows)["candidates"]
    if not found:
        return
    console = Console(width=WIDTH, highlight=False)
    console.print()
    console.print(candidate_table(found))
    if "normalizer" in found[0]:
        typer.echo(fitted(LEGEND, indent=0))


def candidate_table(candidates: list[dict[str, Any]]) -> Table:
    """Candidates, best first."""
    known = [name for name in COLUMNS if name in candidates[0]]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in known:
        heading, form = COLUMNS[name]
        table.add_column(heading, justify="right" if form else "left", no_wrap=True)
    for k, candidate in enumerate(candidates):
        cells = [_cell(candidate, name) for name in known]
        table.add_row(*cells, style="bold" if k == 0 else None)
    return table


def _cell(candidate: Mapping[str, Any], name: str) -> str:
    value, form = candidate[name], COLUMNS[name][1]
    return "" if value is None else format(int(value) if form == "d" else value, form)


def _without_candidates(made: Plan) -> Plan:
    return replace(made, candidates=())
