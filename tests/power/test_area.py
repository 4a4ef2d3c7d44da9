"""Areas that state their own parts find the dispatch of the whole table."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pytest

import ccmac

pytest.importorskip("pypower")


def divided(
    name: str, areas: int, factor: float
) -> tuple[Any, list[dict[str, Any]], dict[str, Any]]:
    """(the whole case, its ties, the table of each area)."""
    free = ccmac.power.dc_opf(name, areas)
    flows = ccmac.solve(free.problem, free.network, tol=1e-8)
    whole = ccmac.power.dc_opf(name, areas, ratings=free.tightened(flows, factor))
    grid = whole.grid
    bus, gen, branch = (grid.table[key] for key in ("bus", "gen", "branch"))
    branch = branch.copy()
    branch[:, 5] = np.where(np.isfinite(grid.rating), grid.base * grid.rating, 0.0)
    cost = np.column_stack([np.tile([2, 0, 0, 3], (len(gen), 1)), grid.cost / [1e4, 1e2, 1]])
    area = whole.model.area
    ends = list(zip(grid.line_from.tolist(), grid.line_to.tolist(), strict=True))
    ties = [
        {
            "from_area": f"area {area[i]}",
            "from_bus": int(grid.bus[i]),
            "to_area": f"area {area[j]}",
            "to_bus": int(grid.bus[j]),
            "r": branch[k, 2],
            "x": branch[k, 3] * (branch[k, 8] or 1.0),
            "rating": branch[k, 5],
        }
        for k, (i, j) in enumerate(ends)
        if area[i] != area[j]
    ]
    tables = {}
    for a, part in enumerate(whole.model.parts):
        units = np.isin(grid.unit_bus, part)
        inner = [k for k, (i, j) in enumerate(ends) if area[i] == area[j] == a]
        tables[f"area {a}"] = {
            "baseMVA": grid.base,
            "bus": bus[part],
            "gen": gen[units],
            "branch": branch[inner],
            "gencost": cost[units],
        }
    return whole, ties, tables


def test_the_parts_of_areas_are_the_whole_dispatch() -> None:
    whole, ties, tables = divided("case118", 4, 0.9)
    parts = {name: ccmac.power.area(table, ties, name) for name, table in tables.items()}
    first = next(iter(parts.values()))
    ordered = [parts[name] for name in first.names]
    assert len({part.public() + part.network() for part in ordered}) == 1
    public = tomllib.loads(first.public())
    assert public["m"] == len(public["row_names"])
    assert [part.position for part in ordered] == list(range(4))
    problem = ccmac.Problem([part.agent for part in ordered], row_names=first.row_names)
    result = ccmac.solve(problem, tol=1e-8)
    expected = ccmac.solve(whole.problem, whole.network, tol=1e-8)
    assert result.status == "optimal"
    constant = whole.grid.cost[:, 2].sum()
    assert result.objective + constant == pytest.approx(whole.cost(expected), rel=1e-7)
    price = whole.prices(expected)[0]
    # Where nothing is made or used, and lines on both sides are full, prices are not unique.
    served = (whole.grid.demand > 0) | np.isin(range(whole.grid.buses), whole.grid.unit_bus)
    made = np.zeros(whole.grid.buses)
    np.add.at(made, whole.grid.unit_bus, whole.generation(expected)[0])
    for part in ordered:
        for bus, own in part.prices(result).items():
            at = whole.grid.bus.tolist().index(bus)
            assert not served[at] or own == pytest.approx(price[at], abs=1e-4)
        for bus, mw in part.generation(result).items():
            assert mw == pytest.approx(made[whole.grid.bus.tolist().index(bus)], abs=1e-2)


def test_mistakes_name_the_area_the_tie_and_the_bus() -> None:
    _, ties, tables = divided("case30", 3, 1.0)
    table = tables["area 0"]
    for wrong, words in (
        ([{**ties[0], "to_bus": ties[0]["from_bus"]}], "is its own and another's"),
        ([{key: v for key, v in ties[0].items() if key != "x"}], "tie 0 lacks x"),
    ):
        with pytest.raises(ccmac.errors.InputError, match=words):
            ccmac.power.area(table, wrong, str(ties[0]["from_area"]))
    with pytest.raises(ccmac.errors.InputError, match="has no tie"):
        ccmac.power.area(table, ties, "west")
