"""Data whose scales double precision cannot hold: the computation breaks down, and this says why.

Squares and products of the data enter every spectrum. Where they overflow or vanish, a division or
a factorization fails somewhere; the agent to blame is in the problem. On ordinary data such a
failure is a defect of this program and is shown as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmac.errors import CcmacError, InputError
from ccmac.linalg.blocks import entries, has_entries
from ccmac.problem import CONIC, MATRICES, RIGHT_HAND_SIDES, Problem


def refuse_extreme(problem: Any, error: Exception) -> None:
    """InputError in the place of an arithmetic failure where ``problem`` has extreme entries."""
    broken = isinstance(error, ArithmeticError | np.linalg.LinAlgError)
    broken = broken or any(words in str(error) for words in ("infs or NaNs", "is NaN"))
    place = extreme(problem) if broken and not isinstance(error, CcmacError) else None
    if place is not None:
        raise InputError(
            f"{place}, too far from 1 for double precision; rescale the data"
        ) from error


def extreme(problem: Any) -> str | None:
    """The first entry outside 1e-12 .. 1e12: "agent 3, block A: has an entry of size 1e-155"."""
    for i, agent in problem.agents.items() if isinstance(problem, Problem) else ():
        numbers = {f"block {k}": getattr(agent, k) for k in (*MATRICES, *RIGHT_HAND_SIDES, *CONIC)}
        for name, value in numbers.items():
            sizes = np.abs(entries(value)) if has_entries(value) else np.zeros(0)
            far = sizes[((sizes > 0) & (sizes < 1e-12)) | (sizes > 1e12)]
            if far.size:
                return f"agent {i}, {name}: has an entry of size {far.flat[0]:.0e}"
    return None
