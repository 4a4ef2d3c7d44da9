"""The kinds of changes that make a mutant of a module: of one node of its tree, one at a time.

``plain`` changes are about operators, numbers, names and calls left out; ``others`` about what
is left: orders of arguments, statements, branches, loops, slices, decorators.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator

NEGATED = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
EDGES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
LOOSE = {
    ast.Lt: ast.NotEq, ast.Gt: ast.NotEq, ast.LtE: ast.Eq, ast.GtE: ast.Eq,
    ast.Eq: ast.LtE, ast.NotEq: ast.Gt,
}  # fmt: skip
OPERATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Div, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.Add,
}  # fmt: skip
REPLACED = {
    ast.Add: ast.Mult, ast.Sub: ast.Div, ast.Mult: ast.Add, ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div, ast.Pow: ast.Add, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitXor,
    ast.BitOr: ast.BitXor, ast.BitXor: ast.BitAnd, ast.MatMult: ast.Mult,
}  # fmt: skip
OPPOSITE = (
    ("max", "min"), ("any", "all"), ("maximum", "minimum"), ("argmax", "argmin"), ("ceil", "floor"),
    ("zeros", "ones"), ("zeros_like", "ones_like"), ("vstack", "hstack"), ("lower", "upper"),
    ("startswith", "endswith"), ("forward", "adjoint"), ("sum", "max"), ("isfinite", "isnan"),
    ("fmax", "fmin"), ("append", "extend"), ("sqrt", "abs"), ("log", "exp"),
)  # fmt: skip
OTHER = dict(OPPOSITE) | {b: a for a, b in OPPOSITE if a != "sum"}
NEUTRAL = ("float", "int", "bool", "tuple", "list", "asarray", "ascontiguousarray", "cast")
SYMMETRIC = ("max", "min", "maximum", "minimum", "hypot", "row_dots", "agreed_dots")
TYPES = ("dict", "list", "tuple", "set", "Callable", "Generator", "Sequence", "Mapping")
DOUBLE = "np.float64"  # what NumPy takes where None is given
NEVER = "StopAsyncIteration"  # an exception that nothing here raises

Changes = Iterator[tuple[str, ast.AST]]


def changes(node: ast.AST, kinds: str = "all") -> Changes:
    """(kind, the node changed) for everything that can be done to one node."""
    for name, made in (("plain", _plain), ("others", _others)):
        if kinds in ("all", name):
            for kind, new in made(node):
                yield kind, ast.copy_location(new, node)


def _plain(node: ast.AST) -> Changes:
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.AugAssign):
        yield from _operations(node)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _shortened(node)
    elif isinstance(node, ast.Return) and _given(node):
        yield "nothing returned", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Break | ast.Continue):
        yield "break", ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    elif isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
        names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")][:1]
        for name in (n for n in names if ast.unparse(node.body[-1]) != f"return {n}"):
            last = ast.copy_location(ast.Return(ast.Name(name, ast.Load())), node.body[-1])
            yield "argument returned", _with(node, body=[*node.body[:-1], last])


def _others(node: ast.AST) -> Changes:
    if isinstance(node, ast.stmt):
        yield from _statements(node)
    elif isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp):
        yield from _expressions(node)
    elif isinstance(node, ast.Call):
        yield from _rearranged(node)
    elif isinstance(node, ast.Subscript | ast.Slice):
        yield from _places(node)
    elif isinstance(node, ast.Constant):
        yield from _less(node)
    elif isinstance(node, ast.IfExp):
        yield "branches exchanged", _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Lambda):
        yield "lambda of nothing", _with(node, body=ast.Constant(None))
    elif isinstance(node, ast.Attribute) and node.attr == "T" and isinstance(node.ctx, ast.Load):
        yield "not transposed", node.value
    elif isinstance(node, ast.comprehension):
        for k in range(len(node.ifs)):
            yield f"condition {k} removed", _with(node, ifs=_without(node.ifs, k))
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield "not caught", _with(node, type=ast.Name(NEVER, ast.Load()))


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _without(items: list[ast.expr], k: int) -> list[ast.expr]:
    return [*items[:k], *items[k + 1 :]]


def _given(node: ast.Return) -> bool:
    """Whether anything is returned."""
    return node.value is not None and ast.unparse(node) != "return None"


def _operations(node: ast.AST) -> Changes:
    """Other comparisons and operators, terms and signs left out."""
    if isinstance(node, ast.Compare):
        for kind, others in (("comparison", NEGATED), ("edge", EDGES)):
            yield from _compared(node, kind, others)
    elif isinstance(node, ast.BoolOp):
        yield "and, or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign dropped", node.operand
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in OPERATED:
            yield "operator", _with(node, op=OPERATED[type(node.op)]())
        yield "change dropped", ast.Pass()
        yield "set", ast.Assign([node.target], node.value)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATED:
        yield "operator", _with(node, op=OPERATED[type(node.op)]())
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            yield "second dropped", node.left
        if isinstance(node.op, ast.Add | ast.Mult):
            yield "first dropped", node.right


def _compared(node: ast.Compare, kind: str, others: dict[type, type]) -> Changes:
    for k, op in enumerate(node.ops):
        if type(op) in others:
            new = [*node.ops[:k], others[type(op)](), *node.ops[k + 1 :]]
            yield f"{kind} {k}", _with(node, ops=new)


def _constants(node: ast.Constant) -> Changes:
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
        yield kind, ast.Constant(other)


def _shortened(node: ast.Call) -> Changes:
    """A call, or one of its arguments, left out."""
    if len(node.args) + len(node.keywords) > 1:
        if node.args:
            yield "argument dropped", _with(node, args=node.args[:-1])
        for k in (k for k, word in enumerate(node.keywords) if word.arg != "strict"):
            others = [*node.keywords[:k], *node.keywords[k + 1 :]]
            yield f"keyword {k} dropped", _with(node, keywords=others)
    elif len(node.args) == 1:
        sole = isinstance(node.args[0], ast.Starred | ast.GeneratorExp)
        if _name(node.func) not in NEUTRAL and not sole:
            yield "call dropped", node.args[0]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _statements(node: ast.stmt) -> Changes:
    """A statement left out, a value that is nothing or negated, a condition turned round, a loop
    that is not entered, a decorator less."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "statement left out", ast.Pass()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and not _is_type(node.value):
        yield "nothing assigned", _with(node, value=ast.Constant(None))
        if isinstance(node, ast.Assign):
            yield "statement left out", ast.Pass()
    elif isinstance(node, ast.Raise) and "NotImplemented" not in ast.unparse(node):
        yield "nothing raised", ast.Pass()
    elif isinstance(node, ast.Return) and _given(node) and node.value is not None:
        truth = isinstance(node.value, ast.Compare | ast.BoolOp) or "bool(" in ast.unparse(node)
        op = ast.Not() if truth else ast.USub()
        if not ast.unparse(node.value).startswith(("0", "np.zeros")):
            yield "negative returned", ast.Return(ast.UnaryOp(op, node.value))
    elif isinstance(node, ast.If | ast.While) and not _plainly_negated(node.test):
        yield "condition negated", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.For):
        yield "loop not entered", _with(node, iter=ast.List([], ast.Load()))
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        for k, mark in enumerate(node.decorator_list):
            if (name := ast.unparse(mark)) not in ("abstractmethod", "runtime_checkable"):
                new = _with(node, decorator_list=_without(node.decorator_list, k))
                yield f"@{name} of {node.name} dropped", new


