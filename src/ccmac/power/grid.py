"""A transmission grid in per unit, read from PYPOWER's cases or from a table of the same form.

DC approximation: the flow over a line from i to j is b (theta_i - theta_j - shift), b = 1/(x tap).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, of_kind, positive, real_matrix
from ccmac.texts import nearest, shown

CASES = ("case9", "case14", "case24_ieee_rts", "case30", "case39", "case57", "case118", "case300")
WIDTHS = {"bus": 5, "gen": 10, "branch": 11, "gencost": 5}  # columns that are read
POLYNOMIAL = 2  # PYPOWER's code of a cost given by coefficients
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Grid:
    """Buses, units and lines that are in service; powers over ``base`` MVA, costs per hour."""

    name: str
    base: float
    bus: Index  # the buses' own numbers
    demand: Array
    unit_bus: Index  # position of each unit's bus
    p_min: Array
    p_max: Array
    cost: Array  # rows (c2, c1, c0) of c2 p^2 + c1 p + c0, p in per unit
    line_from: Index
    line_to: Index
    susceptance: Array
    shift: Array
    rating: Array  # inf where a line has none
    reference: int

    @property
    def buses(self) -> int:
        """Number of buses."""
        return len(self.bus)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.line_from)

    @cached_property
    def stiffness(self) -> Array:
        """sum of |b| over the lines of every bus, over 4 (1 where there is none).

        Angles are stated times this: coefficients of balances are at most 4, whatever the lines.
        """
        size = np.zeros(self.buses)
        for ends in (self.line_from, self.line_to):
            np.add.at(size, ends, 0.25 * np.abs(self.susceptance))
        return np.where(size > 0, size, 1.0)

    def graph(self) -> nx.Graph[Any]:
        """Buses by position, joined where a line is."""
        graph: nx.Graph[Any] = nx.Graph()
        graph.add_nodes_from(range(self.buses))
        graph.add_edges_from(zip(self.line_from.tolist(), self.line_to.tolist(), strict=True))
        return graph

    def line_name(self, k: int) -> str:
        """Number and ends."""
        return f"line {k} ({self.bus[self.line_from[k]]}-{self.bus[self.line_to[k]]})"

    @property
    def reachable(self) -> float:
        """No line carries more in any dispatch without phase shifters: all that may be drawn.

        A line's share of a unit injected at one bus and drawn at another is at most 1, so a flow
        is at most the sum of the positive injections, which is that of the negative ones.
        """
        if np.any(self.shift):
            return np.inf
        least = np.bincount(self.unit_bus, self.p_min, minlength=self.buses)
        most = np.bincount(self.unit_bus, self.p_max, minlength=self.buses)
        drawn = np.maximum(self.demand - least, 0.0).sum()
        return float(min(drawn, np.maximum(most - self.demand, 0.0).sum()))


def read_grid(case: str | Mapping[str, Any]) -> Grid:
    """The grid of a case by name, or of a table with baseMVA, bus, gen, branch, gencost."""
    of_kind("power, case", case, (str, Mapping), "a name or a table like PYPOWER's")
    name, table = (case, _shipped(case)) if isinstance(case, str) else ("grid", dict(case))
    missing = [key for key in ("baseMVA", "bus", "gen", "branch", "gencost") if key not in table]
    if missing:
        raise InputError(f"power, {name}: lacks {', '.join(missing)}; give a table like PYPOWER's")
    base = positive(f"power, {name}, baseMVA", table["baseMVA"])
    bus, gen, branch, gencost = (_rows(name, table, key) for key in WIDTHS)
    running = gen[:, 7] > 0
    closed = branch[:, 10] > 0
    if len(gencost) < len(gen):
        raise InputError(f"power, {name}, gencost: has {len(gencost)} rows for {len(gen)} units")
    if (branch[closed, 3] == 0).any():
        k = int(np.flatnonzero(closed & (branch[:, 3] == 0))[0])
        raise InputError(f"power, {name}: line {k} has no reactance; give one, or join its buses")
    tap = np.where(branch[closed, 8] == 0, 1.0, branch[closed, 8])
    rating = branch[closed, 5] / base
    reference = np.flatnonzero(bus[:, 1] == 3)
    grid = Grid(
        name,
        base,
        bus[:, 0].astype(np.intp),
        (bus[:, 2] + bus[:, 4]) / base,
        _places(name, "gen", bus, gen[running, 0]),
        gen[running, 9] / base,
        gen[running, 8] / base,
        _costs(name, gencost[: len(gen)][running], base),
        _places(name, "branch", bus, branch[closed, 0]),
        _places(name, "branch", bus, branch[closed, 1]),
        1.0 / (branch[closed, 3] * tap),
        np.deg2rad(branch[closed, 9]),
        np.where(rating == 0, np.inf, rating),
        int(reference[0]) if reference.size else 0,
    )
    return checked(grid)


def _rows(name: str, table: Mapping[str, Any], key: str) -> Array:
    """A table of finite numbers with the columns that are read."""
    rows = real_matrix(f"power, {name}, {key}", table[key])
    if rows.shape[1] < WIDTHS[key] or not len(rows):
        raise InputError(
            f"power, {name}, {key}: has the shape {rows.shape}; give rows of at least "
            f"{WIDTHS[key]} columns, like PYPOWER's"
        )
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def _places(name: str, key: str, bus: Array, numbers: Array) -> Index:
    """Where the buses of these numbers are."""
    place = {float(number): k for k, number in enumerate(bus[:, 0])}
    strange = next((b for b in numbers if float(b) not in place), None)
    if strange is not None:
        raise InputError(f"power, {name}, {key}: bus {strange:g} is none of those in bus")
    return np.array([place[float(b)] for b in numbers], dtype=np.intp)


def checked(grid: Grid) -> Grid:
    """Refuse what no dispatch can serve, with the bus or unit that is to blame."""
    alone = [k for k, degree in grid.graph().degree if degree == 0] if grid.buses > 1 else []
    if alone:
        raise InputError(
            f"power, {grid.name}: bus {grid.bus[alone[0]]} is isolated, no line in service ends "
            "there; close a line or take the bus out"
        )
    crossed = np.flatnonzero(grid.p_min > grid.p_max)
    if crossed.size:
        k = int(crossed[0])
        raise InputError(
            f"power, {grid.name}: unit {k} at bus {grid.bus[grid.unit_bus[k]]} has a least output "
            f"of {grid.base * grid.p_min[k]:g} MW above its largest, "
            f"{grid.base * grid.p_max[k]:g}; exchange them"
        )
    return grid


def _shipped(name: str) -> dict[str, Any]:
    if name not in CASES:
        raise InputError(f"power: case {shown(name)} is unknown; {nearest(name, CASES)}")
    try:
        module = importlib.import_module(f"pypower.{name}")
    except ImportError:
        raise InputError("power: cases need PYPOWER; pip install 'ccmac[power]'") from None
    return dict(getattr(module, name)())


def _costs(name: str, table: Array, base: float) -> Array:
    """Coefficients for power in per unit."""
    found = np.zeros((len(table), 3))
    for k, row in enumerate(table):
        count = int(row[3])
        if row[0] != POLYNOMIAL or not 0 <= count <= min(3, len(row) - 4):
            raise InputError(
                f"power, {name}: unit {k} has a cost that is no polynomial of degree 2 or less; "
                "give coefficients c2, c1, c0"
            )
        found[k, 3 - count :] = row[4 : 4 + count]
    return np.asarray(found * np.array([base * base, base, 1.0]))
