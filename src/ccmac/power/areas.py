"""Buses dealt to areas that hang together, with few lines between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from ccmac.errors import InputError
from ccmac.power.grid import Grid, Index
from ccmac.texts import shown

COLUMNS = {"area": 6, "zone": 10}  # of the bus table


def divided(grid: Grid, areas: Any) -> tuple[list[list[int]], list[str]]:
    """(positions of buses by area, names of the areas) as a user states them."""
    if areas is None:
        return [[k] for k in range(grid.buses)], [f"bus {number}" for number in grid.bus]
    if isinstance(areas, str):
        areas = _by_column(grid, areas)
    if isinstance(areas, Mapping):
        return _listed(grid, list(areas.values())), [str(name) for name in areas]
    if isinstance(areas, Sequence | np.ndarray):
        parts = _listed(grid, list(areas))
    else:
        parts = partition(grid, areas)
    return parts, [f"area {k}" for k in range(len(parts))]


def _by_column(grid: Grid, name: str) -> dict[str, list[int]]:
    """Bus numbers by the entries of a column of the bus table."""
    column = COLUMNS.get(name)
    if column is None or grid.table["bus"].shape[1] <= column:
        raise InputError(f"power: areas = {shown(name)}; give a number, lists of buses, or 'area'")
    found: dict[str, list[int]] = {}
    for number, entry in zip(grid.bus, grid.table["bus"][:, column], strict=True):
        found.setdefault(f"{name} {entry:g}", []).append(int(number))
    return found


def _listed(grid: Grid, groups: list[Any]) -> list[list[int]]:
    """Positions of the buses listed; every bus belongs to one area."""
    place = {int(number): k for k, number in enumerate(grid.bus)}
    listed = [int(number) for group in groups for number in group]
    unknown = [number for number in listed if number not in place]
    if unknown:
        raise InputError(f"power, areas: bus {unknown[0]} is none of {grid.name}'s")
    if len(set(listed)) < len(listed):
        twice = next(number for number in listed if listed.count(number) > 1)
        raise InputError(f"power, areas: bus {twice} is listed twice; it belongs to one area")
    left = sorted(set(place) - set(listed))
    if left or not all(len(group) for group in groups):
        raise InputError(
            f"power, areas: {f'bus {left[0]} is in no area' if left else 'an area is empty'}"
        )
    return [sorted(place[int(number)] for number in group) for group in groups]


def partition(grid: Grid, areas: int) -> list[list[int]]:
    """``areas`` connected sets of buses with few lines between them.

    Sets are merged along lines as long as that raises the modularity most (Clauset, Newman and
    Moore, 2004), so that they hang together.
    """
    graph = grid.graph()
    if type(areas) is not int or not 1 <= areas <= grid.buses:
        raise InputError(
            f"power: areas = {shown(areas)}; give a number from 1 to {grid.buses}, the buses"
        )
    if not nx.is_connected(graph):
        parts = sorted(len(part) for part in nx.connected_components(graph))
        raise InputError(f"power, {grid.name}: falls apart into grids of {parts} buses; join them")
    if areas == grid.buses:
        return [[k] for k in range(grid.buses)]
    found = nx.community.greedy_modularity_communities(graph, cutoff=areas, best_n=areas)
    return sorted(sorted(part) for part in found)


def of_bus(parts: list[list[int]]) -> dict[int, int]:
    """The area of every bus."""
    return {bus: area for area, part in enumerate(parts) for bus in part}


def ties(grid: Grid, parts: list[list[int]]) -> list[int]:
    """Lines between areas."""
    area = of_bus(parts)
    ends: tuple[Index, Index] = grid.line_from, grid.line_to
    return [k for k in range(grid.lines) if area[int(ends[0][k])] != area[int(ends[1][k])]]


def area_graph(grid: Grid, parts: list[list[int]], names: list[str]) -> nx.Graph[Any]:
    """Areas by name, joined where a line is."""
    area = of_bus(parts)
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from(names)
    for k in ties(grid, parts):
        pair = area[int(grid.line_from[k])], area[int(grid.line_to[k])]
        graph.add_edge(names[pair[0]], names[pair[1]])
    return graph
