"""A dispatch as a problem of agents, each with one bus or an area of buses.

Over hours t, with units g, buses b and lines l (powers in per unit):

    min   sum_g,t c2 p^2 + c1 p + price z_t + price of shedding shed_b,t
    s.t.  sum p + discharge - charge + shed - (flows out) = demand     at every bus
          f_l = b_l (theta_i - theta_j - shift_l) between its limits    on lines that have some
          sum_g (p_max - p) >= z_t >= reserve demand_t                  the shared reserve
          |p_t+1 - p_t| <= ramp,   e_t+1 = e_t + eta charge - discharge / eta
          cost_g >= slope p_g + intercept                              piecewise linear costs

The entries of x are theta_i times a quarter of the sum of |b_l| at bus i: coefficients are at most
4, so that balances in per unit are met to some 10 times the tolerance, whatever the lines.

Balances of buses whose lines stay inside the area, flows inside it, ramps and storage are the
area's own rows; the rest is coupled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.power.assembly import Assembly, Key
from ccmac.power.grid import Grid
from ccmac.problem import Problem

EFFICIENCY = 0.9  # of charging, and of discharging


@dataclass(frozen=True)
class Storage:
    """At the bus in position ``bus``: largest power and energy, stored at first and in the end."""

    bus: int
    power: float
    energy: float
    stored: float
    final: float


@dataclass(frozen=True)
class Ask:
    """What is asked in addition to the grid; powers in per unit.

    ``load`` has a row of factors of the demand for every hour: one, or one for each bus. ``ramp``
    is by unit, a share of its capacity. ``before`` are the outputs in the hour before the first,
    from which ramps count. ``shed`` is the price of demand that is not served, if that may be.
    """

    load: Array
    reserve: float = 0.0
    ramp: Array | None = None
    storage: tuple[Storage, ...] = ()
    shed: float | None = None
    before: Array | None = None

    @property
    def hours(self) -> int:
        """Number of hours."""
        return len(self.load)


class Model(Assembly):
    """A DC dispatch as a problem of agents, and where everything is in it."""

    def __init__(self, grid: Grid, parts: list[list[int]], names: list[str], ask: Ask) -> None:
        super().__init__(grid, parts, names)
        self.ask = ask
        least, most = grid.flow_limits
        bound = np.minimum(-least, most) < grid.reachable
        self.limited = np.flatnonzero(bound & (grid.susceptance != 0)).tolist()
        self.demand = ask.load * grid.demand  # per unit, by hours and buses
        self._place()
        for t in range(ask.hours):
            self._balances(t)
            self._flows(t)
            self._reserve(t)
            self.cost_rows(t)
        self._ramps()
        self._storage()
        self.problem = self._problem()

    # -- entries of x ------------------------------------------------------------------------------
    def _place(self) -> None:
        grid = self.grid
        ask = self.ask
        owners = [("p", k, int(b)) for k, b in enumerate(grid.unit_bus)]
        owners += [("theta", b, b) for b in range(grid.buses)]
        owners += [("f", k, int(grid.line_from[k])) for k in self.limited]
        owners += [("cost", k, int(grid.unit_bus[k])) for k in grid.pieces]
        if ask.shed is not None:
            owners += [("shed", int(b), int(b)) for b in np.flatnonzero(grid.demand > 0)]
        for k, store in enumerate(ask.storage):
            owners += [(kind, k, store.bus) for kind in ("charge", "discharge", "energy")]
        for t in range(ask.hours):
            for kind, which, bus in owners:
                self.place((kind, which, t), self.area[bus])

    # -- rows --------------------------------------------------------------------------------------
    def _at(self, t: int) -> str:
        return f" hour {t}" if self.ask.hours > 1 else ""

    def _balances(self, t: int) -> None:
        grid = self.grid
        stiff = self.grid.stiffness
        terms: list[dict[Key, float]] = [{} for _ in range(grid.buses)]
        right = self.demand[t].copy()
        for k, b in enumerate(grid.unit_bus):
            terms[b]["p", k, t] = 1.0
        for k, store in enumerate(self.ask.storage):
            terms[store.bus]["discharge", k, t], terms[store.bus]["charge", k, t] = 1.0, -1.0
        for b in range(grid.buses):
            if ("shed", b, t) in self.x:
                terms[b]["shed", b, t] = 1.0
        for k in range(grid.lines):
            i = int(grid.line_from[k])
            j = int(grid.line_to[k])
            b = float(grid.susceptance[k])
            for bus, sign in ((i, -1.0), (j, 1.0)):
                for end, way in ((i, 1.0), (j, -1.0)):
                    key = ("theta", end, t)
                    terms[bus][key] = terms[bus].get(key, 0.0) + sign * way * b / stiff[end]
                right[bus] += sign * b * float(grid.shift[k])
        for bus in range(grid.buses):
            name = f"balance bus {grid.bus[bus]}{self._at(t)}"
            found = [*terms[bus].items()]
            found.sort(key=lambda pair: self.x[pair[0]][0] != self.area[bus])  # own entries first
            self.row(("balance", bus, t), name, found, float(right[bus]))

    def _flows(self, t: int) -> None:
        grid = self.grid
        stiff = self.grid.stiffness
        for k in self.limited:
            i = int(grid.line_from[k])
            j = int(grid.line_to[k])
            b = float(grid.susceptance[k])
            terms = [
                (("f", k, t), 1.0),
                (("theta", i, t), -b / stiff[i]),
                (("theta", j, t), b / stiff[j]),
            ]
            name = f"{grid.line_name(k)}{self._at(t)}"
            self.row(("line", k, t), name, terms, -b * float(grid.shift[k]))

    def _reserve(self, t: int) -> None:
        if not self.ask.reserve:
            return
        terms = [(("p", k, t), 1.0) for k in range(len(self.grid.p_max))]
        most = float(self.grid.p_max.sum())
        self.row(("reserve", 0, t), f"reserve{self._at(t)}", terms, most, "<=", coupled=True)

    def _ramps(self) -> None:
        ask = self.ask
        grid = self.grid
        if ask.ramp is None:
            return
        for k, top in enumerate(grid.p_max):
            room = float(ask.ramp[k] * top)
            for t in range(ask.hours):
                terms = [(("p", k, t), 1.0)]
                most = 0.0
                least = 0.0
                if t:
                    terms.append((("p", k, t - 1), -1.0))
                elif ask.before is not None:
                    most = least = float(ask.before[k])
                else:  # any output is possible; the rows are there for a window that rolls on
                    most = float(top)
                    least = float(grid.p_min[k])
                self.row(("rise", k, t), "ramp", terms, most + room, "<=")
                self.row(("fall", k, t), "ramp", terms, least - room, ">=")

    def _storage(self) -> None:
        for k, store in enumerate(self.ask.storage):
            for t in range(self.ask.hours):
                terms = [
                    (("energy", k, t), 1.0),
                    (("charge", k, t), -EFFICIENCY),
                    (("discharge", k, t), 1.0 / EFFICIENCY),
                ]
                if t:
                    terms.append((("energy", k, t - 1), -1.0))
                self.row(("storage", k, t), "storage", terms, 0.0 if t else store.stored)

    # -- the problem -------------------------------------------------------------------------------
    def _problem(self) -> Problem:
        ask = self.ask
        q = ask.hours if ask.reserve else 0
        m = len(self.right)
        # reserve costs 1 per MW and hour
        price = np.full(q, self.grid.base / len(self.parts))
        required = ask.reserve * self.demand.sum(axis=1)
        return Problem(
            self.agents(lambda a: {"B": self._shared(a, m, q)}, price),
            q=q,
            m=m,
            sense=self.sense or None,
            row_names=self.row_names,
            z_lower=required if q else None,
            z_names=[f"reserve{self._at(t)}" for t in range(ask.hours)] if q else None,
        )

    def price(self, key: Key) -> float:
        """The linear cost of an entry of x."""
        shed = float(self.ask.shed or 0.0) * self.grid.base
        return shed if key[0] == "shed" else super().price(key)

    def bounds(self, key: Key) -> tuple[float, float]:
        """(lower, upper) bound of an entry of x."""
        kind, which, t = key
        if kind == "f":
            least, most = self.grid.flow_limits
            return float(least[which]), float(most[which])
        if kind == "shed":
            return 0.0, float(self.demand[t, which])
        if kind == "theta":
            return (0.0, 0.0) if which == self.grid.reference else (-np.inf, np.inf)
        if kind not in ("energy", "charge", "discharge"):
            return super().bounds(key)
        store = self.ask.storage[which]
        if kind == "energy":
            last = t == self.ask.hours - 1
            return (store.final if last else 0.0), store.energy
        return 0.0, store.power

    def _shared(self, agent: int, m: int, q: int) -> Any:
        """The reserve's column: with the agent that has the row's right-hand side."""
        rows = [(r, t) for (kind, _, t), (_, r) in self.rows.items() if kind == "reserve"]
        mine = [(r, t) for r, t in rows if self.keeper[r] == agent]
        if not q:
            return None
        row = [r for r, _ in mine]
        column = [t for _, t in mine]
        return sp.csr_array((np.ones(len(mine)), (row, column)), shape=(m, q))
