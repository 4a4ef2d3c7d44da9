"""Data whose scales double precision cannot hold: the computation breaks down, and this says why.

Squares and products of the data enter every spectrum. Where they overflow or vanish, a division or
a factorization fails somewhere; the entry to blame is in the problem. On ordinary data such a
failure is a defect of this program and is shown as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmac.errors import CcmacError, InputError
from ccmac.inputs import is_sparse
from ccmac.problem import MATRICES, RIGHT_HAND_SIDES, Problem
from ccmac.storage.agents import encode_objective

ORDINARY = (1e-12, 1e12)
INFINITE = ("infs or NaNs", "is NaN")  # of a factorization, of a search: NumPy and SciPy say so


def refuse_extreme(problem: Any, error: Exception) -> None:
    """InputError in the place of an arithmetic failure where ``problem`` has extreme entries."""
    broken = isinstance(error, ArithmeticError | np.linalg.LinAlgError)
    broken = broken or any(words in str(error) for words in INFINITE)
    place = extreme(problem) if broken and not isinstance(error, CcmacError) else None
    if place is not None:
        raise InputError(
            f"{place}, too far from 1 for double precision; rescale the data"
        ) from error


def extreme(problem: Any) -> str | None:
    """The first entry outside :data:`ORDINARY`: "agent 3, block A: has an entry of size 1e-155"."""
    for i, agent in problem.agents.items() if isinstance(problem, Problem) else ():
        blocks = {f"block {name}": getattr(agent, name) for name in (*MATRICES, *RIGHT_HAND_SIDES)}
        for name, value in (blocks | _state(agent.objective)).items():
            size = _outside(value)
            if size is not None:
                return f"agent {i}, {name}: has an entry of size {size:.0e}"
    return None


def _state(objective: Any) -> dict[str, Any]:
    try:
        tree, arrays = encode_objective(objective)
    except InputError:
        return {}
    numbers: list[float] = []
    left: list[Any] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict | list):
            left += node.values() if isinstance(node, dict) else node
        elif isinstance(node, int | float):
            numbers.append(float(node))
    return {"objective": np.array(numbers), **{name: arrays[name] for name in arrays}}


def _outside(value: Any) -> float | None:
    entries = value.data if is_sparse(value) else value
    if not isinstance(entries, np.ndarray) or entries.dtype.kind != "f":
        return None
    sizes = np.abs(entries[np.isfinite(entries) & (entries != 0)])
    odd = sizes[(sizes < ORDINARY[0]) | (sizes > ORDINARY[1])]
    return float(odd[0]) if odd.size else None
