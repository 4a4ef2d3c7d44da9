"""Dispatch and calibration mean what their pages say."""

from __future__ import annotations

import numpy as np
import pytest

from ccmac.errors import InputError
from ccmac.paper.instances import calibration, dispatch, infeasibility, solve_kkt
from paper.instances.dense_geometry import friedrichs_cosine


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_dispatch_balances_and_respects_the_equipment(seed):
    areas = 5
    hours = 6
    day = dispatch(seed, areas, hours)
    x = np.array(day.x).reshape(areas, 3, hours)
    power = x[:, 0]
    heat = x[:, 1]
    storage = x[:, 2]
    demand = sum(a.b for a in day.problem.agents.values())
    # The shares sum to one, so the kept-back energy is the schedule itself.
    np.testing.assert_allclose((power + storage).sum(axis=0) - day.z, demand, atol=1e-10)
    np.testing.assert_allclose(storage.sum(axis=1), 0.0, atol=1e-10)
    ratio = heat / power
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(hours), atol=1e-9)
    assert day.z.sum() == pytest.approx(day.facts["reserve"])
    assert (power > 0).all()
    assert day.network.n == areas


def test_the_dispatch_price_is_the_marginal_cost_of_demand():
    day = dispatch(4)
    base = solve_kkt(day.problem)
    step = 1e-5
    agents = dict(day.problem.agents)
    first = agents[0]
    hour = np.eye(day.problem.m)[2]
    agents[0] = type(first)(
        first.objective,
        A=first.A,
        B=first.B,
        b=first.b + step * hour,
        C=first.C,
        c=first.c,
        D=first.D,
        e=first.e,
    )
    more = solve_kkt(type(day.problem)(agents))
    marginal = (more.objective - base.objective) / step
    assert marginal == pytest.approx(-base.coupled[2], rel=1e-3)
    assert day.facts["mean_price"] > 0


def test_unequal_shares_close_the_angle():
    cosines = [
        friedrichs_cosine(dispatch(0, 4, 3, unequal_shares=u).problem) for u in (0.0, 1.0, 8.0)
    ]
    assert cosines[0] < cosines[1] < cosines[2]


@pytest.mark.parametrize("persons", [1, 5, 8])
def test_calibration_meets_the_published_totals(persons):
    study = calibration(3, persons)
    predicted = sum(a.A @ study.x[i] + a.B @ study.z for i, a in study.problem.agents.items())
    published = sum(a.b for a in study.problem.agents.values())
    np.testing.assert_allclose(predicted, published, atol=1e-10)
    for x in study.x:
        assert abs(x.sum()) < 1e-10
    assert infeasibility(study.problem) < 1e-12
    assert study.network.n == persons


def test_calibrated_effects_are_near_the_true_ones():
    assert calibration(0, 8, samples=200, ridge=1e-3).facts["parameter_error"] < 0.1


def test_refusals():
    with pytest.raises(InputError, match="two or more areas"):
        dispatch(0, 1)
    with pytest.raises(InputError, match="samples >= strata"):
        calibration(0, samples=1)
