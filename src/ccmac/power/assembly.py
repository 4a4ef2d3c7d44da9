"""A grid's problem in the making: entries of x by what they mean, and rows that know their agents.

A row over entries of one agent is that agent's own; any other is coupled. Units cost c2 p^2 + c1 p,
or are above lines (slope, intercept) each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.objectives import Quadratic
from ccmac.power.areas import of_bus
from ccmac.power.grid import Grid
from ccmac.problem import Agent

Key = tuple[str, int, int]  # what, which, hour
Terms = Sequence[tuple[Key, float]]


@dataclass
class Triplets:
    """Sparse rows under construction: entries (row, column, value), right-hand sides, senses."""

    entries: list[tuple[int, int, float]] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    sense: list[str] = field(default_factory=list)

    def add(self, pairs: list[tuple[int, float]], right: float, sense: str = "==") -> int:
        """Append a row and return its number."""
        row = len(self.right)
        self.entries += [(row, column, value) for column, value in pairs]
        self.right.append(right)
        self.sense.append(sense)
        return row

    def matrix(self, columns: int, rows: int | None = None) -> sp.csr_array:
        """The rows as a sparse matrix."""
        shape = (len(self.right) if rows is None else rows, columns)
        row, column, value = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        return sp.csr_array(
            (np.array(value, float), (np.array(row, int), np.array(column, int))), shape=shape
        )


class Assembly:
    """Where everything is: entries ``x`` by key, ``rows`` by key (agent None: coupled)."""

    def __init__(self, grid: Grid, parts: list[list[int]], names: list[str]) -> None:
        self.grid = grid
        self.parts = parts
        self.names = names
        self.area = of_bus(parts)
        self.x: dict[Key, tuple[int, int]] = {}  # agent and its entry
        self.size = [0] * len(parts)
        self.coupled: list[Triplets] = [Triplets() for _ in parts]
        self.local: list[Triplets] = [Triplets() for _ in parts]
        self.right: list[float] = []
        self.sense: list[str] = []
        self.row_names: list[str] = []
        self.keeper: list[int] = []  # of the right-hand side of each coupled row
        self.rows: dict[Key, tuple[int | None, int]] = {}

    def place(self, key: Key, agent: int) -> None:
        """Give the agent's x one more entry, named by its key."""
        self.x[key] = (agent, self.size[agent])
        self.size[agent] += 1

    def row(
        self,
        key: Key,
        name: str,
        terms: Terms,
        right: float,
        sense: str = "==",
        coupled: bool = False,
    ) -> None:
        """A row over entries of x, of the agent that has all of them unless it is ``coupled``.

        A coupled row's right-hand side stays with the agent of the first entry.
        """
        placed = [(*self.x[entry], value) for entry, value in terms]
        agents = {agent for agent, _, _ in placed}
        if len(agents) == 1 and not coupled:
            agent = placed[0][0]
            pairs = [(entry, value) for _, entry, value in placed]
            self.rows[key] = agent, self.local[agent].add(pairs, right, sense)
            return
        row = len(self.right)
        self.rows[key] = None, row
        for agent, entry, value in placed:
            self.coupled[agent].entries.append((row, entry, value))
        self.right.append(right)
        self.sense.append(sense)
        self.row_names.append(name)
        self.keeper.append(placed[0][0])

    def cost_rows(self, t: int = 0) -> None:
        """Rows cost >= slope p + intercept of the units with piecewise linear costs."""
        for k, lines in self.grid.pieces.items():
            for j, (slope, intercept) in enumerate(lines):
                terms = [(("cost", k, t), 1.0), (("p", k, t), -float(slope))]
                self.row((f"cost {j}", k, t), "cost", terms, float(intercept), ">=")

    def bounds(self, key: Key) -> tuple[float, float]:
        """(lower, upper) bound of an entry of x."""
        kind, which, _ = key
        if kind == "p":
            return float(self.grid.p_min[which]), float(self.grid.p_max[which])
        return -np.inf, np.inf

    def price(self, key: Key) -> float:
        """The linear cost of an entry of x."""
        kind, which, _ = key
        return float(self.grid.cost[which, 1]) if kind == "p" else float(kind == "cost")

    def agents(
        self, blocks: Callable[[int], Mapping[str, Any]], price_z: Array | None = None
    ) -> list[Agent]:
        """Everybody's objective, rows and bounds; ``blocks`` gives what else an agent has."""
        on_z = np.zeros(0) if price_z is None else price_z
        m = len(self.right)
        H = [np.zeros(size + len(on_z)) for size in self.size]
        g = [np.append(np.zeros(size), -on_z) for size in self.size]
        ends = [np.zeros((2, size)) for size in self.size]
        for key, (a, entry) in self.x.items():
            ends[a][:, entry] = self.bounds(key)
            g[a][entry] = -self.price(key)
            if key[0] == "p":
                H[a][entry] = 2 * self.grid.cost[key[1], 0]
        b = np.zeros((len(self.parts), m))
        b[self.keeper, np.arange(m)] = self.right
        found = []
        for a, (size, own) in enumerate(zip(self.size, self.local, strict=True)):
            rows: dict[str, Any] = {"name": self.names[a], "A": self.coupled[a].matrix(size, m)}
            if own.right:
                rows |= {"C": own.matrix(size), "c": own.right, "C_sense": own.sense}
            rows |= {"b": b[a], "lower": ends[a][0], "upper": ends[a][1], **blocks(a)}
            found.append(Agent(Quadratic(H[a], g[a]), **rows))
        return found

    def values(self, kind: str, count: int, x: list[Array], hours: int = 1) -> Array:
        """Rows over hours of one kind of entries."""
        found = np.full((hours, count), np.nan)
        for (what, which, t), (agent, entry) in self.x.items():
            if what == kind:
                found[t, which] = x[agent][entry]
        return found

    def prices(self, kind: str, count: int, multipliers: Any, hours: int = 1) -> Array:
        """Minus the multipliers of one kind of rows: what one more on their right side costs."""
        found = np.zeros((hours, count))
        for (what, which, t), (agent, row) in self.rows.items():
            if what == kind:
                own = multipliers.coupled if agent is None else multipliers.local[agent]
                found[t, which] = -own[row]
        return found
