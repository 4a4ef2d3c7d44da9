"""The measures of the house: files, functions and signatures that fit into one look."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ccmac
from ccmac.lab.instances import random_quadratic

HOUSE = Path(ccmac.__file__).parent
LINES, BODY, PARAMETERS = 300, 60, 12
# Files whose functions one solve enters. These may only fall: a station more on the road of every
# solve wants a reason. docs/decisions.md says why they are no fewer.
TOUCHED = {"auto": 45, "cross-cg": 41, "cross-apapc": 53}
LEAST = {"auto": 33, "cross-cg": 30, "cross-apapc": 41}  # if their lines filled whole files

# What every user of `solve` knows stands in one signature; scikit-learn reads an estimator's
# parameters off the signature of `__init__`, one keyword each.
WIDE = {
    ("api.py", "solve"),
    ("problem/agent.py", "__init__"),
    ("problem/base.py", "__init__"),
    ("vfl/classifiers.py", "__init__"),
    ("vfl/regressors.py", "__init__"),
}


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(HOUSE.rglob("*.py")):
        yield path.relative_to(HOUSE).as_posix(), path.read_text(encoding="utf-8")


@cache
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (name, node)
        for name, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """What a caller can give: not self or cls."""
    a = node.args
    listed = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    bound = bool(listed) and listed[0] in ("self", "cls")
    return len(listed) - bound + (a.vararg is not None) + (a.kwarg is not None)


def test_no_file_is_longer_than_a_reader_keeps_in_mind():
    long = {name: count for name, text in sources() if (count := text.count("\n")) > LINES}
    assert not long


def test_no_function_is_longer_than_a_screen():
    long = {
        (name, node.name): length
        for name, node in functions()
        if (length := (node.end_lineno or 0) - node.lineno + 1) > BODY
    }
    assert not long


def test_no_signature_is_wider_than_twelve():
    wide = {(name, node.name) for name, node in functions() if parameters(node) > PARAMETERS}
    assert wide <= WIDE


def test_the_page_of_decisions_gives_the_measures() -> None:
    root = HOUSE.parents[1]
    if not (root / "docs").is_dir():
        pytest.skip("the pages are not here")
    page = " ".join((root / "docs" / "decisions.md").read_text(encoding="utf-8").split())
    enters = ", ".join(f"{count} ({name})" for name, count in TOUCHED.items())
    assert f"enters {enters} files" in page
    filled = ", ".join(f"{count} ({name})" for name, count in LEAST.items())
    assert f"they would still be at least {filled}:" in page
    said = re.search(r"([\d,]+) lines for the library and ([\d,]+) for `lab`", page)
    assert said is not None
    lines = {True: 0, False: 0}
    for name, text in sources():
        lines[name.startswith("lab/")] += text.count("\n")
    for found, number in zip((lines[False], lines[True]), said.groups(), strict=True):
        assert found == pytest.approx(int(number.replace(",", "")), rel=0.05)


@pytest.mark.parametrize("method", TOUCHED)
def test_a_solve_is_read_in_so_many_files(method: str) -> None:
    problem = random_quadratic(0, 4)
    ccmac.solve(problem, "ring", method)  # what is imported on the way runs its own code once
    seen = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        ccmac.solve(problem, "ring", method)
    finally:
        sys.setprofile(None)
    entered = [name for name in seen if name.startswith(str(HOUSE))]
    assert len(entered) <= TOUCHED[method]
    lines = sum(Path(name).read_text(encoding="utf-8").count("\n") for name in entered)
    assert -(-lines // LINES) == pytest.approx(LEAST[method], abs=1)
