"""Every statement of the paper has a function, a test and a line that is true."""

from __future__ import annotations

import importlib
import re
import runpy
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from ccmac.cli.main import main

ROOT = Path(__file__).parents[2]
MAKE = runpy.run_path(str(ROOT / "docs" / "make" / "theory.py"))
DATA: dict[str, Any] = yaml.safe_load(MAKE["DATA"].read_text(encoding="utf-8"))
STATEMENTS: dict[str, dict[str, Any]] = {
    label: statement for part in DATA["statements"].values() for label, statement in part.items()
}
LINES = [label for label, s in STATEMENTS.items() if not s["shows"].startswith("$ ")]


@cache
def given() -> dict[str, Any]:
    """What the lines see."""
    names: dict[str, Any] = {}
    exec(DATA["given"], names)
    return names


def test_every_label_has_its_place_and_no_other_has() -> None:
    labels = [*DATA["labels"], *DATA["more"]]
    assert sorted(labels) == sorted(set(labels)) == sorted(STATEMENTS)
    count = sum(len(part) for part in DATA["statements"].values())
    assert count == len(STATEMENTS)  # no label in two parts


@pytest.mark.parametrize("label", STATEMENTS)
def test_a_statement_names_what_exists(label: str) -> None:
    statement = STATEMENTS[label]
    name, _, attributes = statement["function"].partition(":")
    module = importlib.import_module(f"ccmac.{name}")
    assert reduce(getattr, attributes.split("."), module) is not None
    assert module.__file__ is not None
    source = " ".join(Path(module.__file__).read_text(encoding="utf-8").split())
    assert MAKE["cited"](label) in source, f"{module.__name__} does not cite it"
    tests = MAKE["tests_of"](statement)
    assert tests
    for test in tests:
        path, _, function = test.partition("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text(encoding="utf-8"), test
    assert statement["of"] in ("exact", "stronger", "different")
    assert ("because" in statement) == (statement["of"] != "exact")


@pytest.mark.parametrize("label", LINES)
def test_a_line_is_true(label: str) -> None:
    statement = STATEMENTS[label]
    module = importlib.import_module(f"ccmac.{statement['function'].partition(':')[0]}")
    # Evaluated in one namespace: comprehensions do not see local names.
    assert eval(statement["shows"], {**vars(module), **given()})


@pytest.mark.parametrize("label", [label for label in STATEMENTS if label not in LINES])
def test_a_command_exists(label: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = STATEMENTS[label]["shows"].removeprefix("$ ").split()
    assert program == "ccmac"
    assert main([*words[:2], "--help"]) == 0
    known = capsys.readouterr().out
    assert all(word in known for word in words if word.startswith("--"))


def test_docstrings_cite_in_one_form() -> None:
    words = MAKE["WORDS"]
    label = rf"(?:{'|'.join(words)}):[a-zA-Z0-9][\w-]*"
    for path in (ROOT / "src" / "ccmac").rglob("*.py"):
        text = " ".join(path.read_text(encoding="utf-8").split())
        for before, found in re.findall(rf"(\w*),? ?\(?\b({label})", text):
            assert f"{before} {found}" == MAKE["cited"](found), f"{path.name}: {before} {found}"
            assert found in STATEMENTS or found.startswith(("eq:", "app:")), f"{path.name}: {found}"
        other = re.search(
            r"\b(Theorem|Lemma|Proposition|Corollary|Algorithm) [a-z0-9]+[ .,)]", text
        )
        assert other is None, f"{path.name}: {other}"


def test_the_page_is_current() -> None:
    page = MAKE["PAGE"].read_text(encoding="utf-8")
    assert page == MAKE["page"](DATA), "run: python docs/make/theory.py"


def test_labels_are_read_from_latex() -> None:
    source = (
        r"\begin{lemma}\label{lem:one} \begin{equation}\label{eq:two}\end{equation}\end{lemma}"
        r"\section{S}\label{sec:three} \begin{figure}[t]\label{fig:four}\end{figure}"
    )
    assert MAKE["labels_in"](source) == ["lem:one", "fig:four"]
