"""YAML as plain data, each value with its line.

Only mappings with text keys, lists, texts, numbers, truth values and null are read; a date is a
text, and a tag that would build anything else is refused. Depth and entries have limits. Every
refusal is one InputError that names the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import yaml

from ccmac.errors import InputError
from ccmac.texts import DIGITS, SHOWN, cut, nearest, read_text, shown, steers, unfit

T = TypeVar("T")
ENTRIES = 100_000
"""Most values of a document, aliases counted with what they stand for."""
DEPTH = 30
CORE = "tag:yaml.org,2002:"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Located:
    """A value, its line (from 1), the file and the path of keys that leads to it."""

    value: Any
    line: int
    file: str
    path: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise an InputError that points at this value."""
        where = f"{cut(self.path, 2 * SHOWN)}: " if self.path else ""
        raise InputError(f"{self.file}, line {self.line}: {where}{message}")

    # -- scalars -----------------------------------------------------------------------------------
    def text(self, choices: Iterable[str] | None = None) -> str:
        """A text, perhaps one of ``choices``."""
        if not isinstance(self.value, str):
            self.fail(f"expected a text, got {_kind(self.value)}")
        if choices is not None and self.value not in choices:
            self.fail(f"{shown(self.value)} is unknown; {nearest(self.value, choices)}")
        return self.value

    def name(self) -> str:
        """A text without control characters."""
        if steers(found := self.text()):
            self.fail(f"{shown(found)} has control characters; leave them out")
        return found

    def number(self, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number in [low, high]; YAML reads 1e-6 as a text, which is accepted."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            self.fail(f"expected a number, got {_kind(value)}")
        try:
            value = float(value)
        except ValueError:
            self.fail(f"expected a number, got {shown(self.value)}")
        if not (low <= value <= high and math.isfinite(value)):
            self.fail(f"{value:g} lies outside {low:g}..{high:g}")
        return value

    def whole(self, low: int = 0) -> int:
        """A whole number, at least ``low``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail(f"expected a whole number, got {_kind(self.value)}")
        if self.value < low:
            self.fail(f"{self.value} is below {low}")
        return self.value

    # -- containers --------------------------------------------------------------------------------
    def items(self) -> list[Located]:
        """The entries of a list that is not empty; a single value counts as a list of one."""
        if not isinstance(self.value, list):
            return [self]
        if not self.value:
            self.fail("the list is empty; give at least one entry")
        return list(self.value)

    def each(self, read: Callable[[Located], T]) -> tuple[T, ...]:
        """``read`` applied to every entry."""
        return tuple(read(item) for item in self.items())

    def mapping(
        self, known: Iterable[str] | None = None, needed: Iterable[str] = ()
    ) -> dict[str, Located]:
        """A mapping whose keys are all ``known``, those ``needed`` among them."""
        if not isinstance(self.value, dict):
            self.fail(f"expected a mapping, got {_kind(self.value)}")
        for key, entry in self.value.items():
            if known is not None and key not in known:
                entry.fail(f"the key is unknown; {nearest(key, known)}")
        for key in needed:
            if key not in self.value:
                self.fail(f"the key {key!r} is missing")
        return dict(self.value)

    def plain(self) -> Any:
        """The value without its lines; numbers are finite."""
        if isinstance(self.value, dict):
            return {key: entry.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain() for entry in self.value]
        if isinstance(self.value, float) and not math.isfinite(self.value):
            self.fail(f"{self.value} is not a finite number")
        return self.value


def parse(text: str, file: str, *, entries: int = ENTRIES) -> Located:
    """The document of ``text`` as located values, at most ``entries`` of them."""
    try:
        if _aliased(text, file):  # what aliases stand for counts wherever they stand
            entries = min(entries, ENTRIES)
        node = yaml.compose(text, LOADER)
        if node is None:
            raise InputError(f"{file}, line 1: the file is empty")
        return _Reader(file, entries).located(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = " ".join(filter(None, (error.context, error.problem)))
        raise InputError(f"{file}, line {line}: not YAML: {cut(said)}") from None
    except yaml.YAMLError as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise InputError(f"{file}, line 1: not YAML: {cut(reason)}") from None


def read_yaml(path: Path, kind: type[T], writer: str, limit: int, entries: int = ENTRIES) -> T:
    """A file of at most ``limit`` bytes that ``writer`` made, of the types that ``kind`` has."""
    try:
        text = read_text(path, str(path), limit)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; give a directory written by {writer}") from None
    try:
        return msgspec.convert(parse(text, str(path), entries=entries).plain(), kind)
    except msgspec.ValidationError as error:
        remedy = f"save it again with {writer}, or update ccmac"
        raise InputError(f"{path}: {unfit(error)}; {remedy}") from None


def _aliased(text: str, file: str) -> bool:
    """Whether there are aliases; InputError where values are nested too deeply.

    By the parser's events, which are flat: what builds nodes of them calls itself.
    """
    depth = 0
    aliased = False
    for event in yaml.parse(text, LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            line = event.start_mark.line + 1
            raise InputError(f"{file}, line {line}: is nested more than {DEPTH} deep")
        aliased = aliased or isinstance(event, yaml.AliasEvent)
    return aliased


@dataclass
class _Reader:
    """Values from the nodes of a document; aliases count with what they stand for."""

    file: str
    left: int

    def located(self, node: Any, path: str = "", depth: int = 0, line: int = 0) -> Located:
        """The value of a node; its ``line`` is that of its key, where it has one."""
        here = Located(None, line or node.start_mark.line + 1, self.file, path)
        self.left -= 1
        if self.left < 0 or depth > 2 * DEPTH:
            here.fail("the file has too many entries, those that aliases stand for included")
        kind = node.tag.removeprefix(CORE)
        if kind not in PLAIN:
            here.fail(f"not YAML: the tag {cut(node.tag)!r} is not plain data; leave it out")
        if isinstance(node, yaml.MappingNode):
            here.value = self.entries(node, path, depth)
        elif isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            here.value = [self.located(item, f"{path}[{k}]", depth + 1) for k, item in items]
        elif kind not in ("int", "float", "bool", "null"):  # dates are texts
            here.value = node.value
        else:
            try:
                if len(node.value) > DIGITS and kind == "int":
                    raise ValueError
                here.value = yaml.constructor.SafeConstructor().construct_object(node)
            except (ValueError, KeyError, IndexError, OverflowError):
                here.fail(f"{shown(node.value)} is not a number that can be read")
        return here

    def entries(self, node: Any, path: str, depth: int) -> dict[str, Located]:
        """The entries of a mapping, whose keys are short texts."""
        found: dict[str, Located] = {}
        for key_node, value_node in node.value:
            key = self.located(key_node, path, depth + 1)
            name = key.value
            if not isinstance(name, str) or len(name) > SHOWN:
                key.fail(f"a key must be a short text, got {_kind(name)}")
            key.path = f"{path}.{name}" if path else name
            if name in found:
                key.fail("the key is given twice")
            found[name] = self.located(value_node, key.path, depth + 1, key.line)
        return found


PLAIN = ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else shown(value)
