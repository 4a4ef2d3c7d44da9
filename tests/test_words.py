"""The code speaks the words of docs/glossary.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "ccmac"
PRIVATE = ["told", "heed", "whisper", "rider", "journey", "doubted", "guided", "settling", "beside"]
PRICES = ("power", "vfl", "cvx", "cli/power.py", "vertical.py", "paper/instances/examples.py")
"""Where users trade: elsewhere it is a multiplier or dual variable."""


@pytest.mark.parametrize("word", PRIVATE)
def test_no_private_language(word: str) -> None:
    pattern = re.compile(rf"(?<![a-zA-Z]){word}s?(?![a-zA-Z])", re.IGNORECASE)
    files = SOURCE.rglob("*.py")
    assert [str(p) for p in files if pattern.search(p.read_text(encoding="utf-8"))] == []


def test_a_price_is_a_multiplier() -> None:
    pattern = re.compile(r"(?<![a-zA-Z])prices?(?![a-zA-Z])", re.IGNORECASE)
    files = [
        p for p in SOURCE.rglob("*.py") if not p.relative_to(SOURCE).as_posix().startswith(PRICES)
    ]
    assert [str(p) for p in files if pattern.search(p.read_text(encoding="utf-8"))] == []


# -- pages -----------------------------------------------------------------------------------------
DOCS = SOURCE.parents[1] / "docs"
PLAIN = ("guide", "trust", "trust-why", "methods", "methods-why", "vertical", "power", "owners")
GONE = ["whisper", "journey", "doubted", "heed", "rider", "settling"]


def sentences(text: str) -> list[str]:
    """Prose of a page: no code, tables, headings, pictures or comments."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:[|#<>!]|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", text))
    parts = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |(?<=[.!?])\s", text)
    return [part for part in parts if len(re.findall(r"[A-Za-z]{2,}", part)) > 1]


@pytest.mark.parametrize("name", PLAIN)
def test_sentences_have_at_most_twenty_words_on_average(name: str) -> None:
    found = sentences((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert len(found) > 20
    assert sum(len(sentence.split()) for sentence in found) <= 20 * len(found)


@pytest.mark.parametrize("word", GONE)
def test_no_private_language_on_the_pages(word: str) -> None:
    pattern = re.compile(rf"(?<![a-zA-Z]){word}s?(?![a-zA-Z])", re.IGNORECASE)
    files = [
        *DOCS.glob("*.md"),
        *(SOURCE.parents[1] / name for name in ("README.md", "CONTRIBUTING.md")),
    ]
    assert [p.name for p in files if pattern.search(p.read_text(encoding="utf-8"))] == []
