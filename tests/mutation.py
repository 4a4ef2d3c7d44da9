"""What a mutant is: one change of a module, and how it gets into the memory of a process."""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from changes import changes

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ccmac"
HITS = bytearray(1 << 17)  # of the blocks that were entered, numbered as in KEYS
KEYS: list[str] = []


@dataclass(frozen=True)
class Mutant:
    """One change: ``number`` is the place in the walk of the tree, ``kind`` what is done there."""

    module: str
    number: int
    kind: str
    line: int
    block: str  # "module:function:number" of the innermost block; without one: import time

    @property
    def words(self) -> str:
        """What becomes of what, in which function: how a list knows the mutant."""
        tree = ast.parse((PACKAGE / self.module).read_text())
        node = _places(tree)[self.number]
        changed = dict(changes(node))[self.kind]
        defs = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
        around = [f for f in defs if f.lineno <= self.line <= (f.end_lineno or 0)]
        place = f"{self.module} {around[-1].name}" if around else self.module
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return f"{place}: {self.kind}"
        shown = node
        while isinstance(shown, ast.Constant | ast.UnaryOp):  # with what stands around it
            shown = next(p for p in ast.walk(tree) if shown in ast.iter_child_nodes(p))
        before = ast.unparse(shown).strip().splitlines()[0]
        after = ast.unparse(_Put(node, changed).visit(shown)).strip().splitlines()[0]
        return f"{place}: {before} -> {after}"

    def tree(self, source: str) -> ast.Module:
        """The changed module."""
        tree = ast.parse(source)
        node = _places(tree)[self.number]
        changed = dict(changes(node))[self.kind]
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
                if isinstance(child, ast.keyword) and child.arg == "strict":
                    continue  # of a zip: it speaks up only where something else is wrong
                if name == "args" and ast.unparse(node).startswith("cast(") and child is value[0]:
                    continue  # a type
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    out.append(child)
                    if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
                        walk(child)

    walk(tree)
    return out


def _functions(body: Sequence[ast.AST], inside: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods that no other function surrounds, with their qualified names."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield inside + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{inside}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body, inside)


def _blocks(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    """Lists of statements of a function, outer ones before those inside them."""
    fields = ("body", "orelse", "finalbody")
    found = [getattr(node, name, None) for node in ast.walk(function) for name in fields]
    return [body for body in found if isinstance(body, list) and body]


def mutants(module: str, kinds: str = "all") -> list[Mutant]:
    """All changes of one module (a path below the package), of the kinds asked for."""
    tree = ast.parse((PACKAGE / module).read_text())
    block: dict[ast.AST, str] = {}
    for name, function in _functions(tree.body):
        block[function] = f"{module}:{name}:0"
        for number, body in enumerate(_blocks(function)):
            for node in (node for statement in body for node in ast.walk(statement)):
                block[node] = f"{module}:{name}:{number}"
    return [
        Mutant(module, number, kind, _line(node), "" if kind[0] == "@" else block.get(node, ""))
        for number, node in enumerate(_places(tree))
        for kind, _ in changes(node, kinds)
    ]


def _line(node: ast.AST) -> int:
    return getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0)


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives modules of the package: with probes that say which blocks were entered, or changed."""

    def __init__(self, mutant: Mutant | None = None) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        file = PACKAGE.parent / (name.replace(".", "/") + ".py")
        ours = self.mutant is None or str(file) == str(PACKAGE / self.mutant.module)
        if not name.startswith("ccmac.") or not ours or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        source = Path(str(module.__file__)).read_text()
        tree = self.mutant.tree(source) if self.mutant else self._probed(ast.parse(source), module)
        vars(module)["__hits__"] = HITS
        exec(compile(tree, str(module.__file__), "exec"), vars(module))

    def _probed(self, tree: ast.Module, module: ModuleType) -> ast.Module:
        path = Path(str(module.__file__)).relative_to(PACKAGE)
        for name, function in _functions(tree.body):
            for number, body in enumerate(_blocks(function)):
                probe = ast.parse(f"__hits__[{len(KEYS)}] = 1").body[0]
                for node in ast.walk(probe):
                    ast.copy_location(node, body[0])
                texts = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
                body.insert(int(texts), probe)
                KEYS.append(f"{path}:{name}:{number}")
        return tree


def _changed_code(code: CodeType) -> Iterator[CodeType]:
    """Code of the functions of a compiled module, those inside classes too."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            if not constant.co_flags & 2:  # a class: no fast locals
                yield from _changed_code(constant)


@cache
def living() -> dict[str, list[FunctionType]]:
    """The functions of the process, by files; looked for once, before anything is forked."""
    found: dict[str, list[FunctionType]] = {}
    for f in gc.get_objects():
        if isinstance(f, FunctionType):
            found.setdefault(f.__code__.co_filename, []).append(f)
    gc.freeze()  # so that a collection in a fork does not copy the memory
    return found


def change(mutant: Mutant) -> bool:
    """Put the changed code into the function; False where only a new import can do it."""
    if not mutant.block:
        return False
    path = str(PACKAGE / mutant.module)
    code = compile(mutant.tree(Path(path).read_text()), path, "exec")
    new = {(c.co_qualname, c.co_firstlineno): c for c in _changed_code(code)}
    name, done = mutant.block.split(":")[1], False
    for f in living().get(path, []):
        key = (f.__code__.co_qualname, f.__code__.co_firstlineno)
        if key[0] == name and key in new:
            if f.__code__.co_freevars != new[key].co_freevars:
                return False
            f.__code__, done = new[key], True
    return done
