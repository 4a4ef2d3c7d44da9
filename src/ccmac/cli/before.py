"""``ccmac geometry`` and ``ccmac plan``: what makes a problem hard, and what a solve would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ccmac.angles.measure import geometry
from ccmac.api import plan
from ccmac.cli.options import (
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
ALTERNATIVES = (
    "; ".join(f"{name}: {text}" for name, text in REGIMES.items())
    + ". averagings, rounds, MB (sent by the busiest agent) and longest (floats in a message) are "
    "those of the whole run, setup and proofs included; the number of steps is known within the "
    "factor. The first row is taken."
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
    problem_dir: ProblemDir, *, terms: Conditions, chosen: Chosen, as_json: AsJson = False
) -> None:
    """Show what a solve would do: method, settings, predicted bill and the alternatives.

    Executes the setup only: a few averagings that measure the spectrum.
    """
    problem, graph = load(problem_dir, terms.network)
    costs = parse_costs(terms.costs)
    made = plan(problem, graph, chosen.method(), terms.tol, costs, averaging=terms.averaging)
    if as_json:
        print_json({"network": graph.name, "tol": terms.tol, **made.as_dict()})
        return
    print_plan(made)


def print_plan(made: Plan) -> None:
    """Summary, alternatives as a table, and what the columns mean."""
    typer.echo(fitted(str(replace(made, alternatives=())), indent=16))
    if made.alternatives:
        typer.echo("\n" + "\n".join(shown_alternatives(made.alternatives)))
        typer.echo(fitted(ALTERNATIVES, indent=0))
