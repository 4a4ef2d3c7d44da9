"""``ccmac methods``: what there is, and what each needs."""

from __future__ import annotations

import typer

from ccmac.cli.options import AsJson, fitted, print_json
from ccmac.methods.registry import available_methods


def show(as_json: AsJson = False) -> None:
    """List the methods: what each does, and what it needs of the objectives."""
    methods = available_methods()
    if as_json:
        print_json(methods)
        return
    for name, about in methods.items():
        needs = ", ".join(about["needs"]) or "nothing"
        typer.echo(fitted(f"{name:<20}{about['summary']}; needs: {needs}", indent=20))
    typer.echo("auto, the default, takes the one that suits the problem: ccmac plan says which.")
