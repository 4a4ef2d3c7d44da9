"""A transmission grid in per unit, from a table of MATPOWER's form (:mod:`ccmac.power.tables`).

DC approximation: the flow over a line from i to j is b (theta_i - theta_j - shift), b = 1/(x tap)
as in MATPOWER, or b = x/(r^2 + x^2) without tap and shift as in PowerModels (``convention``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array, is_sparse, positive, real_matrix
from ccmac.power.tables import read_table
from ccmac.texts import nearest

CONVENTIONS = ("matpower", "powermodels")
WIDTHS = {"bus": 5, "gen": 10, "branch": 11, "gencost": 5}  # columns that are read
LIMITS = {"gen": (3, 4), "branch": (5, 6, 7)}  # columns in which Inf is no limit
ISOLATED = 4  # type of a bus that is out of service
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
    pieces: Mapping[int, Array]  # by unit: rows (slope, intercept), the cost is the largest
    line_from: Index
    line_to: Index
    susceptance: Array
    shift: Array
    rating: Array  # inf where a line has none
    spread: Array  # rows (least, largest) of theta_i - theta_j
    reference: int
    table: Mapping[str, Array]  # rows of bus, gen and branch that are in service

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

    @cached_property
    def flow_limits(self) -> tuple[Array, Array]:
        """Least and largest flow of every line, by its rating and its angle limits."""
        ends = self.susceptance[:, None] * (self.spread - self.shift[:, None])
        ends = np.where(self.susceptance[:, None] == 0, [-np.inf, np.inf], ends)
        return np.maximum(ends.min(axis=1), -self.rating), np.minimum(ends.max(axis=1), self.rating)

    def cost_of(self, p: Array) -> float:
        """What outputs (hours x units, per unit) cost."""
        c2, c1, c0 = self.cost.T
        total = float((c2 * p * p + c1 * p + c0).sum())
        for k, lines in self.pieces.items():
            total += float(np.max(np.outer(p[:, k], lines[:, 0]) + lines[:, 1], axis=1).sum())
        return total

    def line_name(self, k: int) -> str:
        """What a line is called: its number and its ends."""
        return f"line {k} ({self.bus[self.line_from[k]]}-{self.bus[self.line_to[k]]})"

    @property
    def reachable(self) -> float:
        """No line carries more in any dispatch without phase shifters: all that may be drawn.

        A line's share of a unit injected at one bus and drawn at another is at most 1, so a flow
        is at most the sum of the positive injections, which is that of the negative ones.
        """
        if np.any(self.shift) or np.any(self.susceptance < 0):
            return np.inf
        least = np.bincount(self.unit_bus, self.p_min, minlength=self.buses)
        most = np.bincount(self.unit_bus, self.p_max, minlength=self.buses)
        drawn = np.maximum(self.demand - least, 0.0).sum()
        return float(min(drawn, np.maximum(most - self.demand, 0.0).sum()))


def read_grid(case: Any, convention: str = "matpower") -> Grid:
    """The grid of a case by name, file, table or pandapower net."""
    if convention not in CONVENTIONS:
        raise InputError(f"power: convention {convention!r}; {nearest(convention, CONVENTIONS)}")
    name, table = read_table(case)
    base = positive(f"power, {name}, baseMVA", table["baseMVA"])
    bus, gen, branch, gencost = (_rows(name, table, key) for key in WIDTHS)
    if len(gencost) < len(gen):
        raise InputError(f"power, {name}, gencost: has {len(gencost)} rows for {len(gen)} units")
    out = bus[bus[:, 1] == ISOLATED, 0]
    bus = bus[bus[:, 1] != ISOLATED]
    running = (gen[:, 7] > 0) & ~np.isin(gen[:, 0], out)
    gencost = gencost[: len(gen)][running]
    gen = gen[running]
    branch = branch[(branch[:, 10] > 0) & ~np.isin(branch[:, :2], out).any(axis=1)]
    resistance = branch[:, 2]
    reactance = branch[:, 3]
    tap = np.where(branch[:, 8] == 0, 1.0, branch[:, 8])
    matpower = convention == "matpower"
    impedance = reactance if matpower else np.hypot(resistance, reactance)
    if (impedance == 0).any():
        k = int(np.flatnonzero(impedance == 0)[0])
        raise InputError(f"power, {name}: line {k} has no reactance; give one, or join its buses")
    susceptance = (
        1.0 / (reactance * tap) if matpower else reactance / (resistance**2 + reactance**2)
    )
    shift = np.deg2rad(branch[:, 9]) if matpower else np.zeros(len(branch))
    rating = branch[:, 5] / base
    reference = np.flatnonzero(bus[:, 1] == 3)
    cost, pieces = _costs(name, gencost, base)
    grid = Grid(
        name,
        base,
        bus[:, 0].astype(np.intp),
        (bus[:, 2] + bus[:, 4]) / base,
        _places(name, "gen", bus, gen[:, 0]),
        gen[:, 9] / base,
        gen[:, 8] / base,
        cost,
        pieces,
        _places(name, "branch", bus, branch[:, 0]),
        _places(name, "branch", bus, branch[:, 1]),
        susceptance,
        shift,
        np.where(rating == 0, np.inf, rating),
        _spread(branch),
        int(reference[0]) if reference.size else 0,
        {"bus": bus, "gen": gen, "branch": branch},
    )
    _check(grid)
    return grid


def _spread(branch: Array) -> Array:
    """Limits of the angle between the ends in radians; none where both are 0 or a full turn."""
    found = np.tile([-np.inf, np.inf], (len(branch), 1))
    if branch.shape[1] >= 13:
        given = branch[:, 11:13]
        stated = np.any(given != 0, axis=1, keepdims=True)
        kept = stated & (np.abs(given) < 360)
        found = np.where(kept, np.deg2rad(given), found)
    return found


def _rows(name: str, table: Mapping[str, Any], key: str) -> Array:
    """A table of numbers with the columns that are read, finite but for limits."""
    where = f"power, {name}, {key}"
    given = real_matrix(where, table[key], infinite=True)
    rows = np.asarray(given.toarray() if is_sparse(given) else given)
    if rows.shape[1] < WIDTHS[key] or not len(rows):
        raise InputError(
            f"{where}: has the shape {rows.shape}; give rows of at least {WIDTHS[key]} columns, "
            "like PYPOWER's"
        )
    real_matrix(where, np.delete(rows, LIMITS.get(key, ()), axis=1))
    return rows


def _places(name: str, key: str, bus: Array, numbers: Array) -> Index:
    """Where the buses of these numbers are."""
    place = {float(number): k for k, number in enumerate(bus[:, 0])}
    strange = next((b for b in numbers if float(b) not in place), None)
    if strange is not None:
        raise InputError(f"power, {name}, {key}: bus {strange:g} is none of those in bus")
    return np.array([place[float(b)] for b in numbers], dtype=np.intp)


def _check(grid: Grid) -> None:
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


def _costs(name: str, table: Array, base: float) -> tuple[Array, dict[int, Array]]:
    """Coefficients, and (slope, intercept) of piecewise linear costs; power in per unit."""
    found = np.zeros((len(table), 3))
    pieces = {}
    for k, row in enumerate(table):
        count = max(int(row[3]), 0)
        if row[0] == 1:
            pieces[k] = _pieces(name, k, row[4 : 4 + 2 * count], base)
            continue
        given = row[4 : 4 + count]
        if row[0] != 2 or len(given) != count or row[3] < 0 or given[:-3].any():
            raise InputError(
                f"power, {name}: unit {k} has a cost that is no polynomial of degree 2 or less and "
                "not piecewise linear; give coefficients c2, c1, c0 or points"
            )
        found[k, 3 - len(given[-3:]) :] = given[-3:]
    return np.asarray(found * np.array([base * base, base, 1.0])), pieces


def _pieces(name: str, k: int, points: Array, base: float) -> Array:
    """Lines through neighboring points (MW, cost), whose largest is a convex cost."""
    points = points[: len(points) // 2 * 2].reshape(-1, 2)
    width = np.diff(points[:, 0])
    if len(points) < 2 or (width <= 0).any():
        raise InputError(f"power, {name}: unit {k} needs two points of cost or more, MW ascending")
    slope = np.diff(points[:, 1]) / width
    if (np.diff(slope) < -1e-9 * np.abs(slope).max()).any():
        raise InputError(
            f"power, {name}: unit {k} has a cost whose slope falls; only convex costs are possible"
        )
    intercept = points[:-1, 1] - slope * points[:-1, 0]
    return np.stack([slope * base, intercept], axis=1)
