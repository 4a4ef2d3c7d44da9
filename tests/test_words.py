"""The code speaks the words of docs/glossary.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "ccmac"
PRIVATE = ["told", "heed", "whisper", "rider", "journey", "doubted", "guided", "settling", "beside"]
REWRITTEN = ("methods/interior", "methods/auto.py", "methods/forecasts.py")
PRICES = ("power", "vfl", "cvx", "cli/power.py", "vertical.py", "paper/instances/examples.py")
"""Where users trade: elsewhere it is a multiplier or dual variable."""


@pytest.mark.parametrize("word", PRIVATE)
def test_no_private_language(word: str) -> None:
    pattern = re.compile(rf"(?<![a-zA-Z]){word}s?(?![a-zA-Z])", re.IGNORECASE)
    files = [
        p
        for p in SOURCE.rglob("*.py")
        if not p.relative_to(SOURCE).as_posix().startswith(REWRITTEN)
    ]
    assert [str(p) for p in files if pattern.search(p.read_text(encoding="utf-8"))] == []


def test_a_price_is_a_multiplier() -> None:
    pattern = re.compile(r"(?<![a-zA-Z])prices?(?![a-zA-Z])", re.IGNORECASE)
    files = [
        p
        for p in SOURCE.rglob("*.py")
        if not p.relative_to(SOURCE).as_posix().startswith((*REWRITTEN, *PRICES))
    ]
    assert [str(p) for p in files if pattern.search(p.read_text(encoding="utf-8"))] == []
