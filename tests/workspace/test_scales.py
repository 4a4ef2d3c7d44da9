"""Arithmetic that breaks down: whose fault it is."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac.errors import InputError
from ccmac.objectives import SquaredDistance
from ccmac.problem import Agent, Problem
from ccmac.workspace.scales import refuse_extreme

BROKEN = (
    ZeroDivisionError("float division by zero"),
    OverflowError("too large"),
    np.linalg.LinAlgError("not positive definite"),
    ValueError("must not contain infs or NaNs"),
    ValueError("The function value at x=0.0 is NaN; solver cannot continue."),
)


def problem(entry: float) -> Problem:
    plain = Agent(SquaredDistance(1.0), A=np.eye(2), b=[1.0, 2.0])
    other = Agent(SquaredDistance(1.0), A=np.diag([1.0, entry]), b=[0.0, 0.0])
    return Problem([plain, other], q=0)


@pytest.mark.parametrize("entry", [1e-13, 1e13, -1e40])
@pytest.mark.parametrize("error", BROKEN, ids=str)
def test_entries_far_from_one_are_named(error: Exception, entry: float) -> None:
    with pytest.raises(InputError, match=r"agent 1, block A: has an entry of size .* rescale"):
        refuse_extreme(problem(entry), error)


@pytest.mark.parametrize("entry", [0.0, 1e-11, 1e11])
@pytest.mark.parametrize("error", BROKEN, ids=str)
def test_on_ordinary_data_it_is_a_defect(error: Exception, entry: float) -> None:
    """Which the caller shows as it is."""
    refuse_extreme(problem(entry), error)


def test_other_failures_are_no_matter_of_scale() -> None:
    refuse_extreme(problem(1e40), ValueError("all input arrays must have the same shape"))
    refuse_extreme(problem(1e40), InputError("network: too small"))
