"""``ccmac complexity``: the theory's orders for this problem."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ccmac.cli.options import AsJson, ProblemDir, fitted, load, opt, print_json, table
from ccmac.network import HELP, Network
from ccmac.paper.complexity import Complexity, complexity

EPILOG = (
    "Example: `ccmac complexity my-problem --network ring`\n\n"
    "Orders leave constants out: they tell how the work grows, not what it will be."
)
UNITS = ("gradients", "affine", "products", "A", "B", "C", "D", "rounds", "modelled_rounds")
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


def show(
    problem_dir: ProblemDir,
    *,
    network: Annotated[str, opt(HELP, metavar="SPEC")] = "complete",
    tol: Annotated[float, opt("The accuracy eps of the orders.")] = 1e-6,
    radius: Annotated[
        float | None, opt("R >= ||w0 - w*||: adds the rows for convex objectives.")
    ] = None,
    energy_radius: Annotated[float, opt("R_E of the primitive ledger.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Evaluate the orders of the theory for a problem: who would need how much of what.

    The first table compares methods in their own units; the second splits the work of CC-MAC into
    products with the blocks and neighbor rounds.
    """
    problem, graph = load(problem_dir, network)
    found = complexity(problem, graph, tol=tol, radius=radius, energy_radius=energy_radius)
    if as_json:
        print_json({"network": graph.name, **found.as_dict()})
        return
    _print(found, graph)


def _print(found: Complexity, network: Network) -> None:
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
    orders = [(unit, _number(found.primitive[unit])) for unit in UNITS if found.primitive.get(unit)]
    typer.echo(table("unit|>order", orders) + "\n")
    if found.lift is not None and found.lift.rounds_per_iteration:
        lift = found.lift
        words = (
            f"The certified lift would exchange {lift.rounds_per_iteration:,} rounds an iteration: "
            f"graph filter of degree {lift.graph_degree}, normalizers {lift.normalizers[0]} and "
            f"{lift.normalizers[1]}, outer degree {lift.outer_degree}."
        )
        typer.echo(fitted(words, indent=0))


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if not math.isfinite(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
