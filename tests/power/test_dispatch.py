"""DC optimal power flow: against Clarabel, by buses and by areas, in counted rounds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ccmac
from ccmac.errors import InputError
from ccmac.ledger import PHASES
from power.reference import clarabel, unique

pytest.importorskip("pypower")
pytest.importorskip("cvxpy")


def solved(case: ccmac.power.Dispatch, **options: Any) -> ccmac.Result:
    return ccmac.solve(case.problem, case.network, **({"tol": 1e-8} | options))


def rounds(result: ccmac.Result) -> int:
    return sum(result.ledger.of(phase)["rounds"] for phase in PHASES)


def right(case: ccmac.power.Dispatch, result: ccmac.Result) -> Any:
    """Cost and limits; returns Clarabel's prices."""
    cost, prices = clarabel(case)
    assert result.status == "optimal"
    assert case.cost(result) == pytest.approx(cost, rel=1e-6)
    assert case.imbalance(result) <= 1e-7
    assert case.overload(result) <= 1e-7
    return prices


def agrees(case: ccmac.power.Dispatch, result: ccmac.Result) -> None:
    prices = right(case, result)
    known = np.ones(prices.shape, dtype=bool)
    if case.model.ask.hours == 1:
        known[0] = unique(case, result)
        assert known.sum() >= 0.9 * known.size
    assert case.prices(result)[known] == pytest.approx(prices[known], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("areas", [None, 4])
def test_case30_as_shipped(areas: int | None) -> None:
    case = ccmac.power.dc_opf("case30", areas)
    agrees(case, solved(case))


def test_case118_by_areas_then_with_lines_that_bind() -> None:
    case = ccmac.power.dc_opf("case118", areas=10)
    result = solved(case)
    agrees(case, result)
    assert case.cost(result) == pytest.approx(125_947.87, abs=0.01)
    assert rounds(result) <= 150
    tight = ccmac.power.dc_opf("case118", areas=10, ratings=case.tightened(result, 0.9))
    bound = solved(tight)
    agrees(tight, bound)
    assert unique(tight, bound).sum() == 117  # at bus 38 any price from 38.86 to 40.16 would do
    assert rounds(bound) <= 4 * 64
    full = np.abs(tight.flows(bound)[0]) >= 0.999 * tight.grid.base * tight.grid.rating
    assert full.sum() >= 5
    assert np.ptp(tight.prices(bound)) > 1.0


def test_case300_with_ratings_that_nobody_can_keep_then_on_fewer_lines() -> None:
    case = ccmac.power.dc_opf("case300", areas=10)
    free = solved(case)
    tight = ccmac.power.dc_opf("case300", areas=10, ratings=case.tightened(free, 0.9))
    with pytest.raises(AssertionError, match="infeasible"):
        clarabel(tight)
    refuted = solved(tight)
    assert refuted.status == "infeasible"
    assert refuted.infeasibility.value > 0
    fewer = ccmac.power.dc_opf("case300", areas=10, ratings=case.tightened(free, 0.9, 0.05))
    bound = solved(fewer)
    assert bound.status == "optimal"
    assert fewer.cost(bound) == pytest.approx(clarabel(fewer)[0], rel=1e-6)
    assert max(fewer.imbalance(bound), fewer.overload(bound)) <= 1e-7
    for result in (free, refuted, bound):
        assert sum(result.ledger.of(phase)["averagings"] for phase in PHASES) <= 80


def test_case118_by_buses_on_its_own_grid() -> None:
    case = ccmac.power.dc_opf("case118")
    assert case.network.n == 118
    result = solved(case)
    assert case.cost(result) == pytest.approx(125_947.8727, rel=1e-6)
    assert case.imbalance(result) <= 1e-7
    assert rounds(result) <= 500


def test_hours_with_ramps_storage_and_reserve() -> None:
    case = ccmac.power.dc_opf(
        "case30",
        4,
        hours=6,
        load=[0.5, 0.7, 0.9, 1.0, 0.8, 0.6],
        reserve=0.05,
        ramp=0.1,
        storage={7: (10.0, 30.0)},
    )
    result = solved(case)
    agrees(case, result)
    p = case.generation(result)
    step = np.abs(np.diff(p, axis=0)) / (case.grid.base * case.grid.p_max)
    assert step.max() == pytest.approx(0.1, abs=1e-6)
    stored = case.stored(result)[:, 0]
    assert stored.max() <= 30 + 1e-6
    assert stored[-1] >= 15 - 1e-6
    needed = 0.05 * case.grid.base * case.model.demand.sum(axis=1)
    assert case.reserve(result) == pytest.approx(needed, abs=1e-3)
    single = ccmac.power.dc_opf("case30", 4, reserve=0.05)
    assert rounds(result) <= 3 * rounds(solved(single))


def test_more_demand_than_units_is_proved_infeasible() -> None:
    case = ccmac.power.dc_opf("case30", 4, load=3.0)
    result = solved(case)
    assert result.status == "infeasible"
    assert "\n" not in result.message


def test_agents_and_rows_are_named() -> None:
    case = ccmac.power.dc_opf("case30")
    result = solved(case)
    assert list(result.named["x"])[:2] == ["bus 1", "bus 2"]
    assert "balance bus 8" in result.named["coupled"]
    assert case.network.nodes[0] == "bus 1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t["branch"].__setitem__((slice(None), 10), 0), "bus 1 is isolated"),
        (lambda t: t["gen"].__setitem__((0, 9), 1e4), "unit 0 at bus 1 has a least output"),
        (lambda t: t["gencost"].__setitem__((1, 0), 1), "unit 1 needs two points of cost"),
        (lambda t: t.pop("bus"), "lacks bus"),
        (lambda t: t.update(baseMVA="x"), "baseMVA"),
        (lambda t: t.update(baseMVA=0), "baseMVA: is 0.0; it must be positive"),
        (lambda t: t.update(bus=[[1.0, 2.0]]), r"bus: has the shape \(1, 2\)"),
        (lambda t: t.update(gen=None), "gen: "),
        (lambda t: t.update(gencost=t["gencost"][:2]), "gencost: has 2 rows for 6 units"),
        (lambda t: t["gencost"].__setitem__((1, 3), -1), "unit 1 has a cost that is no polynomial"),
        (lambda t: t["branch"].__setitem__((0, 1), 77), "branch: bus 77 is none"),
        (lambda t: t["branch"].__setitem__((3, 3), 0), "line 3 has no reactance"),
        (lambda t: t["bus"].__setitem__((3, 2), np.nan), "bus: "),
    ],
)
def test_a_bad_grid_is_one_line(change: Any, words: str) -> None:
    from pypower.case30 import case30

    table = case30()
    change(table)
    with pytest.raises(InputError, match=words):
        ccmac.power.dc_opf(table)


