"""The tables of methods and options in docs/methods.md, from ``ccmac.available_methods()``.

    python docs/make/options.py           write them into the page
    python docs/make/options.py --check   exit code 1 if the page holds others

tests/test_docs.py compares them too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ccmac
from ccmac.methods.base import described

PAGE = Path(__file__).resolve().parents[1] / "methods.md"
PLACE = re.compile(r"(<!-- options -->\n).*?(<!-- end -->)", re.DOTALL)


def tables() -> str:
    """Methods with their classes and options, then every option once."""
    known: dict[str, Any] = ccmac.available_methods()
    offered = {"auto": described(ccmac.methods.Auto)}
    offered |= {name: about["options"] for name, about in known.items()}
    needs = {name: ", ".join(about["needs"]) for name, about in known.items()}
    methods = [
        (code(name), code(class_of(name)), needs.get(name) or "–", names(options))
        for name, options in offered.items()
    ]
    return "\n\n".join(
        [
            table(("method", "class", "needs", "options"), methods),
            table(("option", "of", "takes", "default", "meaning"), meanings(offered)),
        ]
    )


def meanings(offered: dict[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """One row per distinct meaning: methods that share an option share its row."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for method, options in offered.items():
        for option in options:
            row = (option["name"], takes(option), default(option["default"]), meaning(option))
            owners.setdefault(row, []).append(method)
    rows = sorted(owners.items(), key=lambda pair: pair[0][0])
    return [
        (code(row[0]), ", ".join(code(method) for method in methods), *row[1:])
        for row, methods in rows
    ]


def class_of(name: str) -> str:
    """``cross-apapc`` is ``CrossApapc``."""
    found = "".join(word.capitalize() for word in name.split("-"))
    assert getattr(ccmac.methods, found).name == name
    return found


def takes(option: dict[str, Any]) -> str:
    """The choices, or the kind of value in words."""
    words = {"int": "whole number >= 1", "float": "number > 0", "bool": "true or false"}
    words |= {"Certificates": code("ccmac.Certificates"), "list": "list"}
    return ", ".join(code(c) for c in option["choices"]) or words[option["kind"]]


def default(value: Any) -> str:
    """A dash where the method decides."""
    return "–" if value is None else code(str(value).lower() if value in (True, False) else value)


def meaning(option: dict[str, Any]) -> str:
    """The text of the option, and the realizations that know it."""
    text = re.sub(r"([|*])", r"\\\1", option["meaning"]).replace("<", "&lt;")
    only = option["realizations"]
    return f"{text} ({', '.join(only)} only)" if only else text


def names(options: Iterable[dict[str, Any]]) -> str:
    """All of them, as code."""
    return ", ".join(code(option["name"]) for option in options) or "–"


def code(text: Any) -> str:
    """In backticks."""
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def renewed(page: str) -> str:
    """The page with the tables as they should be."""
    return PLACE.sub(lambda match: f"{match[1]}\n{tables()}\n\n{match[2]}", page)


def main(arguments: Sequence[str]) -> int:
    """Write, or compare."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in arguments:
        return int(renewed(page) != page)
    PAGE.write_text(renewed(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
