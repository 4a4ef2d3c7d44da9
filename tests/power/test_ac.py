"""AC grids relaxed to cones: the joined program by Clarabel, published costs, what is said."""

from __future__ import annotations

import numpy as np
import pytest

import ccmac
from cones.joined import joined

pytest.importorskip("pypower")


@pytest.mark.parametrize(
    ("name", "areas", "rows", "most"),
    [("case30", 3, 18, 52), ("case57", 4, 30, 67), ("case118", 8, 90, 70), ("case300", 8, 69, 135)],
)
def test_areas_find_the_cost_and_prices_of_the_joined_program(
    name: str, areas: int, rows: int, most: int
) -> None:
    case = ccmac.power.ac_opf(name, areas=areas)
    result = ccmac.solve(case.problem, case.network, tol=1e-8)
    whole = joined(case.problem)
    constant = case.grid.cost[:, 2].sum()
    assert result.status == whole.status == "optimal"
    assert case.problem.m <= rows
    assert result.ledger["averagings"] <= most
    assert case.cost(result) - constant == pytest.approx(whole.cost, rel=1e-7)
    assert max(result.residuals.values()) <= 1e-5
    far = np.abs(result.multipliers.coupled - whole.coupled).max()
    assert far <= 1e-4 * np.abs(whole.coupled).max()


def test_the_lower_bound_lies_below_the_published_cost_of_an_exact_dispatch() -> None:
    # MATPOWER's case30, AC: 576.89; case57: 41,737.79; case118: 129,660.69.
    for name, exact in (("case30", 576.89), ("case57", 41_737.79), ("case118", 129_660.69)):
        case = ccmac.power.ac_opf(name, areas=3)
        result = ccmac.solve(case.problem, case.network, tol=1e-7)
        bound = case.lower_bound(result)
        assert 0.99 * exact < bound < exact
        assert bound == pytest.approx(case.cost(result), rel=1e-6)


def test_what_a_result_says_is_a_power_flow() -> None:
    case = ccmac.power.ac_opf("case30", areas=3, load=0.9)
    result = ccmac.solve(case.problem, case.network, tol=1e-8)
    grid = case.grid
    limits = grid.table["bus"][:, 11:13]
    volts = case.voltages(result)
    assert (volts <= limits[:, 0] + 1e-6).all()
    assert (volts >= limits[:, 1] - 1e-6).all()
    flow = case.flows(result)
    assert np.abs(flow).max(axis=1).max() <= (grid.base * grid.rating).max() + 1e-5
    losses = flow.sum(axis=1).real
    assert (losses >= -1e-5).all()
    served = 0.9 * grid.table["bus"][:, 2].sum()
    assert case.generation(result).sum() == pytest.approx(served + losses.sum(), abs=1e-4)
    assert case.reactive(result).shape == grid.p_max.shape
    slack = case.slack(result)
    assert (slack >= -1e-7).all()
    assert np.median(slack) < 1e-6  # most lines are exact
    price = case.prices(result)
    for name, _, here, there in case.ties(result):
        assert name.startswith("line ")
        assert {here, there} <= set(price.tolist())


def test_prices_are_what_one_more_megawatt_costs() -> None:
    case = ccmac.power.ac_opf("case30", areas=3)
    result = ccmac.solve(case.problem, case.network, tol=1e-9)
    more = ccmac.power.ac_opf("case30", areas=3, load=1.001)
    dearer = ccmac.solve(more.problem, more.network, tol=1e-9)
    demand = case.grid.table["bus"][:, 2:4]
    price = case.prices(result) @ demand[:, 0]
    reactive = case.model.prices("reactive", 30, result.multipliers)[0] / case.grid.base
    rise = (more.cost(dearer) - case.cost(result)) / 0.001
    assert rise == pytest.approx(price + reactive @ demand[:, 1], rel=1e-2)


def test_what_cannot_be_relaxed_is_refused() -> None:
    with pytest.raises(ccmac.errors.InputError, match="take 'soc'"):
        ccmac.power.ac_opf("case30", areas=3, relaxation="sdp")
    case = ccmac.power.ac_opf("case30", areas=3, load=4.0)
    result = ccmac.solve(case.problem, case.network)
    assert result.status == "infeasible"
    with pytest.raises(ccmac.errors.InputError, match="ended infeasible"):
        case.lower_bound(result)
