"""Lower ends from squares prove something only where rows are known not to be nearly dependent."""

from __future__ import annotations

import math

import pytest

import ccmac
from adversarial import suite
from adversarial.judge import judge
from ccmac.lab.instances import random_quadratic
from ccmac.methods import CrossApapc, JointApapc


@pytest.mark.parametrize("method", [CrossApapc, JointApapc])
def test_an_exhausted_run_is_an_estimate_where_the_equations_are_not_gathered(
    method: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_quadratic(1, 4)
    gathered = ccmac.solve(problem, "complete", method(), 1e-3)
    assert (gathered.status, gathered.certificates["rests_on"]) == ("optimal", "proved")
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)
    result = ccmac.solve(problem, "complete", method(), 1e-3)
    assert (result.status, result.certificates["rests_on"]) == ("converged", "estimated")
    assert math.isnan(result.error_bound)
    assert result.error_estimate > 0


def test_a_supplied_cross_factor_is_called_so() -> None:
    given = ccmac.Certificates(cross_factor=30.0)
    result = ccmac.solve(random_quadratic(1, 4), "complete", CrossApapc(certificates=given), 1e-3)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "supplied")


@pytest.mark.parametrize("family", ["near-across", "near-coupled", "near-shared", "near-local"])
def test_nearly_dependent_rows_that_are_not_gathered_give_no_bound(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ccmac.workspace.reduced.ROWS", 0)
    verdict = judge(suite.make(family, 51), "cross-cg", max_iterations=30)
    assert not {"FALSE BOUND", "WRONG OPTIMAL"} & set(verdict.faults), verdict.line()
    assert math.isnan(verdict.bound)
