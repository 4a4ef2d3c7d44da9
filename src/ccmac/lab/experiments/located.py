"""YAML values that remember their line, so that a complaint can point at it.

Only plain data are read (mappings, lists, text, numbers, truth values, null); a tag that would
build an object is refused by the safe loader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import yaml

from ccmac.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Located:
    """A value, its line (from 1), the file and the path of keys that leads to it."""

    value: Any
    line: int
    file: str
    path: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise an InputError that points at this value."""
        where = f"{self.path}: " if self.path else ""
        raise InputError(f"{self.file}, line {self.line}: {where}{message}")

    # -- scalars -----------------------------------------------------------------------------------
    def text(self, choices: tuple[str, ...] | None = None) -> str:
        """A text, perhaps one of ``choices``."""
        if not isinstance(self.value, str):
            self.fail(f"expected a text, got {_kind(self.value)}")
        if choices is not None and self.value not in choices:
            self.fail(f"{self.value!r} is unknown; take one of {', '.join(choices)}")
        return self.value

    def number(self, low: float = float("-inf"), high: float = float("inf")) -> float:
        """A finite number in [low, high]; YAML reads 1e-6 as a text, which is accepted."""
        value = self.value
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                self.fail(f"expected a number, got {self.value!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"expected a number, got {_kind(value)}")
        if not low <= value <= high or value in (float("inf"), float("-inf")):
            self.fail(f"{value:g} lies outside {low:g}..{high:g}")
        return float(value)

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

    def mapping(self, known: tuple[str, ...] | None = None) -> dict[str, Located]:
        """A mapping whose keys are all ``known``."""
        if not isinstance(self.value, dict):
            self.fail(f"expected a mapping, got {_kind(self.value)}")
        if known is not None:
            for key, entry in self.value.items():
                if key not in known:
                    entry.fail(f"the key is unknown; take {', '.join(known)}")
        return dict(self.value)

    def plain(self) -> Any:
        """The value without its lines."""
        if isinstance(self.value, dict):
            return {key: entry.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain() for entry in self.value]
        return self.value


def parse(text: str, file: str) -> Located:
    """The document of ``text`` as located values."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise InputError(f"{file}, line 1: the file is empty")
            return _build(loader, node, file, "")
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InputError(f"{file}, line {line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file}, line 1: not YAML: {reason}") from None


def _build(loader: yaml.SafeLoader, node: yaml.Node, file: str, path: str) -> Located:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Located(dict(_entries(loader, node, file, path)), line, file, path)
    if isinstance(node, yaml.SequenceNode):
        entries = [
            _build(loader, child, file, f"{path}[{k}]") for k, child in enumerate(node.value)
        ]
        return Located(entries, line, file, path)
    return Located(loader.construct_object(node), line, file, path)


def _entries(
    loader: yaml.SafeLoader, node: yaml.MappingNode, file: str, path: str
) -> Iterator[tuple[str, Located]]:
    seen: set[str] = set()
    for key_node, child in node.value:
        key = loader.construct_object(key_node)
        inner = f"{path}.{key}" if path else str(key)
        where = Located(key, key_node.start_mark.line + 1, file, inner)
        if not isinstance(key, str):
            where.fail(f"a key must be a text, got {_kind(key)}")
        if key in seen:
            where.fail("the key is given twice")
        seen.add(key)
        value = _build(loader, child, file, inner)
        # A complaint about a whole block points at its key, not at the line below it.
        yield key, Located(value.value, where.line, file, inner)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(value)
