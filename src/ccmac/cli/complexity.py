"""``ccmac complexity``: the theory's orders for this problem, next to measured counts."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ccmac.api import solve
from ccmac.cli.options import WIDTH, AsJson, Chosen, ProblemDir, fitted, grouped, load, print_json
from ccmac.network import HELP, Network
from ccmac.paper.complexity import OWN, Complexity, complexity
from ccmac.problem import Problem
from ccmac.results import Result

EPILOG = (
    "Example: `ccmac complexity my-problem --network ring --measure`\n\n"
    "Orders leave constants out: they tell how the work grows, not what it will be."
)
MEASURED = ("gradients", "affine", "products", "A", "B", "C", "D", "rounds", "modelled_rounds")
NAMES = {
    "kappa_f": "condition of the objective",
    "cross_factor": "cross factor chi",
    "k_1": "coupled rows k_1",
    "k_2": "shared rows k_2",
    "kappa_C": "local rows kappa_C",
    "kappa_W": "network kappa_W",
    "kappa_K": "whole stack kappa_K",
    "kappa_A": "as coupled rows kappa_A",
    "T_sc": "T_sc = sqrt(kappa_f) log(1/eps)",
    "T_cvx": "T_cvx = sqrt(L_f R^2/eps)",
}


@grouped
def show(
    problem_dir: ProblemDir,
    *,
    network: Annotated[str, typer.Option("--network", metavar="SPEC", help=HELP)] = "complete",
    tol: Annotated[float, typer.Option("--tol", help="The accuracy eps of the orders.")] = 1e-6,
    radius: Annotated[
        float | None,
        typer.Option("--radius", help="R >= ||w0 - w*||: adds the rows for convex objectives."),
    ] = None,
    energy_radius: Annotated[
        float, typer.Option("--energy-radius", help="R_E of the primitive ledger.")
    ] = 1.0,
    measure: Annotated[
        bool, typer.Option("--measure", help="Solve the problem and show its counts too.")
    ] = False,
    chosen: Chosen,
    as_json: AsJson = False,
) -> None:
    """Evaluate the orders of the theory for a problem: who would need how much of what.

    The first table compares methods in their own units; the second splits the work of CC-MAC into
    products with the blocks and neighbor rounds.
    """
    problem, graph = load(problem_dir, network)
    asked = chosen.method()
    result = solve(problem, graph, asked, tol) if measure else None
    if radius is None and result is not None and result.status == "optimal":
        radius = _radius(problem, result)
    found = complexity(problem, graph, tol=tol, radius=radius, energy_radius=energy_radius)
    if as_json:
        counts = None if result is None else _counts(result)
        print_json({"network": graph.name, **found.as_dict(), "measured": counts})
        return
    _print(found, graph, result)


def _radius(problem: Problem, result: Result) -> float | None:
    """||w*|| of (x, copies of z): the distance of the zero start, known once solved."""
    squares = sum(float(x @ x) for x in result.x) + problem.n * float(np.sum(result.z**2))
    return math.sqrt(squares) if squares > 0 else None


def _counts(result: Result) -> dict[str, Any]:
    plan = result.plan
    return {
        "method": None if plan is None else plan.method,
        "realization": None if plan is None else plan.realization,
        "status": result.status,
        "iterations": result.iterations,
        "setup": dict(result.ledger.of("setup")),
        "solve": dict(result.ledger.of("solve")),
    }


def _print(found: Complexity, network: Network, result: Result | None) -> None:
    typer.echo(f"eps = {found.tol:g} on {network.name}")
    for name, words in NAMES.items():
        if found.numbers[name] is not None:
            note = "  (estimated)" if name in found.estimated else ""
            typer.echo(f"  {words:<33}{_number(found.numbers[name])}{note}")
    console = Console(width=WIDTH, highlight=False)
    console.print(_comparison(found))
    parts = ", ".join(
        f"{k} = {_number(found.primitive[k])}" for k in ("T", "Lambda_in", "Gamma_in")
    )
    typer.echo(f"The primitive ledger of CC-MAC: {parts}")
    console.print(_primitive(found, result))
    if found.lift is not None and found.lift.rounds_per_iteration:
        lift = found.lift
        typer.echo(
            fitted(
                f"The certified lift would exchange {lift.rounds_per_iteration:,} rounds an "
                f"iteration: graph filter of degree {lift.graph_degree}, normalizers "
                f"{lift.normalizers[0]} and {lift.normalizers[1]}, outer degree "
                f"{lift.outer_degree}.",
                indent=0,
            )
        )


def _comparison(found: Complexity) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("method", "model", "convexity", "gradients", "affine", "rounds", ""):
        right = heading in ("gradients", "affine", "rounds")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading != "")
    for row in found.comparison:
        cells = [_number(v) for v in (row.gradients, row.affine, row.rounds)]
        style = "bold" if row.model == OWN else None
        table.add_row(row.work, row.model, row.convexity, *cells, row.remark, style=style)
    return table


def _primitive(found: Complexity, result: Result | None) -> Table:
    table = Table("unit", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("order", justify="right")
    if result is not None:
        name = "" if result.plan is None else f" by {result.plan.method}, {result.plan.realization}"
        table.add_column(f"measured{name}", justify="right")
        table.caption = f"{result.status} after {result.iterations} iterations; solve phase only"
        table.caption_justify = "left"
    for unit in MEASURED:
        order = found.primitive.get(unit)
        counted = None if result is None else _counted(result, unit)
        if order or counted:
            measured = [] if counted is None else [f"{counted:,}"]
            table.add_row(unit, _number(order), *measured)
    return table


def _counted(result: Result, unit: str) -> int:
    """Solve phase; ``products`` are those with any block."""
    return sum(result.ledger[u] for u in (tuple("ABCD") if unit == "products" else (unit,)))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
