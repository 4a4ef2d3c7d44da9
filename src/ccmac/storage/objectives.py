"""An objective as JSON text plus named arrays, and back.

    {"kind": "Separable", "state": {"x": null, "z": {"objective": {"kind": "Logistic", ...}}}}

A value is a JSON scalar or a one-key object: ``array`` and ``csr`` refer to named arrays,
``number`` spells an infinity, ``list`` and ``objective`` nest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.objectives import KINDS
from ccmac.objectives.base import Objective
from ccmac.storage.arrays import ArraySink, ArraySource


def encode_objective(where: str, objective: Objective, name: str, arrays: ArraySink) -> str:
    """JSON text; the arrays go into ``arrays`` under names that start with ``name``."""
    return json.dumps(_objective(where, objective, name, arrays), allow_nan=False)


def decode_objective(where: str, text: str, arrays: ArraySource) -> Objective:
    """Build the objective; only classes of the registry, each through its own checks."""
    try:
        return _build(where, json.loads(text), arrays)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: is not valid JSON ({error.msg}); save it again") from None
    except RecursionError:
        raise InputError(f"{where}: is nested too deeply; save it again") from None


def _objective(where: str, objective: Objective, name: str, arrays: ArraySink) -> dict[str, Any]:
    kind = type(objective).__name__
    if KINDS.get(kind) is not type(objective):
        raise InputError(
            f"{where}: {kind} is Python code and cannot be saved; "
            f"use one of {', '.join(sorted(KINDS))}"
        )
    state = {
        key: _value(where, value, f"{name}.{key}", arrays)
        for key, value in objective.state().items()
    }
    return {"kind": kind, "state": state}


def _value(where: str, value: Any, name: str, arrays: ArraySink) -> Any:
    if isinstance(value, Objective):
        return {"objective": _objective(where, value, name, arrays)}
    if is_sparse(value):
        arrays.put(name, value)
        return {"csr": name}
    if isinstance(value, np.ndarray) and value.ndim:
        arrays.put(name, value)
        return {"array": name}
    if isinstance(value, list):
        parts = [_value(where, v, f"{name}.{k}", arrays) for k, v in enumerate(value)]
        return {"list": parts}
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    return value


def _build(where: str, node: Any, arrays: ArraySource) -> Objective:
    if not (isinstance(node, dict) and node.keys() == {"kind", "state"}):
        raise InputError(f"{where}: an objective needs kind and state; save it again")
    kind, state = node["kind"], node["state"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"{where}: unknown objective {kind!r}; known are {', '.join(sorted(KINDS))}"
        )
    if not isinstance(state, dict):
        raise InputError(f"{where}: the state of {kind} is not a mapping; save it again")
    arguments = {key: _read(where, value, arrays) for key, value in state.items()}
    try:
        return KINDS[kind].from_state(arguments)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (TypeError, KeyError):
        raise InputError(
            f"{where}: the state of {kind} has wrong entries ({', '.join(sorted(arguments))})"
        ) from None


def _read(where: str, node: Any, arrays: ArraySource) -> Any:
    if not isinstance(node, Mapping):
        if isinstance(node, list):
            raise InputError(f"{where}: has a bare list in an objective; save it again")
        return node
    if len(node) == 1:
        tag, content = next(iter(node.items()))
        if tag == "objective":
            return _build(where, content, arrays)
        if tag == "list" and isinstance(content, list):
            return [_read(where, item, arrays) for item in content]
        if tag == "number" and content in ("inf", "-inf"):
            return float(content)
        if tag in ("array", "csr") and isinstance(content, str):
            return arrays.take(content, sparse=tag == "csr")
    raise InputError(f"{where}: has an unknown entry {sorted(node)} in an objective; save it again")
