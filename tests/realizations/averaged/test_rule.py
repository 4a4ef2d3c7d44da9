"""The rule for scale, normalizer and degree: options are kept, intervals hold, predictions too."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.ledger import Costs
from ccmac.methods import CrossApapc
from ccmac.plans import Plan
from ccmac.realizations.averaged.rule import Wanted, averaged
from ccmac.realizations.base import Realized
from ccmac.runtime import InProcess
from ccmac.workspace import Workspace
from pins.problems import posed


@cache
def planned(problem: str, tol: float = 1e-6, **options: Any) -> Plan:
    made = posed(problem)
    return ccmac.plan(made.problem, made.network, CrossApapc(**options), tol)


def test_given_options_are_executed() -> None:
    options = {"outer": 2, "scale": 0.5}
    settings = planned("ridge", **options).settings
    assert settings["outer degree"] == 2
    balanced = planned("ridge", scale=1.0).settings["scale"]
    assert settings["scale"] == pytest.approx(np.sqrt(0.5) * balanced)


@pytest.mark.parametrize("problem", ["quadratic", "ridge", "grid"])
@pytest.mark.parametrize("options", [{}, {"outer": 3}, {"inner": 2}], ids=str)
def test_every_setting_reaches_the_solution(problem: str, options: dict[str, Any]) -> None:
    made = posed(problem)
    result = ccmac.solve(made.problem, made.network, CrossApapc(**options), 1e-8)
    assert result.status == "optimal"
    exact = ccmac.solve(made.problem, made.network, "cross-cg", 1e-11)
    off = [a - b for a, b in zip([*result.x, result.z], [*exact.x, exact.z], strict=True)]
    assert np.linalg.norm(np.concatenate(off)) <= result.error_bound + 1e-10


def realized(problem: ccmac.Problem, network: ccmac.Network, **options: Any) -> Realized:
    return averaged(Workspace(problem, InProcess(network)), Wanted(**options))


def normal_operator(made: Realized) -> np.ndarray:
    """G as a dense matrix, column by column."""
    linear = made.system.homogeneous()
    size = len(made.space.zeros())
    return np.stack([linear.residual(e)[0] for e in np.eye(size)], axis=1)


@pytest.mark.parametrize("problem", ["quadratic", "ridge", "grid", "B-zero", "no-B", "free-x"])
@pytest.mark.parametrize("inner", [None, 0, 1])
def test_the_interval_holds_the_positive_spectrum(problem: str, inner: int | None) -> None:
    made = posed(problem)
    found = realized(made.problem, made.network, inner=inner)
    G = normal_operator(found)
    assert np.abs(G - G.T).max() <= 1e-10
    values = np.linalg.eigvalsh(G)
    positive = values[values > 1e-8]
    interval = found.system.interval
    assert interval.low <= positive[0] * (1 + 1e-9)
    assert positive[-1] <= interval.high * (1 + 1e-9)


def wide_table(shift: float) -> ccmac.Problem:
    X = np.random.default_rng(3).standard_normal((400, 24))
    return ccmac.vfl.problem(X + shift, np.sign(X[:, 0]), 4)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_a_sketch_gives_the_interval_that_lanczos_does(shift: float) -> None:
    """One by a proved lower end and tests, the other by steps: both hold the spectrum."""
    problem = wide_table(shift)
    ring = ccmac.Network.ring(4)
    blocks = realized(problem, ring)
    steps = realized(problem, ring, costs=Costs(byte=1.0))
    assert blocks.block is not None
    assert steps.block is None
    rng = np.random.default_rng(0)
    for found in (blocks, steps):
        low, high, _ = found.system.extremes(int(rng.integers(100)), 60, 100)
        assert found.system.interval.low <= low * (1 + 1e-9)
        assert high <= found.system.interval.high * (1 + 1e-9)


def test_prices_decide_whether_blocks_are_sent() -> None:
    ring = ccmac.Network.ring(4)
    assert realized(wide_table(0.0), ring, costs=Costs(byte=1.0)).block is None


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("problem", ["quadratic", "ridge", "logistic", "B-zero", "grid"])
def test_predictions_are_within_a_factor_of_what_is_measured(problem: str, tol: float) -> None:
    made = posed(problem)
    result = ccmac.solve(
        made.problem, made.network, "cross-apapc", tol, reference=made.reference, progress=False
    )
    assert result.plan is not None
    assert result.plan.iterations is not None
    assert 1 / 4 <= result.iterations / result.plan.iterations <= 4
