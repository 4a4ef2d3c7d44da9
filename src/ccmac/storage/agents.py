"""One agent on disk: an ``.npz`` file of named arrays, written and read without pickle.

A sparse array is its four CSR parts. The objective is JSON text plus arrays:

    {"kind": "Separable", "state": {"x": null, "z": {"objective": {"kind": "Logistic", ...}}}}

A value is a JSON scalar or a one-key object: ``array`` and ``csr`` refer to named arrays,
``number`` spells an infinity, ``list`` and ``objective`` nest.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.cones import Cone, Nonnegative, SecondOrder, Zero
from ccmac.errors import InputError
from ccmac.inputs import is_sparse
from ccmac.objectives import KINDS, Objective
from ccmac.problem import CONIC, LIMITS, MATRICES, RIGHT_HAND_SIDES, Agent
from ccmac.storage.npz import read_file
from ccmac.texts import cut, loads, shown, unfit

CSR_PARTS = ("data", "indices", "indptr", "shape")
OBJECTIVE = "objective"
NAME = "name"
BLOCKS = (*MATRICES, *RIGHT_HAND_SIDES, *CONIC)
AGAIN = "save the problem again"
Named = dict[str, NDArray[Any]]


def encode_agent(i: int, agent: Agent) -> Named:
    """Everything of an agent as named arrays."""
    arrays: Named = {}
    for name in BLOCKS:
        block = getattr(agent, name)
        if block is None:
            continue
        if not (isinstance(block, np.ndarray) or is_sparse(block)):
            raise InputError(
                f"agent {i}, block {name}: is an operator ({type(block).__name__}) and cannot be "
                "saved; give its matrix, dense or sparse"
            )
        _put(arrays, name, block)
    for name in (NAME, *LIMITS):
        if getattr(agent, name) is not None:
            arrays[name] = np.asarray(getattr(agent, name))
    if agent.cones is not None:
        arrays["cones.kind"] = np.array([cone.kind for cone in agent.cones])
        arrays["cones.size"] = np.array([cone.size for cone in agent.cones])
    tree = _objective(f"agent {i}, objective", agent.objective, OBJECTIVE, arrays)
    arrays[OBJECTIVE] = np.array(json.dumps(tree, allow_nan=False))
    return arrays


def encode_objective(objective: Objective) -> tuple[dict[str, Any], Named]:
    """The objective as a JSON tree and the arrays it names; InputError where it is code."""
    arrays: Named = {}
    return _objective("objective", objective, OBJECTIVE, arrays), arrays


def read_agent(i: int | str, path: Path, sha256: str) -> Agent:
    """The agent of one file, whose content must have the checksum; ``i`` tells errors which."""
    where = f"agent {i}, file {path.name}"
    arrays = Arrays(where, path, sha256)
    blocks: dict[str, Any] = {name: arrays.take(name) for name in BLOCKS if arrays.has(name)}
    blocks |= {name: arrays.found[name] for name in LIMITS if name in arrays.found}
    if NAME in arrays.found:
        blocks[NAME] = str(arrays.found[NAME])
    if "cones.kind" in arrays.found:
        blocks["cones"] = _read_cones(where, arrays.found)
    inner = f"{where}, objective"
    try:
        tree = loads(str(arrays.take(OBJECTIVE, sparse=False)))
        return Agent(_build(inner, tree, arrays), **blocks)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{inner}: is not valid JSON ({cut(str(error))}); {AGAIN}") from None
    except RecursionError:
        raise InputError(f"{inner}: is nested too deeply; {AGAIN}") from None


def _read_cones(where: str, arrays: Named) -> list[Cone]:
    known = {cls.kind: cls for cls in (Zero, Nonnegative, SecondOrder)}
    try:
        pairs = zip(arrays["cones.kind"].tolist(), arrays["cones.size"].tolist(), strict=True)
        return [known[kind](size) for kind, size in pairs]
    except (KeyError, TypeError, ValueError, InputError):
        raise InputError(f"{where}, cones: are damaged; {AGAIN}") from None


def _put(arrays: Named, name: str, value: Any) -> None:
    if not is_sparse(value):
        arrays[name] = np.asarray(value, order="C")
        return
    csr = sp.csr_array(value)
    for part in CSR_PARTS:
        arrays[f"{name}.{part}"] = np.asarray(getattr(csr, part))


class Arrays:
    """The arrays of one file, fully read and checked against the file's checksum."""

    def __init__(self, where: str, path: Path, sha256: str) -> None:
        self.where = where
        self.found = read_file(where, path, sha256)

    def has(self, name: str) -> bool:
        """Whether a dense or sparse array of that name is there."""
        return name in self.found or f"{name}.indptr" in self.found

    def take(self, name: str, *, sparse: bool | None = None) -> Any:
        """The array ``name``; ``sparse`` None takes whichever form is there."""
        if sparse is None:
            sparse = f"{name}.indptr" in self.found
        needed = [f"{name}.{part}" for part in CSR_PARTS] if sparse else [name]
        missing = [part for part in needed if part not in self.found]
        if missing:
            lacks = f"lacks {', '.join(missing)}" if sparse else "is missing"
            raise InputError(f"{self.where}, block {name}: {lacks}; {AGAIN}")
        found = [self.found[part] for part in needed]
        return self._csr(name, *found) if sparse else found[0]

    def _csr(self, name: str, data: Any, indices: Any, indptr: Any, shape: Any) -> sp.csr_array:
        """Every index is checked: a product with a bad one would read foreign memory."""
        try:
            rows, columns = (int(length) for length in shape)
            if data.shape != indices.shape or data.shape != (int(indptr[-1]),):
                raise ValueError
            matrix = sp.csr_array((data, indices, indptr), shape=(rows, columns))
            matrix.check_format(full_check=True)
            return matrix
        except (TypeError, ValueError, IndexError, OverflowError):
            where = f"{self.where}, block {name}"
            raise InputError(f"{where}: is not a valid sparse matrix; {AGAIN}") from None


