"""YAML as plain data, each value with its line.

Only mappings with text keys, lists, texts, numbers, truth values and null are read; a date is a
text, and a tag that would build anything else is refused. Depth and entries have limits. Every
refusal is one InputError that names the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import yaml

from ccmac.errors import InputError
from ccmac.texts import DIGITS, SHOWN, cut, nearest, shown, steers

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
    size: int = 1

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
        return _Builder(LOADER(text), file, entries).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InputError(f"{file}, line {line}: not YAML: {cut(str(error.problem))}") from None
    except yaml.YAMLError as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise InputError(f"{file}, line 1: not YAML: {cut(reason)}") from None


@dataclass
class _Builder:
    """Values from the events of the parser, which are flat: depth is limited before it hurts."""

    loader: Any
    file: str
    limit: int
    anchors: dict[str, Located] = field(default_factory=dict)
    read: int = 0

    def document(self) -> Located:
        self.loader.get_event()  # the stream
        if self.loader.check_event(yaml.StreamEndEvent):
            raise InputError(f"{self.file}, line 1: the file is empty")
        self.loader.get_event()  # the document
        found = self.value("", 0, 0)
        self.loader.get_event()
        if not self.loader.check_event(yaml.StreamEndEvent):
            line = self.loader.peek_event().start_mark.line + 1
            raise InputError(f"{self.file}, line {line}: not YAML: a second document; give one")
        return found

    def value(self, path: str, depth: int, line: int) -> Located:
        """The next value; its ``line`` is that of its key, where it has one."""
        event = self.loader.get_event()
        here = Located(None, line or event.start_mark.line + 1, self.file, path)
        if depth > DEPTH:
            here.fail(f"is nested more than {DEPTH} deep")
        before = self.read
        self.read += 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                here.fail(f"the alias {shown(event.anchor)} is unknown here")
            here.value = self.anchors[event.anchor].value
            self.read += self.anchors[event.anchor].size
        elif isinstance(event, yaml.ScalarEvent):
            here.value = self.scalar(event, here)
        elif isinstance(event, yaml.MappingStartEvent):
            here.value = self.entries(path, depth)
        else:
            here.value = self.items(path, depth)
        here.size = self.read - before
        if self.read > self.limit:
            here.fail("the file has too many entries, those that aliases stand for included")
        if getattr(event, "tag", None) and event.implicit in (False, (False, False)):
            kind = event.tag.removeprefix(CORE)
            if kind not in ("!", "map", "seq", *PLAIN):
                here.fail(f"not YAML: the tag {cut(event.tag)!r} is not plain data; leave it out")
        if getattr(event, "anchor", None) is not None:
            self.anchors[event.anchor] = here
        return here

    def items(self, path: str, depth: int) -> list[Located]:
        found: list[Located] = []
        while not self.loader.check_event(yaml.SequenceEndEvent):
            found.append(self.value(f"{path}[{len(found)}]", depth + 1, 0))
        self.loader.get_event()
        return found

    def entries(self, path: str, depth: int) -> dict[str, Located]:
        found: dict[str, Located] = {}
        while not self.loader.check_event(yaml.MappingEndEvent):
            key = self.value(path, depth + 1, 0)
            name = key.value
            if not isinstance(name, str) or len(name) > SHOWN:
                key.fail(f"a key must be a short text, got {_kind(name)}")
            inner = f"{path}.{name}" if path else name
            if name in found:
                Located(None, key.line, self.file, inner).fail("the key is given twice")
            found[name] = self.value(inner, depth + 1, key.line)
        self.loader.get_event()
        return found

    def scalar(self, event: Any, here: Located) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        kind = tag.removeprefix(CORE)
        if kind not in ("int", "float", "bool", "null"):  # dates are texts
            return event.value
        try:
            if len(event.value) > DIGITS and kind == "int":
                raise ValueError
            read = getattr(self.loader, f"construct_yaml_{kind}")
            return read(yaml.ScalarNode(tag, event.value))
        except (ValueError, KeyError, IndexError, OverflowError):
            here.fail(f"{shown(event.value)} is not a number that can be read")


PLAIN = ("int", "float", "bool", "null", "str", "timestamp")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else shown(value)
