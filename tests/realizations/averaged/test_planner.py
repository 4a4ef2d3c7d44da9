"""The planner: what is fixed stays, the least bill wins, and the twin predicts what is measured."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.ledger import Costs
from ccmac.methods import CrossApapc
from ccmac.plans import Plan
from ccmac.realizations.averaged.planner import TWIN_UNCERTAINTY
from ccmac.realizations.averaged.twin import Modes
from ccmac.workspace.curvature import ScaledCurvature
from pins.problems import posed


@cache
def planned(problem: str, costs: Costs = Costs(), tol: float = 1e-6, **options: Any) -> Plan:  # noqa: B008
    made = posed(problem)
    return ccmac.plan(made.problem, made.network, CrossApapc(**options), tol, costs)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"scale": 0.5}, "scale"),
        ({"normalizer": "semi-iteration"}, "normalizer"),
        ({"normalizer": "deflation"}, "normalizer"),
        ({"outer": 2}, "outer"),
    ],
)
def test_what_is_fixed_is_the_same_in_all_candidates(options: dict[str, Any], field: str) -> None:
    candidates = planned("ridge", **options).candidates
    assert candidates
    assert {getattr(c, field) for c in candidates} == {options[field]}


def test_fixed_settings_are_executed() -> None:
    options = {"normalizer": "semi-iteration", "inner": 3, "outer": 2, "scale": 0.5}
    plan = planned("ridge", **options)
    assert plan.settings["normalizer"] == "semi-iteration 3"
    assert plan.settings["outer degree"] == 2
    [candidate] = plan.candidates
    assert (candidate.inner, candidate.scale) == (3, 0.5)


@pytest.mark.parametrize("problem", ["quadratic", "ridge", "grid"])
def test_without_fixed_settings_there_is_a_choice(problem: str) -> None:
    candidates = planned(problem).candidates
    assert len({c.scale for c in candidates}) >= 3
    assert len({c.outer for c in candidates}) >= 2
    bills = [c.bill for c in candidates]
    assert bills == sorted(bills)


PRICES = (
    Costs(),
    Costs(gradient=1000.0),
    Costs(round=1000.0),
    Costs(gradient=0.0, product=1.0, round=0.0),
)


@pytest.mark.parametrize("costs", PRICES, ids=str)
@pytest.mark.parametrize("problem", ["quadratic", "ridge"])
def test_the_cheapest_by_these_prices_is_chosen(problem: str, costs: Costs) -> None:
    """Up to what the twin cannot tell apart; bills add up from the prices."""
    plan = planned(problem, costs)
    best = plan.candidates[0]
    for c in plan.candidates:
        assert c.bill >= best.bill
        if math.isinf(c.iterations):  # the twin never arrives
            assert math.isinf(c.bill)
            continue
        total = costs.gradient * c.gradients + costs.product * c.products + costs.round * c.rounds
        assert c.bill == pytest.approx(total, rel=1e-9)
    assert plan.iterations is not None
    chosen = [c for c in plan.candidates if c.iterations == plan.iterations]
    assert any(c.bill <= TWIN_UNCERTAINTY * best.bill for c in chosen)


@pytest.mark.parametrize("problem", ["quadratic", "ridge", "grid"])
def test_prices_move_the_choice_the_right_way(problem: str) -> None:
    """Expensive gradients are not answered by more of them, nor expensive rounds."""
    gradients, rounds = (planned(problem, costs).candidates[0] for costs in PRICES[1:3])
    assert gradients.gradients <= rounds.gradients
    assert rounds.rounds <= gradients.rounds
    if problem != "ridge":  # where one plan is best in both
        assert (gradients.gradients, gradients.rounds) != (rounds.gradients, rounds.rounds)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("problem", ["quadratic", "ridge", "logistic", "B-zero", "grid"])
def test_predictions_are_within_two_and_a_half_of_what_is_measured(
    problem: str, tol: float
) -> None:
    made = posed(problem)
    result = ccmac.solve(
        made.problem, made.network, "cross-apapc", tol, reference=made.reference, progress=False
    )
    assert result.plan is not None
    assert result.plan.iterations is not None
    assert 1 / 2.5 <= result.iterations / result.plan.iterations <= 2.5
    assert result.plan.predicted is not None
    measured = result.ledger.of("solve")["rounds"]
    assert 1 / 2.5 <= measured / result.plan.predicted["rounds"] <= 2.5


def test_a_model_has_as_many_modes_at_every_scale() -> None:
    """Also where s^2 mu_z and s^2 L_z are the same number."""
    one = np.ones((1, 1))
    profile: Any = SimpleNamespace(
        ritz=lambda s: (np.ones(1), one),
        M_A=one,
        M_mean=one,
        M_B=one,
        gradient_x=np.ones(1),
        gradient_z=np.ones(1),
        misfit=np.ones(1),
        rest_x=1.0,
        rest_z=1.0,
    )
    blocks = np.array([1.0, 2.0, 1.0, 1.25])
    modes = [Modes(profile, s, ScaledCurvature(1.0, 3.0), blocks, 4) for s in (1.0, 2e-162)]
    assert [m.copies for m in modes] == [4, 4]
    assert modes[0].hessians[:, 1].tolist() == 2 * ([1.0] * 3 + [1.25] * 3)
    assert modes[0].solutions.shape == modes[1].solutions.shape
