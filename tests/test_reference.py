"""Every public name is in the reference, with what it takes, what it gives and a tested example."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import ccmac
from ccmac.angles.report import Geometry
from ccmac.certificates.multipliers import Multipliers
from ccmac.ledger import Ledger, Trace
from ccmac.plans import Plan

PAGES = "".join(
    path.read_text(encoding="utf-8")
    for path in (Path(__file__).parents[1] / "docs").glob("reference*.md")
)
ENTRY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:, \w+)*)(?: :|$)", re.MULTILINE)
METHODS = ["ring", "path", "grid", "star", "complete", "erdos_renyi", "random_regular"]


def public() -> dict[str, Any]:
    """Classes and functions by their public names."""
    found = {c.__name__: c for c in (Geometry, Multipliers, Ledger, Plan, Trace)}
    places = {"": ccmac, "objectives.": ccmac.objectives, "methods.": ccmac.methods}
    places |= {"vfl.": ccmac.vfl, "power.": ccmac.power, "cones.": ccmac.cones, "cvx.": ccmac.cvx}
    for prefix, module in places.items():
        listed = {f"{prefix}{name}": getattr(module, name) for name in module.__all__}
        found |= {k: v for k, v in listed.items() if inspect.isclass(v) or inspect.isfunction(v)}
    for name in (*METHODS, "from_graph", "from_weights"):
        found[f"Network.{name}"] = getattr(ccmac.Network, name).__func__
    found["network.as_network"] = ccmac.network.as_network
    found["PreparedProblem.solve"] = ccmac.PreparedProblem.solve
    found["PreparedProblem.update"] = ccmac.PreparedProblem.update
    return found


NAMES = public()


def takes(thing: Any) -> set[str]:
    """The parameters of a signature, without self."""
    parameters = inspect.signature(thing).parameters.values()
    return {p.name for p in parameters if p.name not in ("self", "cls") and p.name[0] != "_"}


def section(text: str, name: str) -> str:
    """What stands below a heading of numpydoc."""
    match = re.search(rf"^{name}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return "" if match is None else match[1]


def test_parameters_are_those_of_the_signature() -> None:
    for name, thing in NAMES.items():
        text = inspect.cleandoc(thing.__doc__ or "")
        listed = ENTRY.findall(section(text, "Parameters"))
        said = {word.strip("* ") for entry in listed for word in entry.split(",")}
        if name not in ("methods.Method", "methods.Iteration", "methods.State"):
            assert said == takes(thing), name
        if inspect.isfunction(thing) and name != "PreparedProblem.update":
            assert section(text, "Returns"), name


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str) -> None:
    [test] = doctest.DocTestFinder(recurse=False).find(
        NAMES[name], name, globs={"__name__": "reference"}
    )
    assert test.examples
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test, out=said.append).failed == 0, said


def test_the_reference_has_all() -> None:
    last = [name.rsplit(".", maxsplit=1)[-1] for name in NAMES]
    assert [name for name in last if not re.search(rf"\b{name}\b", PAGES)] == []
