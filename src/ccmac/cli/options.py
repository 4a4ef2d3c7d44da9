"""What commands share: options and how they are read, JSON and text that fits a terminal."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ccmac.errors import InputError
from ccmac.ledger import Costs
from ccmac.methods.base import Method
from ccmac.methods.registry import parse
from ccmac.network import HELP, Network, as_network
from ccmac.problem import Problem
from ccmac.storage.files import try_file
from ccmac.texts import dumps, nearest, shown

WIDTH = 80


def opt(text: str, *names: str, **more: Any) -> Any:
    """An option and its help; it is called as its parameter where no names are given."""
    return typer.Option(*names, help=text, **more)


ProblemDir = Annotated[
    Path, typer.Argument(metavar="PROBLEM_DIR", help="A directory written by problem.save(...).")
]
AsJson = Annotated[bool, opt("Print one JSON document instead of text.", "--json")]
KNOWN_COSTS = tuple(field.name for field in fields(Costs))


def load(directory: Path, network: str) -> tuple[Problem, Network]:
    """The whole problem and a network of its size."""
    problem = Problem.load(directory)
    return problem, as_network(network, problem.n)


@dataclass(frozen=True)
class Chosen:
    """The options that name a method and its options."""

    name: Annotated[
        str, opt("auto, or a name that ccmac.available_methods() lists.", "--method")
    ] = "auto"
    realization: Annotated[str | None, opt("averaged (default), certified or canonical.")] = None
    settings: Annotated[
        list[str] | None, opt("An option of the method; repeatable.", "--set", metavar="NAME=VALUE")
    ] = None

    def method(self) -> Method:
        """The method, refusing what it does not know, before any work."""
        options: dict[str, Any] = {}
        for text in self.settings or ():
            name, sign, value = text.partition("=")
            if not (sign and name.strip()):
                raise InputError(f"--set {shown(text)}: is not NAME=VALUE, such as inner=3")
            options[name.strip()] = value.strip()
        if self.realization is not None:
            options["realization"] = self.realization
        return parse(self.name, options)


@dataclass(frozen=True)
class Conditions:
    """The options that say where, how exactly and at which costs."""

    network: Annotated[str, opt(HELP, metavar="SPEC")] = "complete"
    tol: Annotated[float, opt("Certified error of (x, z), relative to max(1, its norm).")] = 1e-6
    averaging: Annotated[str, opt("relay (fewest rounds), tree (few bytes), masked or auto.")] = (
        "auto"
    )
    costs: Annotated[
        str | None, opt("What the plan minimizes: gradient=1,product=0,round=1.", metavar="COSTS")
    ] = None


Log = Annotated[Path | None, opt("A file for what happens, as JSON lines.", "--log")]
Page = Annotated[
    str | None,
    opt("A page for browsers, and /metrics for Prometheus.", "--status", metavar="HOST:PORT"),
]


def watching(log: Path | None, page: str | None) -> Any:
    """Who is shown what happens between owners."""
    from ccmac.owners.status import RunStatus
    from ccmac.storage.owner import address

    return RunStatus(log, None if page is None else address(Path("--status"), page))


def checkpoint(file: Path, folder: str | None, every: int) -> dict[str, Any] | None:
    """An owner's own checkpoints, as ``solve`` takes them; the folder can be written."""
    if folder is None:
        return None
    place = file.parent / folder
    try_file(place / "try")
    return {"path": place, "every": every}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` for Typer: a parameter that is a dataclass becomes an option for each field."""
    kinds = get_type_hints(command, include_extras=True)
    listed = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(kinds[name]):
            hints = get_type_hints(kinds[name], include_extras=True)
            listed += [
                parameter.replace(name=f.name, default=f.default, annotation=hints[f.name])
                for f in fields(kinds[name])
            ]
        else:
            listed.append(parameter.replace(annotation=kinds[name]))

    def call(**given: Any) -> None:
        values = {
            name: kinds[name](**{f.name: given.pop(f.name) for f in fields(kinds[name])})
            for name in kinds
            if is_dataclass(kinds[name])
        }
        command(**given, **values)

    call.__doc__ = command.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return call


def parse_costs(text: str | None) -> Costs | None:
    """``gradient=1,product=0,round=5``; what is not named keeps its default cost."""
    if text is None:
        return None
    given: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        name = name.strip()
        try:
            given[name] = float(value)
        except ValueError:
            raise InputError(f"costs: {shown(part)} is not NAME=NUMBER, such as round=5") from None
        if name not in KNOWN_COSTS:
            raise InputError(f"costs: {shown(name)} is unknown; {nearest(name, KNOWN_COSTS)}")
    return Costs(**given)


# -- output ----------------------------------------------------------------------------------------
def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(dumps(value))


def table(head: str, rows: Iterable[Sequence[object]]) -> str:
    """Columns under the words of ``head``; those whose word begins with ``>`` end on one line."""
    names = head.split("|")
    cells = [[name.removeprefix(">") for name in names], *([str(v) for v in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [">" if name.startswith(">") else "<" for name in names]
    kinds = [f"{side}{width}" for side, width in zip(sides, widths, strict=True)]
    lines = ("  ".join(map(format, row, kinds)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def fitted(text: str, width: int = WIDTH, indent: int = 14) -> str:
    """Lines longer than ``width`` broken at blanks; what follows lines up with the values."""
    wrapper = textwrap.TextWrapper(
        width,
        subsequent_indent=" " * indent,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = text.splitlines()
    return "\n".join(line if len(line) <= width else wrapper.fill(line) for line in lines)
