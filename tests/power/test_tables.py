"""Grids from files and other tools: MATPOWER files, conventions, areas, piecewise linear costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmac
from ccmac.errors import InputError
from power.reference import clarabel

pytest.importorskip("cvxpy")

CASE = """function mpc = five
%% a comment = [ 1 2 3 ];
mpc.version = '2';
mpc.baseMVA = 100.0;
mpc.bus = [
  1 2   0.0 0 0 0 1 1 0 230 1 1.1 0.9;
  2 1 300.0 0 0 0 1 1 0 230 1 1.1 0.9;  % a load
  3 2 300.0 0 0 0 2 1 0 230 2 1.1 0.9;
  4 3 400.0 0 0 0 2 1 0 230 2 1.1 0.9;
 10 2   0.0 0 0 0 1 1 0 230 1 1.1 0.9;
 11 4  50.0 0 0 0 1 1 0 230 1 1.1 0.9;
];
mpc.gen = [
  1   40 0  30  -30 1 100 1  40 0;
  1  170 0 127 -127 1 100 1 170 0;
  3  324 0 390 -390 1 100 1 520 0;
  4    0 0 150 -150 1 100 1 200 0;
 10  470 0 450 -450 1 100 1 600 0;
 11    9 0   9   -9 1 100 1   9 0;
];
mpc.gencost = [
  2 0 0 3 0 14 0 0 0 0;
  2 0 0 3 0.01 15 0 0 0 0;
  1 0 0 3 0 0 200 4000 520 16000;
  2 0 0 2 40 0 0 0 0 0;
  2 0 0 3 0 10 0 0 0 0;
  2 0 0 3 0  1 0 0 0 0;
];
mpc.branch = [
  1  2 0.00281 0.0281 0.00712 400 0 0 0 0 1 -30 30;
  1  4 0.00304 0.0304 0.00658   0 0 0 0 0 1 -30 30;
  1 10 0.00064 0.0064 0.03126   0 0 0 0 0 1 -30 30;
  2  3 0.00108 0.0108 0.01852   0 0 0 0.98 1 1 -30 30;
  3  4 0.00297 0.0297 0.00674   0 0 0 0 0 1 -2 2;
  4 10 0.00297 0.0297 0.00674 240 0 0 0 0 1 -30 30;
  4 11 0.00297 0.0297 0.00674 240 0 0 0 0 1 -30 30;
];
mpc.bus_name = { 'one'; 'two' };
"""


@pytest.fixture
def five(tmp_path: Path) -> Path:
    path = tmp_path / "five.m"
    path.write_text(CASE, encoding="utf-8")
    return path


@pytest.mark.parametrize("convention", ["matpower", "powermodels"])
@pytest.mark.parametrize("areas", [None, 2, "area", [[1, 2, 10], [3, 4]]])
def test_a_matpower_file_is_dispatched_as_clarabel_does(
    five: Path, convention: str, areas: Any
) -> None:
    case = ccmac.power.dc_opf(five, areas, convention=convention)
    result = ccmac.solve(case.problem, case.network, tol=1e-8)
    cost, prices = clarabel(case)
    assert result.status == "optimal"
    assert case.cost(result) == pytest.approx(cost, rel=1e-7)
    assert max(case.imbalance(result), case.overload(result)) <= 1e-7
    assert case.prices(result) == pytest.approx(prices, rel=1e-4, abs=1e-4)
    between = case.angles(result)[0, 2] - case.angles(result)[0, 3]
    assert abs(np.rad2deg(between)) <= 2 + 1e-6  # the limit of line 3-4


def test_inf_is_no_limit(five: Path) -> None:
    """Of reactive output and of lines, as some files have it."""
    text = CASE.replace("0.00712 400 ", "0.00712 Inf ").replace("30  -30 1 100", "Inf -Inf 1 100")
    five.write_text(text, encoding="utf-8")
    assert np.isinf(ccmac.power.dc_opf(five).grid.rating[0])
    case = ccmac.power.ac_opf(five, 2)
    assert np.isinf(case.model.bounds(("q", 0, 0))).all()
    assert ccmac.solve(case.problem, case.network, tol=1e-4).status == "optimal"


def test_areas_are_named_by_a_mapping_or_a_column(five: Path) -> None:
    named = ccmac.power.dc_opf(five, {"west": [1, 2, 10], "east": [4, 3]})
    assert named.network.nodes == ["west", "east"]
    assert [a.name for a in named.problem.agents.values()] == ["west", "east"]
    assert ccmac.power.dc_opf(five, "zone").network.nodes == ["zone 1", "zone 2"]
    for areas, words in (
        ([[1, 2], [3, 4]], "bus 10 is in no area"),
        ([[1, 2, 10], [3, 4, 1]], "bus 1 is listed twice"),
        ([[1, 2, 10], [3, 4, 99]], "bus 99 is none of five's"),
        ("owner", "areas = 'owner'; give a number"),
    ):
        with pytest.raises(InputError, match=words):
            ccmac.power.dc_opf(five, areas)


def test_demand_beyond_the_capacity_is_shed_at_its_price_or_explained_in_mw(five: Path) -> None:
    profile = np.ones((2, 5))
    profile[1, 1:4] = [2.0, 1.8, 1.7]
    scarce = ccmac.power.dc_opf(five, 2, hours=2, load=profile)
    refused = ccmac.solve(scarce.problem, scarce.network)
    assert refused.status == "infeasible"
    assert scarce.explain(refused) == "five: demand 1,820 MW in hour 1, capacity 1,530"
    with pytest.raises(InputError, match=r"no dispatch to price; five: demand 1,820 MW"):
        scarce.cost(refused)
    case = ccmac.power.dc_opf(five, 2, hours=2, load=profile, shed=1000.0, ramp=[1, 1, 0.5, 1, 1])
    result = ccmac.solve(case.problem, case.network, tol=1e-9)
    cost, _ = clarabel(case)
    assert case.cost(result) == pytest.approx(cost, rel=1e-7)
    assert case.shed(result)[0].sum() == pytest.approx(0, abs=1e-4)
    assert case.shed(result)[1].sum() >= 1820 - 1530 - 1e-4
    assert case.prices(result)[1].max() == pytest.approx(1000.0, rel=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mpc.baseMVA = 100.0;", "", "lacks baseMVA"),
        ("-2 2;\n", "two 2;\n", "mpc.branch: could not convert string to float: 'two'"),
        ("mpc.bus_name", "mpc.bus(:, 3) = mpc.bus(:, 3) / 1e3; mpc.bus_name", "computes 'mpc.bus"),
        ("0 0 200 4000 520 16000", "0 0 200 4000 520 4100", "unit 2 has a cost whose slope falls"),
    ],
)
def test_what_a_file_may_not_hold_is_one_line(five: Path, old: str, new: str, words: str) -> None:
    five.write_text(CASE.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        ccmac.power.dc_opf(five)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_wrong_convention_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        ccmac.power.dc_opf(tmp_path / "none.m")
    with pytest.raises(InputError, match="did you mean 'powermodels'"):
        ccmac.power.dc_opf("case30", convention="powermodel")
