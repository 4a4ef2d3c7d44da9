"""``ccmac geometry`` and ``ccmac plan``: what makes a problem hard, and what a solve would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ccmac.angles.measure import geometry
from ccmac.api import plan
from ccmac.cli.options import (
    WIDTH,
    AsJson,
    Chosen,
    Conditions,
    ProblemDir,
    fitted,
    grouped,
    load,
    parse_costs,
    print_json,
)
from ccmac.network.spec import HELP, as_network
from ccmac.plans import REGIMES, Plan, shown_alternatives
from ccmac.problem import Problem

GEOMETRY_EPILOG = (
    "Example: `ccmac geometry my-problem --network ring`\n\n"
    "chi is 1 when the coupled equations and agreement on z do not interfere; the affine work of a "
    "solve grows with it."
)
PLAN_EPILOG = (
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
ALTERNATIVES = (
    "; ".join(f"{name}: {text}" for name, text in REGIMES.items())
    + ". averagings, rounds, MB (sent by the busiest agent) and longest (floats in a message) are "
    "those of the whole run, setup and proofs included; the number of steps is known within the "
    "factor. The first row is taken."
)
LEGEND = (
    "steps: size of the normalizer; outer: degree of the Chebyshev filter over both channels; "
    "scale: of z against the balanced one; kappa_f, chi: condition of the objective and cross "
    "factor after scaling; bill: gradients and rounds at their prices. The first row is taken."
)


def show_geometry(
    problem_dir: ProblemDir,
    *,
    network: Annotated[str | None, typer.Option("--network", metavar="SPEC", help=HELP)] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", help="Angles (radians) below this count as common directions."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how the constraints lie to each other: angle, cross factor chi, culprits, remedies.

    A network only adds its condition number: the angles do not depend on it.
    """
    problem = Problem.load(problem_dir)
    graph = None if network is None else as_network(network, problem.n)
    found = geometry(problem, network=graph, tolerance=tolerance)
    if as_json:
        print_json({"problem": str(problem_dir), "n": problem.n, **found.as_dict()})
        return
    typer.echo(repr(problem))
    typer.echo(fitted(str(found), indent=24))


@grouped
def show_plan(
    problem_dir: ProblemDir,
    *,
    terms: Conditions,
    chosen: Chosen,
    rows: Annotated[int, typer.Option("--rows", help="Candidates to show.", min=1)] = 8,
    as_json: AsJson = False,
) -> None:
    """Show what a solve would do: method, settings, predicted bill and the alternatives.

    Executes the setup only: a few averagings that measure the spectrum.
    """
    problem, graph = load(problem_dir, terms.network)
    costs = parse_costs(terms.costs)
    made = plan(problem, graph, chosen.method(), terms.tol, costs, averaging=terms.averaging)
    if as_json:
        print_json({"network": graph.name, "tol": terms.tol, **made.as_dict(limit=rows)})
        return
    print_plan(made, rows)


def print_plan(made: Plan, rows: int = 8) -> None:
    """Summary, candidates as a table, and what the columns mean."""
    typer.echo(fitted(str(replace(made, candidates=(), alternatives=())), indent=16))
    if made.alternatives:
        typer.echo("\n" + "\n".join(shown_alternatives(made.alternatives)))
        typer.echo(fitted(ALTERNATIVES, indent=0))
    found = made.as_dict(limit=rows)["candidates"]
    if not found:
        return
    Console(width=WIDTH, highlight=False).print("", _table(found))
    if "normalizer" in found[0]:
        typer.echo(fitted(LEGEND, indent=0))


def _table(candidates: list[dict[str, Any]]) -> Table:
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
    value = candidate[name]
    form = COLUMNS[name][1]
    return "" if value is None else format(int(value) if form == "d" else value, form)
