"""YAML as plain data, each value with its line and the path of keys that leads to it.

PyYAML's safe loader reads it. Aliases are refused, since a few of them stand for a billion values,
and so is deep nesting. Every refusal is one InputError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import yaml

from ccmac.errors import InputError
from ccmac.texts import SHOWN, cut, nearest, read_text, shown, steers, unfit

T = TypeVar("T")
DEPTH = 30


def bounded(safe: Any) -> Any:
    """One of PyYAML's safe loaders, with whole numbers of at most 64 bits."""

    def whole(loader: Any, node: Any) -> int:
        value: int = loader.construct_yaml_int(node)
        if abs(value) >= 2**63:
            said = "a number is too large"
            raise yaml.MarkedYAMLError(problem=said, problem_mark=node.start_mark)
        return value

    loader: Any = type("Loader", (safe,), {})
    loader.add_constructor("tag:yaml.org,2002:int", whole)
    return loader


LOADER = bounded(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@dataclass(frozen=True)
class Located:
    """A value, the file, its lines by paths, and the path of keys that leads to the value."""

    value: Any
    file: str
    lines: Mapping[str, int]
    path: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise an InputError that points at this value."""
        where = f"{cut(self.path, 2 * SHOWN)}: " if self.path else ""
        raise InputError(f"{self.file}, line {self.lines.get(self.path, 1)}: {where}{message}")

    def _inner(self, value: Any, path: str) -> Located:
        return Located(value, self.file, self.lines, path)

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
        return [self._inner(v, f"{self.path}[{k}]") for k, v in enumerate(self.value)]

    def each(self, read: Callable[[Located], T]) -> tuple[T, ...]:
        """``read`` applied to every entry."""
        return tuple(read(item) for item in self.items())

    def mapping(
        self, known: Iterable[str] | None = None, needed: Iterable[str] = ()
    ) -> dict[str, Located]:
        """A mapping whose keys are all ``known``, those ``needed`` among them."""
        if not isinstance(self.value, dict):
            self.fail(f"expected a mapping, got {_kind(self.value)}")
        entries = {k: self._inner(v, f"{self.path}.{k}".lstrip(".")) for k, v in self.value.items()}
        for key, entry in entries.items():
            if not isinstance(key, str):
                entry.fail(f"a key must be a text, got {_kind(key)}")
            if known is not None and key not in known:
                entry.fail(f"the key is unknown; {nearest(key, known)}")
        for key in needed:
            if key not in entries:
                self.fail(f"the key {key!r} is missing")
        return entries


def parse(text: str, file: str) -> Located:
    """The document of ``text``."""
    value = load(text, file)
    return Located(value, file, dict(_lines(yaml.compose(text, LOADER), "", 1)))


def _lines(node: Any, path: str, line: int) -> Iterator[tuple[str, int]]:
    """Paths of all values with their lines, those of their keys where they have one."""
    yield path, line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}".lstrip(".")
            yield from _lines(value, inner, key.start_mark.line + 1)
    elif isinstance(node, yaml.SequenceNode):
        for k, value in enumerate(node.value):
            yield from _lines(value, f"{path}[{k}]", value.start_mark.line + 1)


def load(text: str, file: str) -> Any:
    """The values of a document, without their lines."""
    try:
        depth = 0
        for event in yaml.parse(text, LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH or isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1
                raise InputError(
                    f"{file}, line {line}: has an alias, or is nested more than {DEPTH} deep; "
                    "write it out"
                )
        return yaml.load(text, LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = " ".join(filter(None, (error.context, error.problem)))
        raise InputError(f"{file}, line {line}: not YAML: {cut(said)}") from None
    except (yaml.YAMLError, ValueError, LookupError) as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise InputError(f"{file}, line 1: not YAML: {cut(reason)}") from None


def read_yaml(path: Path, kind: type[T], writer: str, limit: int) -> T:
    """A file of at most ``limit`` bytes that ``writer`` made, of the types that ``kind`` has."""
    try:
        text = read_text(path, str(path), limit)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; give a directory written by {writer}") from None
    try:
        return msgspec.convert(load(text, str(path)), kind)
    except msgspec.ValidationError as error:
        remedy = f"save it again with {writer}, or update ccmac"
        raise InputError(f"{path}: {unfit(error)}; {remedy}") from None


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else shown(value)
