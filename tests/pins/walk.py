"""What a state contains, and whether two are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def content(value: Any) -> Any:
    """A copy of the arrays and numbers in a state, however it is built."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: content(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [content(item) for item in value]
    if isinstance(value, int | float | str | bool | None | np.generic):
        return value
    names = list(getattr(value, "__dict__", ())) or list(getattr(value, "__slots__", ()))
    return {name: content(getattr(value, name)) for name in names}


def same(a: Any, b: Any) -> bool:
    """Whether two contents are equal to the bit (NaN equals NaN)."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)