def test_unknown_cases_and_settings_are_refused() -> None:
    for options, words in (
        ({"case": "case117"}, "did you mean"),
        ({"areas": 0}, "areas = 0"),
        ({"ratings": [1.0]}, "each of the 41 lines"),
        ({"hours": 0}, "hours = 0"),
        ({"storage": {99: (1.0, 1.0)}}, "bus 99 is none"),
        ({"load": [1.0, 2.0]}, "one factor for each hour, 1"),
    ):
        with pytest.raises(InputError, match=words):
            ccmac.power.dc_opf(**({"case": "case30"} | options))


def test_the_command_prints_and_draws(tmp_path: Path) -> None:
    from ccmac.cli.commands import application

    target = tmp_path / "grid.png"
    ran = CliRunner().invoke(
        application("power"), ["power", "case30", "--areas", "3", "--out", str(target)]
    )
    assert ran.exit_code == 0, ran.output
    assert "cost 565.21" in ran.output
    assert target.read_bytes()[:4] == b"\x89PNG"
    told = CliRunner().invoke(application("power"), ["power", "case30", "--areas", "3", "--json"])
    assert json.loads(told.output)["cost"] == pytest.approx(565.206, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (["case31"], "case 'case31' is unknown; did you mean", 2),
        (["case30", "--areas", "99"], "areas = 99; give a number from 1 to 30", 2),
        (["case30", "--tighten", "7"], "--tighten 7.0: give a share", 2),
        (["case30", "--areas", "3", "--load", "3"], "case30: demand 568 MW, capacity 335", 3),
    ],
)
def test_the_command_refuses_in_one_line(
    options: list[str], words: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from ccmac.cli.main import main

    assert main(["power", *options]) == code
    told = capsys.readouterr()
    assert words in (told.err if code == 2 else told.out.replace("\n", " "))
    assert told.err.count("\n") == (code == 2)


def test_warm_windows_of_half_a_day_take_half_of_the_cold_rounds_and_no_window_more() -> None:
    case = ccmac.power.dc_opf(
        "case30", 3, hours=4, ramp=0.2, reserve=0.05, storage={7: (10.0, 30.0)}
    )
    first, *steps = ccmac.power.rolling(case, 13, load=np.roll(ccmac.power.DAY, -4))
    assert all(step.result.status == "optimal" for step in steps)
    # The room of the coupled inequalities is summed for the moved start; rarely scales are, too.
    set_up = [step.result.ledger.of("setup")["averagings"] for step in steps]
    assert np.median(set_up) == 1
    assert max(set_up) <= 3
    warm = [rounds(step.result) for step in steps]
    cold = [rounds(solved(step.case)) for step in steps]
    assert sum(warm) <= 0.52 * sum(cold)
    assert all(one <= other for one, other in zip(warm, cold, strict=True))
    assert min(warm) <= rounds(first.result) / 4
    assert len({round(step.case.cost(step.result), 3) for step in steps}) >= 10


@pytest.mark.parametrize(
    ("areas", "factor", "from_hour", "steps"), [(3, 0.8, 7, 4), (8, 0.95, 5, 2)]
)
def test_warm_windows_with_lines_that_bind_take_fewer_rounds_than_cold_ones(
    areas: int, factor: float, from_hour: int, steps: int
) -> None:
    """At 0.95 many bounds change at once, and prices are not unique."""
    one = ccmac.power.dc_opf("case30", areas)
    ratings = one.tightened(solved(one), factor)
    case = ccmac.power.dc_opf(
        "case30", areas, hours=4, ramp=0.2, reserve=0.05, ratings=ratings, storage={7: (10.0, 30.0)}
    )
    windows = list(ccmac.power.rolling(case, steps, load=np.roll(ccmac.power.DAY, -from_hour)))
    for step in windows[1:]:
        full = np.abs(step.case.flows(step.result)) >= 0.999999 * case.grid.base * case.grid.rating
        assert full.any()
        assert rounds(step.result) < rounds(solved(step.case))
        (agrees if areas == 3 else right)(step.case, step.result)


def test_a_rolling_horizon_keeps_ramps_between_its_windows() -> None:
    load = [0.6, 0.7, 0.8, 0.7]
    case = ccmac.power.dc_opf("case30", 3, hours=4, load=load, ramp=0.1, storage={7: (10.0, 30.0)})
    steps = list(ccmac.power.rolling(case, 3))
    assert [step.result.status for step in steps] == ["optimal"] * 3
    done = np.array([step.carried_out for step in steps])
    moved = np.abs(np.diff(done, axis=0)) / (case.grid.base * case.grid.p_max)
    assert moved.max() <= 0.1 + 1e-6
    assert steps[1].case.model.ask.load[:, 0].tolist() == [0.7, 0.8, 0.7, 0.6]
    left = steps[0].case.stored(steps[0].result)[0, 0]
    assert steps[1].case.model.ask.storage[0].stored == pytest.approx(left / case.grid.base)
    agrees(steps[1].case, steps[1].result)


def test_the_lines_that_limit_are_named() -> None:
    one = ccmac.power.dc_opf("case30", 4)
    ratings = one.tightened(solved(one), 0.7)
    tight = ccmac.power.dc_opf("case30", 4, ratings=ratings)
    words = tight.explain(solved(tight))
    named = [int(k) for k in re.findall(r"line (\d+) \(", words)]
    assert named
    assert all(f"{ratings[k]:.4g} MW" in words for k in named)
    ratings[named] = np.inf
    freed = ccmac.power.dc_opf("case30", 4, ratings=ratings)
    assert solved(freed).status == "optimal"
