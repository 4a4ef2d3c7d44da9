"""``ccmac methods``: what there is, and what each needs."""

from __future__ import annotations

import textwrap

import typer

from ccmac.cli.options import WIDTH, AsJson, print_json
from ccmac.methods.registry import available_methods


def show(as_json: AsJson = False) -> None:
    """List the methods: what each does, and what it needs of the objectives."""
    methods = available_methods()
    if as_json:
        print_json(methods)
        return
    for name, about in methods.items():
        needs = ", ".join(about["needs"]) or "nothing"
        text = textwrap.fill(
            f"{name:<20}{about['summary']}; needs: {needs}", WIDTH, subsequent_indent=" " * 20
        )
        typer.echo(text)
    typer.echo("auto, the default, takes the one that suits the problem: ccmac plan says which.")
