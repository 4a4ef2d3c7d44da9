"""Mutation testing, sampled and bounded: change one thing in a module, run its tests, count kills.

    python tests/mutants.py --modules certificates/proof.py linalg --count 60 --seconds 600

Mutants replace a comparison, an operator, a number or a sign, drop a term or a call, or return an
argument instead of what a function computes. The changed module lives in a folder of its own, laid
over a copy of the package: the checkout is not touched. A mutant that its tests do not notice is
printed with its line. Exit status 1 when fewer than ``--wanted`` of them are killed.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import os
import py_compile
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ccmac"
DEFAULT = ("certificates", "linalg", "workspace/reduced.py", "methods")
# The tests of a module or folder, quick ones first; the first entry that fits is taken.
TESTS = {
    "certificates/proof.py": ("certificates/test_proof.py", "certificates/test_proof_rounding.py"),
    "certificates/infeasibility.py": ("certificates/test_infeasibility.py",),
    "certificates/conflicts.py": ("certificates/test_infeasibility.py",),
    "certificates/recession.py": ("certificates/test_recession.py",),
    "certificates/stopping.py": (
        "certificates/test_stopping.py", "certificates/test_proof_stop.py",
    ),
    "certificates/error_bound.py": ("certificates/test_error_bound.py",
                                    "certificates/test_certifier.py"),
    "certificates/certifier.py": ("certificates/test_certifier.py",
                                  "certificates/test_error_bound.py"),
    "certificates/prices.py": ("methods/test_solve_random.py", "methods/test_verdicts.py"),
    "certificates": ("certificates", "methods/test_verdicts.py", "methods/test_continuation.py"),
    "linalg/extended.py": ("linalg/test_extended.py",),
    "linalg": ("linalg", "workspace", "certificates/test_proof.py"),
    "workspace/reduced.py": ("workspace/test_reduced.py", "certificates/test_proof_rounding.py"),
    "methods/direct.py": ("methods/test_direct.py",),
    "methods/run.py": ("methods/test_run.py", "methods/test_verdicts.py"),
    "methods/finish.py": ("methods/test_verdicts.py", "methods/test_run.py"),
    "methods/auto.py": ("methods/test_auto.py", "methods/test_verdicts.py"),
    "methods/cg.py": ("methods/test_cg.py",),
    "methods/lbfgs.py": ("methods/test_lbfgs.py",),
    "methods/driver.py": ("methods/test_driver.py", "methods/test_behaviour.py"),
    "methods": ("methods",),
}  # fmt: skip
COMPARED = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
}  # fmt: skip
NEUTRAL = ("float", "int", "bool", "tuple", "list", "asarray", "ascontiguousarray", "cast")
LIMIT = 120  # CPU seconds for the tests of one mutant: longer counts as noticed
WAITING = 1800.0  # seconds by the clock, on a machine that does other things as well


@dataclass(frozen=True)
class Mutant:
    """One change: ``number`` is the place in the walk of the tree, ``kind`` what is done there."""

    module: str
    number: int
    kind: str
    line: int

    def tree(self, source: str) -> ast.Module:
        """The changed module."""
        tree = ast.parse(source)
        node = _places(tree)[self.number]
        changed = dict(_changes(node))[self.kind]
        return ast.fix_missing_locations(_Put(node, changed).visit(tree))


class _Put(ast.NodeTransformer):
    """Puts ``new`` in the place of ``old``."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _places(tree: ast.Module) -> list[ast.AST]:
    """Nodes inside functions and constants of the module; annotations and texts left out."""
    out: list[ast.AST] = []

    def walk(node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Raise):
                    out.append(child)
                    walk(child)

    walk(tree)
    return out


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(kind, the node changed) for everything that can be done to one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        new = copy.copy(node)
        new.ops = [COMPARED[type(node.ops[0])](), *node.ops[1:]]
        yield "comparison", new
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATED:
        new_op = copy.copy(node)
        new_op.op = OPERATED[type(node.op)]()
        yield "operator", new_op
        if isinstance(node.op, ast.Add | ast.Sub):
            yield "second term dropped", node.left
            if isinstance(node.op, ast.Add):
                yield "first term dropped", node.right
        elif isinstance(node.op, ast.Mult):
            yield "first factor dropped", node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        yield "addition dropped", ast.copy_location(ast.Pass(), node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign dropped", node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "number", ast.copy_location(ast.Constant(node.value * 2 + (node.value == 0)), node)
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name not in NEUTRAL and not isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
            yield "call dropped", node.args[0]
    if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
        names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
        if names:
            new_def = copy.copy(node)
            given = ast.Return(ast.Name(names[0], ast.Load()))
            new_def.body = [*node.body[:-1], ast.copy_location(given, node.body[-1])]
            yield "argument returned", new_def


def mutants(module: str) -> list[Mutant]:
    """All changes of one module (a path below the package)."""
    places = _places(ast.parse((PACKAGE / module).read_text()))
    return [
        Mutant(module, number, kind, getattr(node, "lineno", 0))
        for number, node in enumerate(places)
        for kind, _ in _changes(node)
    ]


def tests_of(module: str) -> tuple[str, ...]:
    """Paths of the tests mapped to a module."""
    for name in (module, *map(str, Path(module).parents)):
        if name in TESTS:
            return tuple(str(ROOT / "tests" / path) for path in TESTS[name])
    return (str(ROOT / "tests"),)


def noticed(mutant: Mutant, folder: Path) -> bool:
    """Whether the tests fail with the module changed."""
    target = folder / "ccmac" / mutant.module
    source = (PACKAGE / mutant.module).read_text()
    target.write_text(ast.unparse(mutant.tree(source)))
    try:
        return any(_fails(path, folder) for path in tests_of(mutant.module))
    finally:
        target.write_text(source)


def _fails(path: str, folder: Path) -> bool:
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'tests'}"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled files of a mutant must not outlive it
    ask = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", path]
    ask += ["-o", "pythonpath="]  # the changed package, not that of the checkout
    try:
        done = subprocess.run(
            ask, check=False, cwd=ROOT, env=env, capture_output=True, timeout=WAITING,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)


