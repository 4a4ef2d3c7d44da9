"""What commands share: options and how they are read, JSON and text that fits a terminal."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ccmac.errors import InputError
from ccmac.ledger import Costs
from ccmac.methods.base import Method
from ccmac.methods.registry import parse
from ccmac.network import Network
from ccmac.network.spec import HELP, as_network
from ccmac.problem import Problem
from ccmac.texts import dumps, nearest, shown

WIDTH = 80
ProblemDir = Annotated[
    Path, typer.Argument(metavar="PROBLEM_DIR", help="A directory written by problem.save(...).")
]
NetworkSpec = Annotated[str, typer.Option("--network", metavar="SPEC", help=HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Tolerance = Annotated[
    float, typer.Option("--tol", help="Certified error of (x, z), relative to max(1, its norm).")
]
MethodName = Annotated[
    str, typer.Option("--method", help="auto, or a name that ccmac.available_methods() lists.")
]
Realization = Annotated[
    str | None, typer.Option("--realization", help="averaged (default), certified or canonical.")
]
Access = Annotated[
    str | None,
    typer.Option("--access", help="factor: C_i, D_i may be factorized; matvec: products only."),
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the method; repeatable."),
]
AveragingName = Annotated[
    str,
    typer.Option(
        "--averaging", help="relay (fewest rounds), tree or scatter (few bytes), masked or auto."
    ),
]
Prices = Annotated[
    str | None,
    typer.Option(
        "--costs", metavar="PRICES", help="What the plan minimizes: gradient=1,product=0,round=1."
    ),
]

KNOWN_PRICES = tuple(field.name for field in fields(Costs))


def load(directory: Path, network: str) -> tuple[Problem, Network]:
    """The whole problem and a network of its size."""
    problem = Problem.load(directory)
    return problem, as_network(network, problem.n)


def chosen(
    method: str, realization: str | None, access: str | None, settings: list[str] | None
) -> Method:
    """The method with its options: ``--set inner=3``, and the flags that have a name of their own.

    Refuses what the method does not know, before any work.
    """
    options: dict[str, Any] = {}
    for text in settings or ():
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise InputError(f"--set {shown(text)}: is not NAME=VALUE, such as inner=3")
        options[name.strip()] = value.strip()
    for name, given in (("realization", realization), ("access", access)):
        if given is not None:
            options[name] = given
    return parse(method, options)


def parse_costs(text: str | None) -> Costs | None:
    """``gradient=1,product=0,round=5``; what is not named keeps its default price."""
    if text is None:
        return None
    prices: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        name = name.strip()
        try:
            prices[name] = float(value)
        except ValueError:
            raise InputError(f"costs: {shown(part)} is not NAME=NUMBER, such as round=5") from None
        if name not in KNOWN_PRICES:
            raise InputError(f"costs: {shown(name)} is unknown; {nearest(name, KNOWN_PRICES)}")
    return Costs(**prices)


# -- output ----------------------------------------------------------------------------------------
def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(dumps(value))


def wide_console() -> Console:
    """As wide as the terminal; a pipe has no width, and would cut a table at 80 columns."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def fitted(text: str, width: int = WIDTH, indent: int = 14) -> str:
    """Lines longer than ``width`` broken at blanks; what follows lines up with the values."""
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * indent, replace_whitespace=False, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    lines = text.splitlines()
    return "\n".join(line if len(line) <= width else wrapper.fill(line) for line in lines)
