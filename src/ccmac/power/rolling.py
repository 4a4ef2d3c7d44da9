"""A rolling horizon: look some hours ahead, carry out the first, look again.

Every step is the problem of its window, with ramps counted from what was carried out and with the
energy that is left in the stores. Only right-hand sides and the least reserve differ from window to
window: the first prepares for all, and each starts from the one before, moved by an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.certificates.multipliers import Multipliers
from ccmac.errors import InputError
from ccmac.inputs import Array, real_vector
from ccmac.power.case import Dispatch, later
from ccmac.prepared import prepare
from ccmac.results import Result, Solution


@dataclass(frozen=True)
class Window:
    """One window: the case, its result and what is carried out (MW by units)."""

    case: Dispatch
    result: Result

    @property
    def carried_out(self) -> Array:
        """Outputs of the first hour, in MW."""
        return np.asarray(self.case.generation(self.result)[0])


def rolling(case: Dispatch, steps: int, tol: float = 1e-8, *, load: Any = None) -> Iterator[Window]:
    """``steps`` windows of ``case``, an hour apart; ends early where one has no solution.

    ``load`` are the factors of the demand for all hours to come, the first window's included;
    without them the hours of the first window come again and again.

    Parameters
    ----------
    case : Dispatch
        The first window.
    steps : int
        How many windows.
    tol : float
        As in :func:`ccmac.solve`.
    load : array_like, optional
        Factors of the demand for all hours to come.

    Returns
    -------
    Iterator of Window

    Examples
    --------
    >>> import ccmac
    >>> case = ccmac.power.dc_opf("case30", areas=4, hours=2)
    >>> [window.result.status for window in ccmac.power.rolling(case, 2)]
    ['optimal', 'optimal']
    """
    hours = case.model.ask.hours
    given = case.model.ask.load
    ahead = np.resize(given, (hours + steps, given.shape[1]))
    if load is not None:
        ahead = real_vector("power, rolling, load", load)[:, None]
        if len(ahead) < hours + steps - 1:
            raise InputError(
                f"power, rolling, load: has {len(ahead)} entries; {steps} windows of {hours} hours "
                f"need {hours + steps - 1}"
            )
        case = later(case, replace(case.model.ask, load=ahead[:hours]))
    prepared = prepare(case.problem, case.network)
    before: Solution | None = None
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
        asked = replace(case.after(result, 1), load=ahead[step + 1 :][:hours])
        if step + 1 < steps:
            case = later(case, asked)
            before = shifted(case, result, ahead[step:][:hours])


def shifted(case: Dispatch, result: Result, load: Array) -> Solution:
    """What an hour ago was found, an hour later: hour t starts as hour t + 1 was, with its prices.

    The last hour is new: it starts as that hour of the old window whose ``load`` was nearest.
    """
    model = case.model
    hours = case.model.ask.hours
    new = int(np.argmin(np.abs(load - model.ask.load[-1])))
    source = [*range(1, hours), new]
    x = [v.copy() for v in result.x]
    old = result.multipliers
    for (kind, which, t), (owner, entry) in model.x.items():
        x[owner][entry] = result.x[owner][model.x[kind, which, source[t]][1]]
    coupled = old.coupled.copy()
    local = [v.copy() for v in old.local]
    for (kind, which, t), (agent, row) in model.rows.items():
        there = model.rows[kind, which, source[t]][1]
        if agent is None:
            coupled[row] = old.coupled[there]
        else:
            local[agent][row] = old.local[agent][there]
    on_z = source if len(result.z) else []
    prices = Multipliers(coupled, local, old.shared, old.consensus[:, on_z])
    return Solution(x, np.asarray(result.z)[on_z], prices)
