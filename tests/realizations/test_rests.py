"""Lower ends from squares prove something only where rows are known not to be nearly dependent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ccmac
from adversarial import suite
from ccmac.methods import CrossApapc, JointApapc
from ccmac.network import Network
from ccmac.paper.instances import random_quadratic
from ccmac.paper.realizations.canonical import canonical
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from checker.judge import judge


@pytest.mark.parametrize("method", [CrossApapc, JointApapc])
def test_an_exhausted_run_is_an_estimate_where_the_equations_are_not_gathered(
    method: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_quadratic(1, 4)
    gathered = ccmac.solve(problem, "complete", method(), 1e-3)
    assert (gathered.status, gathered.certificates["rests_on"]) == ("optimal", "proved")
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
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
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
    verdict = judge(suite.make(family, 51), "cross-cg", max_iterations=30)
    assert not verdict.false, verdict.why
    assert math.isnan(verdict.result.error_bound)


@pytest.mark.parametrize("interval", ["certificate", "tight"])
def test_what_nobody_vouches_for_is_not_called_supplied(
    interval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decomposition proves the spectrum, unless rows are nearly dependent."""
    work = Workspace(random_quadratic(1, 4), InProcess(Network.complete(4)))
    given = ccmac.Certificates(cross_factor=30.0)
    for certificates, word in ((None, "proved"), (given, "supplied")):
        found = canonical(work, interval=interval, certificates=certificates)
        assert found.system.interval.source == word
    radius = ccmac.Certificates(energy_radius=5.0)  # of the start, not of any spectrum
    assert canonical(work, certificates=radius).system.interval.source == "proved"
    monkeypatch.setattr("ccmac.paper.realizations.canonical.WELL", 1.0)
    assert canonical(work, interval=interval).system.interval.source == "estimated"


def test_a_met_reference_is_optimal_and_claims_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the bound at the end rests on an estimate."""
    problem = random_quadratic(1, 4)
    exact = ccmac.solve(problem, "complete", "cross-cg", 1e-10)
    monkeypatch.setattr("ccmac.workspace.equations.ROWS", 0)
    result = ccmac.solve(problem, "complete", CrossApapc(), 1e-6, reference=exact)
    assert (result.status, result.certificates["rests_on"]) == ("optimal", "reference")
    assert result.relative_error <= 1e-6
    assert math.isnan(result.error_bound)
    short = ccmac.solve(problem, "complete", CrossApapc(), 1e-6, reference=exact, max_iterations=3)
    assert short.status == "max_iterations"
    assert short.certificates["rests_on"] != "reference"


def test_channels_too_large_to_factor_are_proved_where_the_geometry_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).standard_normal((30, 8))
    problem = ccmac.vfl.problem(X, X[:, 0], 4)
    monkeypatch.setattr("ccmac.paper.realizations.canonical.DENSE_ROWS", 0)
    found = canonical(Workspace(problem, InProcess(Network.complete(4))))
    assert found.system.interval.source == "proved"