def chosen_modules(asked: list[str]) -> list[str]:
    """Files below the package, of files and folders asked for."""
    found = []
    for name in asked:
        path = PACKAGE / name
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        found += [str(f.relative_to(PACKAGE)) for f in files if f.name != "__init__.py"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Sampled mutation testing.")
    parser.add_argument("--modules", nargs="+", default=list(DEFAULT), help="below src/ccmac")
    parser.add_argument("--count", type=int, default=60, help="mutants drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1800.0, help="no new mutant after that")
    parser.add_argument("--wanted", type=float, default=0.0, help="share that must be killed")
    asked = parser.parse_args()
    every = [m for module in chosen_modules(asked.modules) for m in mutants(module)]
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    begun, killed, survivors = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(PACKAGE, folder / "ccmac", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(
            folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
        )
        for module in sorted({mutant.module for mutant in drawn}):
            for path in tests_of(module):
                if _fails(path, folder):
                    print(f"{path} fails without any change")
                    return 2
        for mutant in drawn:
            if time.monotonic() - begun > asked.seconds:
                break
            if noticed(mutant, folder):
                killed += 1
                continue
            survivors.append(mutant)
            line = (PACKAGE / mutant.module).read_text().splitlines()[mutant.line - 1].strip()
            print(f"survived: {mutant.module}:{mutant.line} ({mutant.kind}): {line}", flush=True)
    tried = killed + len(survivors)
    share = killed / tried if tried else 1.0
    print(f"{tried} of {len(every)} mutants tried: {killed} killed, {len(survivors)} survived")
    return int(share < asked.wanted)


if __name__ == "__main__":
    sys.exit(main())