class Tree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An objective as it is saved."""

    kind: str
    state: dict[str, Any]


# -- objectives ------------------------------------------------------------------------------------
def _objective(where: str, objective: Objective, name: str, arrays: Named) -> dict[str, Any]:
    kind = type(objective).__name__
    if KINDS.get(kind) is not type(objective):
        raise InputError(
            f"{where}: {kind} is Python code and cannot be saved; "
            f"use one of {', '.join(sorted(KINDS))}"
        )
    try:
        known = objective.state()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    state = {key: _value(where, value, f"{name}.{key}", arrays) for key, value in known.items()}
    return {"kind": kind, "state": state}


def _value(where: str, value: Any, name: str, arrays: Named) -> Any:
    if isinstance(value, Objective):
        return {"objective": _objective(where, value, name, arrays)}
    if is_sparse(value):
        _put(arrays, name, value)
        return {"csr": name}
    if isinstance(value, np.ndarray) and value.ndim:
        _put(arrays, name, value)
        return {"array": name}
    if isinstance(value, list):
        parts = [_value(where, v, f"{name}.{k}", arrays) for k, v in enumerate(value)]
        return {"list": parts}
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    return value


def _build(where: str, node: Any, arrays: Arrays) -> Objective:
    try:
        tree = msgspec.convert(node, Tree)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {unfit(error)}; {AGAIN}") from None
    if tree.kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise InputError(f"{where}: unknown objective {shown(tree.kind)}; known are {known}")
    arguments = {key: _read(where, value, arrays) for key, value in tree.state.items()}
    try:
        return KINDS[tree.kind].from_state(arguments)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError):
        wrong = f"the state of {tree.kind} has wrong entries ({shown(sorted(arguments))})"
        raise InputError(f"{where}: {wrong}") from None


def _read(where: str, node: Any, arrays: Arrays) -> Any:
    if not isinstance(node, dict | list):
        return node
    if isinstance(node, dict) and len(node) == 1:
        [(tag, content)] = node.items()
        if tag == "objective":
            return _build(where, content, arrays)
        if tag == "list" and isinstance(content, list):
            return [_read(where, item, arrays) for item in content]
        if tag == "number" and content in ("inf", "-inf"):
            return float(content)
        if tag in ("array", "csr") and isinstance(content, str):
            return arrays.take(content, sparse=tag == "csr")
    raise InputError(f"{where}: has an unknown entry {shown(node)} in an objective; {AGAIN}")
