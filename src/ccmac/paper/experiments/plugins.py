"""Methods, data sets and problems of one's own: a Python file named on the command line.

The file may define ``METHODS`` (a list of classes derived from :class:`ccmac.methods.Method`),
``DATASETS`` (a mapping from a name to a function without arguments that returns ``(X, y)``) and
``PROBLEMS`` (from a name to a function of the number of agents and a seed that returns any
:class:`ccmac.Problem`). A suite names the last two under ``data``, and never such a file itself:
reading a suite executes nothing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ccmac.errors import InputError
from ccmac.methods.base import Method
from ccmac.methods.registry import REGISTRY
from ccmac.paper.data import RECORDS
from ccmac.paper.instances.base import HardInstance
from ccmac.paper.instances.reflected_chain import communication_path
from ccmac.problem import Problem
from ccmac.texts import is_file, shown

DATASETS: dict[str, Callable[[], tuple[Any, Any]]] = {}


def reflected_chain(t: float, agents: int, seed: int = 0) -> HardInstance:
    """Hard for rounds down to RelErr 1e-6: chi = sqrt(1 + t^2) + t, kappa_f = 100; any seed."""
    if agents % 3:
        raise InputError(f"reflected-chain-{t:g}: {agents} agents; take three groups of equal size")
    return communication_path(agents // 3, t, 100.0, eps=1e-3)


HARD = {f"reflected-chain-{t}": partial(reflected_chain, t) for t in (1, 2, 4, 8)}
"""Bundled problems with a lower bound on rounds, which ``verify`` holds runs against."""


def _problem(build: Callable[[int, int], HardInstance], agents: int, seed: int) -> Problem:
    return build(agents, seed).problem


PROBLEMS: dict[str, Callable[[int, int], Problem]] = {
    name: partial(_problem, build) for name, build in HARD.items()
}


def load_plugins(files: Sequence[str]) -> None:
    """Execute the files and register what they define."""
    for file in files:
        _load(Path(file))


def _load(path: Path) -> None:
    if not is_file(path):
        raise InputError(f"plugin {path}: no such file")
    spec = importlib.util.spec_from_file_location(f"ccmac_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"plugin {path}: not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the file may raise anything, SystemExit too
        raise InputError(f"plugin {path}: {type(error).__name__}: {error}") from error
    methods = getattr(module, "METHODS", [])
    named: dict[str, dict[str, Any]] = {"DATASETS": DATASETS, "PROBLEMS": PROBLEMS}
    given = {kind: getattr(module, kind, {}) for kind in named}
    if not isinstance(methods, list) or not all(isinstance(v, dict) for v in given.values()):
        raise InputError(f"plugin {path}: METHODS is no list, or DATASETS or PROBLEMS no dict")
    if not methods and not any(given.values()):
        raise InputError(f"plugin {path}: defines neither METHODS nor DATASETS nor PROBLEMS")
    for method in methods:
        ours = isinstance(method, type) and issubclass(method, Method)
        if not (ours and isinstance(getattr(method, "name", None), str)):
            raise InputError(
                f"plugin {path}: METHODS holds {shown(method)}; give classes derived from Method"
            )
        REGISTRY[method.name] = method
    for kind, known in named.items():
        for name, make in given[kind].items():
            if not isinstance(name, str) or name in RECORDS or not callable(make):
                raise InputError(
                    f"plugin {path}: {kind} has {shown(name)}, which is taken, no text, or without "
                    "a function"
                )
            known[name] = make
