"""Changes of text files: trees of YAML and JSON, lines, bytes."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import yaml

HUGE = "9" * 5000
WORDS = (
    "",
    " ",
    "x",
    "ring",
    "../../etc/passwd",
    "/dev/zero",
    "a\nb",
    "\x00",
    "ü",
    "x" * 3000,
    "%s{}",
)
# Scalars as they stand in a YAML file: each has made some reader fail somewhere.
YAML_SCALARS = (
    "",
    "~",
    "null",
    "true",
    "no",
    "0",
    "-1",
    "1",
    "2",
    "3.5",
    "1e999",
    "-.inf",
    ".nan",
    ".inf",
    "2024-13-45",
    "2024-01-01",
    "2001-12-14t21:59:43.10-05:00",
    "0x",
    "0b",
    "0o17",
    "017",
    "1_000",
    "12:30:45",
    "1:99",
    "!!int foo",
    "!!float x",
    "!!binary x",
    "!!python/name:os.system",
    "!a b",
    "!!set {a}",
    "!!timestamp 99999-99-99",
    "<<",
    "=",
    "'1'",
    '"\\x00"',
    '"\\ud800"',
    "[]",
    "{}",
    "[[[[[[]]]]]]",
    "{a: 1, a: 2}",
    "*nowhere",
    "&a [*a]",
    "{? [1] : 2}",
    "{1: 2}",
    "{null: 1}",
    "1e400",
    "-0",
    "+1",
    ".5",
    "1e-400",
    "9" * 30,
    HUGE,
    "-" + HUGE,
    "0x" + "f" * 4000,
    "@",
    "`",
    "%",
    "- 1",
    "a: b: c",
    "|",
    ">",
    "'",
    '"',
    "[",
    "{",
    "]",
    "\t",
    "x" * 5000,
    "18446744073709551616",
    "9223372036854775807",
    "1.7976931348623157e308",
    "5e-324",
    "!!null 3",
    "!!bool 7",
    "? a",
)
JSON_SCALARS = (
    "null",
    "true",
    "0",
    "-1",
    "1",
    "2.5",
    "1e308",
    "-1e308",
    "1e999",
    "NaN",
    "Infinity",
    "-Infinity",
    '""',
    '"x"',
    '"1"',
    '"nan"',
    '"inf"',
    '"1e400"',
    "[]",
    "{}",
    "[[]]",
    "[1]",
    '{"a": 1, "a": 2}',
    '{"array": "A"}',
    '{"number": "nan"}',
    '{"csr": "B"}',
    '{"list": [1]}',
    '{"list": {}}',
    '{"objective": {}}',
    '{"objective": {"kind": "Zero", "state": {}}}',
    "9" * 30,
    HUGE,
    '"\\ud800"',
    '"\\u0000"',
    '"' + "x" * 5000 + '"',
    "[" * 300 + "]" * 300,
    "5e-324",
    "-0",
    "18446744073709551616",
    "4294967296",
    "0.9",
    "01",
    "1.",
    "'a'",
    "",
    "[1,]",
    "nul",
    "[" * 100000,
)


def bytes_changed(rng: Random, content: bytes) -> bytes:
    """Cut, flipped, repeated, re-encoded, or something else altogether."""
    spot = rng.randrange(len(content) + 1)
    size = rng.choice((1, 2, 7, 100))
    kind = rng.randrange(13)
    if kind == 0:
        return content[:spot]
    if kind == 1:
        return content[:spot] + bytes(rng.randrange(256) for _ in range(size)) + content[spot:]
    if kind == 2:
        return content[:spot] + content[spot + size :]
    if kind == 3:
        middle = bytes(b ^ (1 << rng.randrange(8)) for b in content[spot : spot + size])
        return content[:spot] + middle + content[spot + size :]
    if kind == 4:
        return b"\xef\xbb\xbf" + content
    if kind == 5:
        return content.decode("latin-1").encode("utf-16")
    if kind == 6:
        return content[:spot] + b"\xff\xfe\x80" + content[spot:]
    if kind == 7:
        return content * rng.choice((2, 20))
    if kind == 8:
        return content.replace(b"\n", b"\r\n")
    if kind == 9:
        return content[:spot] + b"\x00" + content[spot:]
    if kind == 10:
        return rng.choice(
            (
                b"",
                b"\n",
                b"\x00" * 100,
                b"PK\x03\x04",
                b"\x93NUMPY\x01\x00",
                b"{",
                b"[" * 10**5,
                b"- " * 10**5,
                b"{a: " * 10**4,
                b"\x80\x04\x95",
                b"---\n---\n",
                b"%YAML 9.9\n",
            )
        )
    if kind == 11:
        lines = content.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    return content[spot:] + content[:spot]


class Tree:
    """A tree of mappings and lists, changed in a few places and printed with raw scalars."""

    def __init__(self, rng: Random, content: Any) -> None:
        self.rng, self.content = rng, copy.deepcopy(content)
        self.raw: dict[str, str] = {}

    def places(self) -> list[tuple[Any, Any]]:
        """(container, key) of every value."""
        found: list[tuple[Any, Any]] = []
        left = [self.content]
        while left:
            node = left.pop()
            keys = (
                node.keys()
                if isinstance(node, dict)
                else range(len(node))
                if isinstance(node, list)
                else ()
            )
            for key in list(keys):
                found.append((node, key))
                left.append(node[key])
        return found

    def mark(self, text: str) -> str:
        """A placeholder that becomes ``text`` without quotes."""
        name = f"@@{len(self.raw)}@@"
        self.raw[name] = text
        return name

    def change(self, scalars: tuple[str, ...]) -> None:
        """One change somewhere."""
        places = self.places()
        rng = self.rng
        if not places:
            self.content = self.mark(rng.choice(scalars))
            return
        node, key = rng.choice(places)
        kind = rng.randrange(12)
        if kind <= 4:
            node[key] = self.mark(rng.choice(scalars))
        elif kind == 5:
            del node[key]
        elif kind == 6 and isinstance(node, dict):
            node[rng.choice((*WORDS, self.mark(rng.choice(scalars))))] = node.pop(key)
        elif kind == 7:
            node[key] = rng.choice(([node[key]], {"a": node[key]}, [node[key]] * 3, str(node[key])))
        elif kind == 8:
            other, name = rng.choice(places)
            node[key] = copy.deepcopy(other[name])
        elif kind == 9 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
            node[key] = rng.choice(
                (-node[key], node[key] + 1, node[key] * 10**9, node[key] / 3, node[key] - 1)
            )
        elif kind == 10 and isinstance(node[key], list):
            node[key] = node[key] * rng.choice((0, 2, 50))
        elif isinstance(node, dict):
            node[rng.choice(WORDS)] = self.mark(rng.choice(scalars))
        else:
            node.append(self.mark(rng.choice(scalars)))

    def put(self, text: str) -> str:
        """The placeholders filled in."""
        for name, raw in self.raw.items():
            for quoted in (f"'{name}'", f'"{name}"', name):
                text = text.replace(quoted, raw)
        return text

    def json(self) -> str:
        """As JSON, with NaN and all the rest."""
        return self.put(json.dumps(self.content, ensure_ascii=self.rng.random() < 0.5))

    def yaml(self) -> str:
        """As YAML."""
        return self.put(yaml.safe_dump(self.content, sort_keys=False, allow_unicode=True))


def yaml_changed(rng: Random, text: str) -> bytes:
    """The text of a YAML file with one to three changes, now and then an alias bomb."""
    if rng.random() < 0.15:
        return bytes_changed(rng, text.encode())
    tree = Tree(rng, yaml.safe_load(text))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree.change(YAML_SCALARS)
    out = tree.yaml()
    if rng.random() < 0.05:
        depth = rng.choice((3, 30))
        bomb = "".join(f", &b{k} [{', '.join([f'*b{k - 1}'] * 9)}]" for k in range(1, depth))
        places = [line.split(":")[0] for line in out.splitlines() if ":" in line]
        name = rng.choice([*places, "bomb"]).strip(" -") or "bomb"
        out = f"{name}: [&b0 [x, x]{bomb}]\n" + out
    return out.encode("utf-8", "surrogatepass")


def json_changed(rng: Random, text: str) -> bytes:
    """The text of a JSON file with one to three changes."""
    if rng.random() < 0.15:
        return bytes_changed(rng, text.encode())
    tree = Tree(rng, json.loads(text))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree.change(JSON_SCALARS)
    return tree.json().encode("utf-8", "surrogatepass")
