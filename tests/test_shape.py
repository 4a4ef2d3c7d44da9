"""The measures of the house: files, functions and signatures that fit into one look."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ccmac

HOUSE = Path(ccmac.__file__).parent
LINES, BODY, PARAMETERS = 300, 60, 12

# What every user of `solve` knows stands in one signature, in Python and on the command line; a
# generator of test problems has a switch for every structural corner.
WIDE = {
    ("api.py", "solve"),
    ("cli/solve.py", "show"),
    ("problem/agent.py", "__init__"),
    ("problem/base.py", "__init__"),
    ("lab/instances/random_quadratic.py", "random_quadratic"),
}


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(HOUSE.rglob("*.py")):
        yield path.relative_to(HOUSE).as_posix(), path.read_text(encoding="utf-8")


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


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
