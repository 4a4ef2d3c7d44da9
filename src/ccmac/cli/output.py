"""What commands print: strict JSON, and text that fits a terminal."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import typer

WIDTH = 80


def plain(value: Any) -> Any:
    """Python values that JSON knows; NaN and infinity, which it does not, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dumps(value: Any) -> str:
    """Strict JSON, indented."""
    return json.dumps(plain(value), indent=2, allow_nan=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(dumps(value))


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
