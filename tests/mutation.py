"""What a mutant is: one change of a module, and how it gets into the memory of a process."""

from __future__ import annotations

import ast
import copy
import gc
import importlib.abc
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ccmac"
NEGATED = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
EDGES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPERATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Div, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.Add,
}  # fmt: skip
NEUTRAL = ("float", "int", "bool", "tuple", "list", "asarray", "ascontiguousarray", "cast")
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
        changed = dict(_changes(node))[self.kind]
        defs = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
        around = [f for f in defs if f.lineno <= self.line <= (f.end_lineno or 0)]
        place = f"{self.module} {around[-1].name}" if around else self.module
        if isinstance(node, ast.FunctionDef):
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
                if isinstance(child, ast.keyword) and child.arg == "strict":
                    continue  # of a zip: it speaks up only where something else is wrong
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Raise):
                    out.append(child)
                    if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
                        walk(child)

    walk(tree)
    return out


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(kind, the node changed) for everything that can be done to one node."""
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.AugAssign):
        yield from _operations(node)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        yield "nothing returned", ast.copy_location(ast.Return(ast.Constant(None)), node)
    elif isinstance(node, ast.Break | ast.Continue):
        other = ast.Continue if isinstance(node, ast.Break) else ast.Break
        yield "break", ast.copy_location(other(), node)
    elif isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
        names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
        if names:
            new_def = copy.copy(node)
            given = ast.Return(ast.Name(names[0], ast.Load()))
            new_def.body = [*node.body[:-1], ast.copy_location(given, node.body[-1])]
            yield "argument returned", new_def


def _operations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Other comparisons and operators, terms and signs left out."""
    if isinstance(node, ast.Compare):
        for kind, others in (("comparison", NEGATED), ("edge", EDGES)):
            for k, op in enumerate(node.ops):
                if type(op) in others:
                    new = copy.copy(node)
                    new.ops = [*node.ops[:k], others[type(op)](), *node.ops[k + 1 :]]
                    yield f"{kind} {k}", new
    elif isinstance(node, ast.BoolOp):
        new_bool = copy.copy(node)
        new_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", new_bool
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign dropped", node.operand
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in OPERATED:
            new_aug = copy.copy(node)
            new_aug.op = OPERATED[type(node.op)]()
            yield "operator", new_aug
        yield "change dropped", ast.copy_location(ast.Pass(), node)
        yield "set", ast.copy_location(ast.Assign([node.target], node.value), node)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATED:
        new_op = copy.copy(node)
        new_op.op = OPERATED[type(node.op)]()
        yield "operator", new_op
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            yield "second dropped", node.left
        if isinstance(node.op, ast.Add | ast.Mult):
            yield "first dropped", node.right


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    """Other numbers, truths and texts."""
    value = node.value
    others: dict[object, str] = {}
    if isinstance(value, bool):
        others = {not value: "truth"}
    elif isinstance(value, int | float):
        others = {value * 2 + (value == 0): "number doubled", value + 1: "number plus one"}
    elif isinstance(value, str) and " " not in value:  # words for readers are left alone
        others = {f"XX{value}XX": "text"}
    for other, kind in others.items():
        yield kind, ast.copy_location(ast.Constant(other), node)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """A call, or one of its arguments, left out."""
    if len(node.args) + len(node.keywords) > 1:
        if node.args:
            new = copy.copy(node)
            new.args = node.args[:-1]
            yield "argument dropped", new
        for k in (k for k, word in enumerate(node.keywords) if word.arg != "strict"):
            new = copy.copy(node)
            new.keywords = [*node.keywords[:k], *node.keywords[k + 1 :]]
            yield f"keyword {k} dropped", new
    elif len(node.args) == 1:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name not in NEUTRAL and not isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
            yield "call dropped", node.args[0]


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


def mutants(module: str) -> list[Mutant]:
    """All changes of one module (a path below the package)."""
    tree = ast.parse((PACKAGE / module).read_text())
    block: dict[ast.AST, str] = {}
    for name, function in _functions(tree.body):
        block[function] = f"{module}:{name}:0"
        for number, body in enumerate(_blocks(function)):
            for node in (node for statement in body for node in ast.walk(statement)):
                block[node] = f"{module}:{name}:{number}"
    return [
        Mutant(module, number, kind, getattr(node, "lineno", 0), block.get(node, ""))
        for number, node in enumerate(_places(tree))
        for kind, _ in _changes(node)
    ]


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
