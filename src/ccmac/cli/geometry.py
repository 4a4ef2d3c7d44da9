"""``ccmac geometry``: what makes a problem hard."""

from __future__ import annotations

from typing import Annotated

import typer

from ccmac.angles.measure import geometry
from ccmac.cli.options import AsJson, ProblemDir, fitted, opt, print_json
from ccmac.network import HELP, as_network
from ccmac.problem import Problem

EPILOG = (
    "Example: `ccmac geometry my-problem --network ring`\n\n"
    "chi is 1 when the coupled equations and agreement on z do not interfere; the affine work of a "
    "solve grows with it."
)


def show(
    problem_dir: ProblemDir,
    *,
    network: Annotated[str | None, opt(HELP, metavar="SPEC")] = None,
    tolerance: Annotated[
        float | None, opt("Angles (radians) below this count as common directions.")
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
