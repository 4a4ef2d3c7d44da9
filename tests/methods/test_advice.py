"""A refusal names methods that accept the problem."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ccmac
from ccmac.errors import MethodRefused
from ccmac.objectives import L1, Box, Quadratic

NAMES = sorted(ccmac.available_methods())


def pair(objective: object, **changes: object) -> ccmac.Problem:
    """Two agents with x_i + z summed, and the same objective of (x, z)."""
    blocks = {"A": [[1.0]], "B": [[1.0]], "b": [1.0], **changes}
    return ccmac.Problem([ccmac.Agent(objective, **blocks) for _ in range(2)])  # type: ignore[arg-type]


PROBLEMS = {
    "curved": pair(Quadratic(np.eye(2), np.ones(2))),
    "with equations": pair(Quadratic(np.eye(2), np.ones(2)), D=[[1.0]], e=[0.5]),
    "flat in z": pair(Quadratic(np.diag([1.0, 0.0]), np.zeros(2))),
    "flat": pair(Quadratic(np.zeros((2, 2)), np.zeros(2))),
    "bounded": pair(Quadratic(np.eye(2), np.ones(2)) + Box(-np.ones(2), np.ones(2))),
    "kinked": pair(L1(1.0)),
    "curved and kinked": pair(Quadratic(np.eye(2), np.ones(2)) + L1(1.0)),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_refusal_advises_methods_that_accept(kind: str) -> None:
    problem = PROBLEMS[kind]
    refusals = {}
    for name in NAMES:
        try:
            ccmac.solve(problem, "path", name, max_iterations=1)
        except MethodRefused as refusal:
            refusals[name] = str(refusal)
    for name, words in refusals.items():
        advice = words.rpartition("use ")[2]
        advised = [other for other in NAMES if re.search(rf"\b{other}\b(?!-)", advice)]
        assert advised, f"{name}: {words}"
        for other in advised:
            assert other not in refusals, f"{name}: {words}"
    assert refusals or kind == "curved"


def test_a_stall_speaks_of_the_method_that_stalled_alone() -> None:
    """Prices of nearly dependent rows stop cross-cg; cross-direct goes on for six digits."""
    t = 2.0**-30
    f = Quadratic(np.eye(3), [1.0, 2.0, 3.0])
    agents = [
        ccmac.Agent(f, A=[[1.0, 1.0]], B=[[1.0]], b=[1.0], C=[[1.0, 1.0 + t]], c=[1.0]),
        ccmac.Agent(f, A=[[1.0, 1.0]], B=[[t - 1.0]], b=[1.0], C=[[1.0, 1.0]], c=[1.0]),
    ]
    problem = ccmac.Problem(agents)
    stalled = ccmac.solve(problem, "path", "cross-cg", 1e-10)
    other = ccmac.solve(problem, "path", "cross-direct", 1e-10)
    assert stalled.status == "stalled"
    assert other.error_bound < 1e-5 * stalled.error_bound
    assert "this method can gain no more" in stalled.message
