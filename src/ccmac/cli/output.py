"""What commands print: strict JSON, and text that fits a terminal."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import typer
from rich.console import Console

from ccmac.texts import dumps

WIDTH = 80


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(dumps(value))


def wide_console() -> Console:
    """As wide as the terminal; a pipe has no width, and would cut a table at 80 columns."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def fitted(text: str, width: int = WIDTH, indent: int = 14) -> str:
    """Lines longer than ``width`` broken at blanks; what follows lines up with the values."""
    lines = []
    for line in text.splitlines():
        if len(line) <= width:
            lines.append(line)
            continue
        lines += textwrap.wrap(
            line, width, subsequent_indent=" " * indent, replace_whitespace=False,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)
