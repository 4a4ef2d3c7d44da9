"""Mutation testing, sampled and bounded: change one thing in a module, run its tests, count kills.

    python tests/mutants.py --modules certificates/proof.py linalg --count 60 --seconds 600

Mutants replace a comparison, an operator, a number or a sign, drop a term or a call, or return an
argument instead of what a function computes. The changed module lives in the memory of a forked
process that runs the tests: nothing is written. A mutant that its tests do not notice is printed
with its line, unless ``mutants-equivalent.txt`` lists it with the reason why it changes nothing.
Exit status 1 when fewer than ``--wanted`` of the others are killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ccmac"
DEFAULT = ("certificates", "linalg", "workspace/reduced.py", "methods")
# The tests of a module or folder, quick ones first; the first entry that fits is taken.
TESTS = {
    "certificates/proof.py": ("certificates/test_proof.py", "certificates/test_proof_rounding.py"),
    "certificates/infeasibility.py": ("certificates/test_infeasibility.py",),
    "certificates/conflicts.py": ("certificates/test_infeasibility.py",),
    "certificates/recession.py": ("certificates/test_recession.py",),
    "certificates/share.py": ("certificates/test_proof.py", "certificates/test_proof_rounding.py"),
    "certificates/bounded.py": ("certificates/test_bounded.py", "interior/test_interior.py"),
    "certificates/duality.py": ("certificates/test_duality.py", "interior/test_interior.py",
                                "limits/test_limits.py"),
    "certificates/limits.py": ("limits/test_limits.py", "limits/test_names.py"),
    "certificates/dual_bound.py": ("certificates/test_dual_bound.py", "methods/test_sketched.py",
                                   "methods/test_cg.py"),
    "certificates/explicit.py": ("certificates/test_explicit.py", "methods/test_newton.py"),
    "certificates/inside.py": ("certificates/test_inside.py", "methods/test_direct.py"),
    "certificates/proved.py": ("certificates/test_proof.py",),
    "certificates/gap.py": ("certificates/test_gap_stopping.py",
                            "certificates/test_gap_certifier.py", "methods/test_continuation.py"),
    "certificates/gap_certifier.py": ("certificates/test_gap_certifier.py",
                                      "methods/test_continuation.py"),
    "certificates/gap_stopping.py": ("certificates/test_gap_stopping.py",),
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
LIMIT = 30.0  # CPU seconds, and three times what the tests need: longer counts as noticed
WAITING = 1800.0  # seconds by the clock, on a machine that does other things as well
EQUIVALENT = ROOT / "tests" / "mutants-equivalent.txt"
EARLY = ("numpy", "scipy.sparse.linalg", "scipy.optimize", "flint")


@dataclass(frozen=True)
class Mutant:
    """One change: ``number`` is the place in the walk of the tree, ``kind`` what is done there."""

    module: str
    number: int
    kind: str
    line: int

    @property
    def words(self) -> str:
        """What becomes of what, in which function: how a list knows the mutant."""
        tree = ast.parse((PACKAGE / self.module).read_text())
        node = _places(tree)[self.number]
        changed = dict(_changes(node))[self.kind]
        defs = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
        around = [f for f in defs if f.lineno <= self.line <= (f.end_lineno or 0)]
        place = f"{self.module} {around[-1].name}" if around else self.module
        if isinstance(node, ast.FunctionDef):
            return f"{place}: {self.kind}"
        return f"{place}: {ast.unparse(node)} -> {ast.unparse(changed)}"

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


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module of the package from a changed tree."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.name = "ccmac." + module.removesuffix(".py").replace("/", ".")
        self.path, self.tree = str(PACKAGE / module), tree

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, self.path, "exec"), vars(module))


def failing(tests: Sequence[str], mutant: Mutant | None, limit: float) -> tuple[bool, float]:
    """(whether the tests fail, CPU seconds), in a process of their own."""
    child = os.fork()
    if not child:
        _run(tests, mutant, limit)
    begun = time.monotonic()
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return status != 0, used.ru_utime + used.ru_stime
        if time.monotonic() - begun > WAITING:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)


def _run(tests: Sequence[str], mutant: Mutant | None, limit: float) -> None:
    """Never returns: exit status 0 when all tests pass."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    most = int(limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    if mutant is not None:
        source = (PACKAGE / mutant.module).read_text()
        sys.meta_path.insert(0, _Changed(mutant.module, mutant.tree(source)))
    try:
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])
    except BaseException:
        code = 1
    os._exit(int(code) % 5)  # 5: there are no tests


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
    parser.add_argument("--first", type=int, default=0, help="mutants of the draw to leave out")
    parser.add_argument("--green", action="store_true", help="the tests are known to pass as it is")
    parser.add_argument("--wanted", type=float, default=0.0, help="share that must be killed")
    asked = parser.parse_args()
    every = [m for module in chosen_modules(asked.modules) for m in mutants(module)]
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    for name in EARLY:
        importlib.import_module(name)
    begun, killed, survivors, equal = time.monotonic(), 0, 0, 0
    listed, limits = equivalent(), dict[tuple[str, ...], float]()
    for mutant in drawn[asked.first :]:
        if time.monotonic() - begun > asked.seconds:
            break
        tests = tests_of(mutant.module)
        if asked.green:
            limits[tests] = 4 * LIMIT
        elif tests not in limits:
            wrong, spent = failing(tests, None, 10 * LIMIT)
            if wrong:
                print(f"{' '.join(tests)} fails without any change")
                return 2
            limits[tests] = max(LIMIT, 3 * spent)
        if failing(tests, mutant, limits[tests])[0]:
            killed += 1
        elif mutant.words in listed:
            equal += 1
        else:
            survivors += 1
            print(f"survived, line {mutant.line}: {mutant.words}", flush=True)
    tried = killed + survivors
    share = killed / tried if tried else 1.0
    print(
        f"{tried + equal} of {len(every)} mutants tried: {killed} killed, {survivors} survived, "
        f"{equal} change nothing ({share:.1%} of the others)"
    )
    return int(share < asked.wanted)


def equivalent() -> set[str]:
    """The mutants that are known to change nothing: lines without their reasons."""
    if not EQUIVALENT.exists():
        return set()
    lines = EQUIVALENT.read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", "    "))}


if __name__ == "__main__":
    sys.exit(main())
