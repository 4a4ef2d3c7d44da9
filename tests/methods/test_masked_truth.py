"""What masked sums prove: dependent rows, contradictions with a radius, bounds of any method."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from adversarial import suite
from adversarial.draft import Case, Draft
from adversarial.exact import Exact
from adversarial.families import base
from ccmac.objectives import Logistic
from checker.judge import judge

CONTRADICTORY = [
    ("coupled-rows", 1),
    ("coupled-rows", 4),
    ("coupled-against-local", 2),
    ("across-shared", 0),
    ("across-shared", 3),
    ("zero-rows", 1),
    ("too-many", 1),
]


def dependent(seed: int) -> Draft:
    """A coupled row that is the sum of the others, to the last digit."""
    made = base(np.random.default_rng([9, seed]), 2 + seed % 3, m=2, p=seed % 2, r=seed % 2)
    for blocks in (made.A, made.B):
        blocks[:] = [np.vstack([block, block.sum(axis=0)]) for block in blocks]
    made.m = 3
    return made.plant()


@pytest.mark.parametrize("method", ["auto", "cross-cg", "cross-apapc"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_depend_to_the_last_digit_raise_no_doubt(seed: int, method: str) -> None:
    made = dependent(seed)
    case = Case("dependent", seed, made, ccmac.Network.path(made.n), 1e-6)
    said = judge(case, method, averaging="masked")
    assert said.status == "optimal"
    assert not said.false, said.why
    exact = Exact(made)
    assert exact.error(exact.point(said.result.x, said.result.z)) <= said.result.error_bound


@pytest.mark.parametrize("method", ["auto", "cross-cg"])
@pytest.mark.parametrize(("family", "seed"), CONTRADICTORY)
def test_contradictions_are_proved(family: str, seed: int, method: str) -> None:
    case = suite.make(family, seed)
    said = judge(case, method, averaging="masked")
    assert not said.false, said.why
    assert said.status == "infeasible" or Exact(case.draft).level < 1e-9


def test_objectives_that_are_no_quadratics_are_proved_too() -> None:
    random = np.random.default_rng(3)
    agents = [
        ccmac.Agent(
            Logistic(random.integers(-3, 4, (5, 4)), [1.0, -1.0, 1.0, 1.0, -1.0], ridge=0.5),
            A=random.integers(-3, 4, (2, 2)),
            B=random.integers(-3, 4, (2, 2)),
            b=[1.0, -2.0],
        )
        for _ in range(3)
    ]
    problem = ccmac.Problem(agents)
    masked = ccmac.solve(problem, "path", "cross-apapc", 1e-8, averaging="masked")
    fine = ccmac.solve(problem, "path", tol=1e-12)
    assert (masked.status, masked.certificates["rests_on"]) == ("optimal", "proved")
    points = [np.concatenate([*r.x, r.z]) for r in (masked, fine)]
    assert np.linalg.norm(points[0] - points[1]) <= masked.error_bound + fine.error_bound
