"""``ccmac complexity``: the theory's orders for this problem, next to measured counts."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer

from ccmac.api import solve
from ccmac.cli.options import (
    AsJson,
    Chosen,
    ProblemDir,
    fitted,
    grouped,
    load,
    opt,
    print_json,
    table,
)
from ccmac.network import HELP, Network
from ccmac.paper.complexity import Complexity, complexity
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
    network: Annotated[str, opt(HELP, metavar="SPEC")] = "complete",
    tol: Annotated[float, opt("The accuracy eps of the orders.")] = 1e-6,
    radius: Annotated[
        float | None, opt("R >= ||w0 - w*||: adds the rows for convex objectives.")
    ] = None,
    energy_radius: Annotated[float, opt("R_E of the primitive ledger.")] = 1.0,
    measure: Annotated[
        bool, opt("Solve the problem and show its counts too.", "--measure")
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
        if not math.isnan(found.numbers[name]):
            note = "  (estimated)" if name in found.estimated else ""
            typer.echo(f"  {words:<33}{_number(found.numbers[name])}{note}")
    rows = [
        (r.work, r.model, r.convexity, *map(_number, (r.gradients, r.affine, r.rounds)), r.remark)
        for r in found.comparison
    ]
    typer.echo("\n" + table("method|model|convexity|>gradients|>affine|>rounds|", rows) + "\n")
    parts = [f"{k} = {_number(found.primitive[k])}" for k in ("T", "Lambda_in", "Gamma_in")]
    typer.echo(f"The primitive ledger of CC-MAC: {', '.join(parts)}\n")
    measured = {unit: "" if result is None else _counted(result, unit) for unit in MEASURED}
    orders = [
        (unit, _number(found.primitive.get(unit, math.nan)), count)
        for unit, count in measured.items()
        if found.primitive.get(unit) or count not in ("", "0")
    ]
    typer.echo(table("unit|>order|" + ("" if result is None else ">measured"), orders) + "\n")
    if result is not None:
        by = "" if result.plan is None else f" by {result.plan.method}, {result.plan.realization}"
        ended = f"{result.status} after {result.iterations} iterations"
        typer.echo(f"measured{by}: {ended}; solve phase only\n")
    if found.lift is not None and found.lift.rounds_per_iteration:
        lift = found.lift
        words = (
            f"The certified lift would exchange {lift.rounds_per_iteration:,} rounds an iteration: "
            f"graph filter of degree {lift.graph_degree}, normalizers {lift.normalizers[0]} and "
            f"{lift.normalizers[1]}, outer degree {lift.outer_degree}."
        )
        typer.echo(fitted(words, indent=0))


def _counted(result: Result, unit: str) -> str:
    """Solve phase; ``products`` are those with any block."""
    units = tuple("ABCD") if unit == "products" else (unit,)
    return f"{sum(result.ledger[u] for u in units):,}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if not math.isfinite(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
