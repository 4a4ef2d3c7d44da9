"""What the package consists of, found by walking it: nothing here knows where anything lies."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import ccmac

OPTIONAL = ("mpi4py", "matplotlib", "jinja2")


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of the package that can be imported here."""
    found: list[ModuleType] = [ccmac]
    for entry in pkgutil.walk_packages(ccmac.__path__, "ccmac."):
        try:
            found.append(importlib.import_module(entry.name))
        except ImportError as error:
            if error.name not in OPTIONAL:
                raise
    return tuple(found)


def defined(kind: Any) -> Iterator[tuple[str, Any]]:
    """(name, object) of public classes or functions, in the module that defines them."""
    for module in modules():
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and kind(value) and value.__name__ == name and not name.startswith("_"):
                yield name, value


def named_class(name: str) -> type:
    """The one class of this name; fails when it was renamed, so that a test cannot pass idly."""
    found = [value for known, value in defined(inspect.isclass) if known == name]
    assert len(found) == 1, f"{len(found)} classes are called {name}: say here what they are now"
    return found[0]  # type: ignore[no-any-return]


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
