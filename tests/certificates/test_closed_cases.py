"""Cases that runs seldom meet, each in closed form."""

from __future__ import annotations

import math
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

from ccmac.certificates import explicit, inside
from ccmac.certificates.gap import Gap
from ccmac.certificates.gap_stopping import as_bound
from ccmac.certificates.stopping import Check


@pytest.mark.parametrize("least", [0.0, -1.0, math.nan])
def test_equations_that_may_be_dependent_leave_no_curvature(least: float) -> None:
    """What the agents told of sizes and flat directions is kept all the same."""
    facts = np.array([[4.0, 0.0, 0.5, 0, 0, 0, 7.0, 0.25, 3.0], [9.0, 0, 1, 0, 0, 0, 5, 0.5, 2]])
    reduced: Any = Fake(rank=1, least=least)
    said = inside.inside(np.eye(3), 2, facts, reduced, 9.0)
    assert said == inside.Inside(0.0, noise=1.5, size=5.0, kept=5.0, dropped=0.5)


def test_the_bound_of_a_gap_holds_what_the_gap_holds() -> None:
    w, gradient, price = (np.full(2, v) for v in (1.0, 2.0, 3.0))
    found = Gap(w, gradient, -w, 5.0, 0.1, 0.2, 0.3, 0.1, 1.0, True, 1.0, error=0.75, price=price)
    said = as_bound(found)
    assert (said.error, said.stationarity, said.infeasibility) == (0.75, 0.2, 0.3)
    assert said.w is w
    assert said.gradient is gradient
    assert said.price is price


def _stop(found: list[Check], refined: list[Any]) -> explicit.ExplicitStop:
    """Judges as told, one after the other, and notes what is refined."""

    def refine(state: Any, proved: Any) -> Any:
        refined.append(proved)
        return state

    part: Any = Fake(
        norm=3.0, explicit=Fake(beta=-4.0), mu=0.25, runtime=Fake(notes=Fake(led=False))
    )
    stop = explicit.ExplicitStop(part, 0.1, refine)
    stop._judged = lambda x, long=False: found.pop(0)  # type: ignore[method-assign]
    return stop


def test_what_all_agree_on_is_refined() -> None:
    """A check that is passed on to all, and one whose proof the others do not have."""
    passed, refined = list[float](), list[Any]()

    class Heard(Check):
        def agreed(self, runtime: Any) -> Check:
            passed.append(self.bound)
            return self

    proved = explicit.Proved(*[np.zeros(1)] * 2, 8.0, 0.0, 0.0, 1.0, *[np.zeros(1)] * 3)
    iteration: Any = Fake(point=lambda state: (state, None), finished=lambda state: True)
    stop = _stop([Heard(8.0, False, proved), Heard(7.9, False, proved)], refined)
    assert stop.final(iteration, 0).bound == 7.9
    assert passed == [8.0, 7.9]
    assert refined == [proved]
    refined.clear()
    other = Heard(8.0, False, None)  # nothing to refine from
    assert _stop([other], refined).final(iteration, 0) is other
    assert refined == []
