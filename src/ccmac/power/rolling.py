"""A rolling horizon: look some hours ahead, carry out the first, look again.

Every step is the problem of its window, with ramps counted from what was carried out and with the
energy that is left in the stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ccmac.api import solve
from ccmac.inputs import Array
from ccmac.power.case import Dispatch, later
from ccmac.results import Result


@dataclass(frozen=True)
class Window:
    """One window: the case, its result and what is carried out (MW by units)."""

    case: Dispatch
    result: Result

    @property
    def carried_out(self) -> Array:
        """Outputs of the first hour, in MW."""
        return np.asarray(self.case.generation(self.result)[0])


def rolling(case: Dispatch, steps: int, tol: float = 1e-8) -> Iterator[Window]:
    """``steps`` windows of ``case``, an hour apart; ends early where one has no solution."""
    for _ in range(steps):
        result = solve(case.problem, case.network, tol=tol)
        yield Window(case, result)
        if result.status not in ("optimal", "converged"):
            return
        case = later(case, case.after(result, 1))
