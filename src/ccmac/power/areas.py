"""Buses dealt to areas that hang together, with few lines between them."""

from __future__ import annotations

from typing import Any

import networkx as nx

from ccmac.errors import InputError
from ccmac.power.grid import Grid, Index
from ccmac.texts import shown


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
