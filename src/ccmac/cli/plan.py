"""``ccmac plan``: what a solve would do, and what that would cost."""

from __future__ import annotations

import typer

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
from ccmac.plans import REGIMES

EPILOG = (
    "Example: `ccmac plan my-problem --network ring --tol 1e-6`\n\n"
    "Rounds ten times as expensive as gradients: `ccmac plan my-problem --network ring "
    "--costs gradient=1,round=10`"
)
ALTERNATIVES = (
    "averagings, rounds, MB (sent by the busiest agent) and longest (floats in a message) follow "
    "from sizes alone and are estimates. The first row is taken."
)


@grouped
def show(
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
    typer.echo(fitted(str(made), indent=16))
    if made.alternatives:
        words = "; ".join(f"{name}: {text}" for name, text in REGIMES.items())
        typer.echo(fitted(f"\n{words}. {ALTERNATIVES}", indent=0))
