"""A rolling horizon: look some hours ahead, carry out the first, look again.

Every step is the problem of its window, with ramps counted from what was carried out and with the
energy that is left in the stores. Only right-hand sides and the least reserve differ from window to
window: the first prepares for all, and each starts from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ccmac.inputs import Array
from ccmac.power.case import Dispatch, later
from ccmac.prepared import prepare
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
    prepared, before = prepare(case.problem, case.network), None
    for step in range(steps):
        if step:
            agents = case.problem.agents
            prepared.update(
                b={i: a.b for i, a in agents.items()},
                c={i: a.c for i, a in agents.items() if a.c is not None},
                z_lower=case.problem.z_lower,
            )
        result = prepared.solve(tol, warm_start=before)
        yield Window(case, result)
        if result.status not in ("optimal", "converged"):
            return
        before, case = result, later(case, case.after(result, 1))