def _is_type(value: ast.expr | None) -> bool:
    """Of a name for a type, or of a name alone, nobody reads a value."""
    return value is None or (isinstance(value, ast.Subscript) and _name(value.value) in TYPES)


def _plainly_negated(test: ast.expr) -> bool:
    """Whether a plain change turns the condition round."""
    single = isinstance(test, ast.Compare) and len(test.ops) == 1
    return single or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _expressions(node: ast.AST) -> Changes:
    """Further operators, operands exchanged or left out."""
    if isinstance(node, ast.Compare):
        yield from _compared(node, "loose", LOOSE)
        if len(node.ops) > 1:
            shorter = node.comparators[:-1]
            yield "first comparison alone", _with(node, ops=node.ops[:-1], comparators=shorter)
    elif isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = _without(node.values, k)
            yield f"part {k} dropped", _with(node, values=rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield "not inverted", node.operand
    elif isinstance(node, ast.BinOp):
        if type(node.op) in REPLACED:
            yield "replaced", _with(node, op=REPLACED[type(node.op)]())
        ordered = isinstance(node.op, ast.Sub | ast.Div | ast.Pow | ast.FloorDiv)
        if ordered and ast.dump(node.left) != ast.dump(node.right):
            yield "operands exchanged", _with(node, left=node.right, right=node.left)


def _rearranged(node: ast.Call) -> Changes:
    """Arguments exchanged, left out or nothing, the opposite of a function, a copy not made."""
    args, name = node.args, _name(node.func)
    if name in OTHER:
        field = "id" if isinstance(node.func, ast.Name) else "attr"
        yield "opposite", _with(node, func=_with(node.func, **{field: OTHER[name]}))
    if name == "copy" and not args and isinstance(node.func, ast.Attribute):
        yield "copy not made", node.func.value
    if name in ("cast", "zip", "isinstance") or any(isinstance(a, ast.Starred) for a in args):
        return
    for k in range(len(args) - 1):
        swapped = [*args[:k], args[k + 1], args[k], *args[k + 2 :]]
        if name not in SYMMETRIC and ast.dump(args[k]) != ast.dump(args[k + 1]):
            yield f"arguments {k} exchanged", _with(node, args=swapped)
        yield f"argument {k} left out", _with(node, args=_without(args, k))
    telling = [not _numeric(node.func) and ast.unparse(arg) != DOUBLE for arg in args]
    for k in (k for k, tells in enumerate(telling) if tells):
        nothing = [*args[:k], ast.Constant(None), *args[k + 1 :]]
        yield f"argument {k} nothing", _with(node, args=nothing)
    for k, word in enumerate(node.keywords):
        if word.arg not in (None, "strict") and ast.unparse(word.value) != DOUBLE:
            nothing = ast.keyword(word.arg, ast.Constant(None))
            words = [*node.keywords[:k], nothing, *node.keywords[k + 1 :]]
            yield f"keyword {k} nothing", _with(node, keywords=words)


def _numeric(function: ast.expr) -> bool:
    """Functions of numbers, which refuse None: whoever enters the line notices."""
    first = ast.unparse(function).split(".")[0]
    return first in ("np", "math") or hasattr(builtins, first)


def _places(node: ast.AST) -> Changes:
    """An index, or an end of a slice, moved by one."""
    if isinstance(node, ast.Slice):
        lower = _moved(node.lower, 1) if node.lower else ast.Constant(1)
        yield "begun later", _with(node, lower=lower)
        upper = _moved(node.upper, -1) if node.upper else ast.Constant(-1)
        yield "ended earlier", _with(node, upper=upper)
    elif isinstance(node, ast.Subscript) and _name(node.value) not in TYPES:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for k, index in enumerate(indices):
            if isinstance(index, ast.Name | ast.BinOp | ast.Attribute | ast.Subscript):
                new = [*indices[:k], _moved(index, 1), *indices[k + 1 :]]
                whole = ast.Tuple(new, ast.Load()) if len(new) > 1 else new[0]
                yield f"index {k} moved", _with(node, slice=whole)


def _moved(index: ast.expr, by: int) -> ast.expr:
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return ast.Constant(index.value + by)
    return ast.BinOp(index, ast.Add() if by > 0 else ast.Sub(), ast.Constant(abs(by)))


def _less(node: ast.Constant) -> Changes:
    """A number smaller by one, a text emptied, words for readers too."""
    value = node.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield "number minus one", ast.Constant(value - 1)
    elif isinstance(value, str) and value:
        yield "text emptied", ast.Constant("")
        if " " in value:
            yield "words", ast.Constant(f"XX{value}XX")
