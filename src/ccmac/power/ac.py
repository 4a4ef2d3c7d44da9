"""AC optimal power flow by areas, relaxed to second-order cones (Jabr, 2006).

With w_i = |V_i|^2 at every bus and W_ij = V_i conj(V_j) = wr + j wi for every pair of joined buses,
flows are linear:

    S_ij = conj(Y_ff) w_i + conj(Y_ft) W_ij,      S_ji = conj(Y_tt) w_j + conj(Y_tf) conj(W_ij)

    min   sum_g c2 p^2 + c1 p + c0
    s.t.  sum p - P_d - g_s w_i = sum of P out,  sum q - Q_d + b_s w_i = sum of Q out   at every bus
          v_min^2 <= w_i <= v_max^2,  |S| <= rating at both ends,  limits of angles and units
          |W_ij|^2 <= w_i w_j,  that is  ||(2 wr, 2 wi, w_i - w_j)|| <= w_i + w_j

Equality in the last line is the AC problem: the cost is a lower bound on its cost. A pair belongs
to the area of its first bus; for a tie line that area keeps a copy of w at the far bus. Coupled are
the balances of far buses and the copies: at most three rows a tie line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmac import cones
from ccmac.errors import InputError
from ccmac.inputs import Array, number
from ccmac.network import Network
from ccmac.power.areas import area_graph, divided, ties
from ccmac.power.assembly import Assembly, Key, Triplets
from ccmac.power.grid import Grid, read_grid
from ccmac.problem import Problem
from ccmac.texts import shown

COLUMNS = 13  # of the bus table: voltages and reactive demand too
Linear = dict[Key, float]


class AcModel(Assembly):
    """The problem of the module text, and where everything is in it; powers per unit."""

    def __init__(
        self, grid: Grid, parts: list[list[int]], names: list[str], load: float = 1.0
    ) -> None:
        super().__init__(grid, parts, names)
        bus = grid.table["bus"]
        if bus.shape[1] < COLUMNS:
            raise InputError(
                f"power, {grid.name}, bus: has {bus.shape[1]} columns; AC needs {COLUMNS}, with "
                "limits of voltages"
            )
        self.load = load
        self.cones: list[Triplets] = [Triplets() for _ in parts]
        self.kinds: list[list[int]] = [[] for _ in parts]  # sizes of the cones
        self.pairs: dict[tuple[int, int], int] = {}
        for i, j in zip(grid.line_from.tolist(), grid.line_to.tolist(), strict=True):
            if (j, i) not in self.pairs:
                self.pairs.setdefault((i, j), len(self.pairs))
        self._place()
        self.flows = [self._flow(k) for k in range(grid.lines)]  # by line (P_f, Q_f, P_t, Q_t)
        self._copies()
        self._balances()
        self._limits()
        self.cost_rows()
        self.problem = self._problem()

    # -- entries of x ------------------------------------------------------------------------------
    def _place(self) -> None:
        grid = self.grid
        for k, b in enumerate(grid.unit_bus.tolist()):
            self.place(("p", k, 0), self.area[b])
            self.place(("q", k, 0), self.area[b])
        for k in grid.pieces:
            self.place(("cost", k, 0), self.area[int(grid.unit_bus[k])])
        for b in range(grid.buses):
            self.place(("w", b, 0), self.area[b])
        for (i, j), pair in self.pairs.items():
            owner = self.area[i]
            self.place(("wr", pair, 0), owner)
            self.place(("wi", pair, 0), owner)
            if self.area[j] != owner and ("copy", j, owner) not in self.x:
                self.place(("copy", j, owner), owner)

    def _w(self, bus: int, agent: int) -> Key:
        """The entry that this agent has for w at a bus."""
        return ("w", bus, 0) if self.area[bus] == agent else ("copy", bus, agent)

    def _pair(self, k: int) -> tuple[int, float]:
        """The pair of a line, and the sign that wi has from its own side."""
        ends = int(self.grid.line_from[k]), int(self.grid.line_to[k])
        return (self.pairs[ends], 1.0) if ends in self.pairs else (self.pairs[ends[::-1]], -1.0)

    def _owner(self, pair: int) -> int:
        return self.x["wr", pair, 0][0]

    def _flow(self, k: int) -> tuple[Linear, Linear, Linear, Linear]:
        """P and Q into the line at its first end, then at its second (the module text)."""
        grid = self.grid
        r, x, charging, tap, shift = grid.table["branch"][k, [2, 3, 4, 8, 9]]
        y = 1.0 / complex(r, x)
        ratio = (tap or 1.0) * np.exp(1j * np.deg2rad(shift))
        at_first = np.conj((y + 0.5j * charging) / abs(ratio) ** 2)
        at_second = np.conj(y + 0.5j * charging)
        there = np.conj(-y / np.conj(ratio))
        back = np.conj(-y / ratio)
        pair, sign = self._pair(k)
        wr, wi = ("wr", pair, 0), ("wi", pair, 0)
        i, j = (self._w(int(b), self._owner(pair)) for b in (grid.line_from[k], grid.line_to[k]))
        return (
            {i: at_first.real, wr: there.real, wi: -sign * there.imag},
            {i: at_first.imag, wr: there.imag, wi: sign * there.real},
            {j: at_second.real, wr: back.real, wi: sign * back.imag},
            {j: at_second.imag, wr: back.imag, wi: -sign * back.real},
        )

    # -- rows --------------------------------------------------------------------------------------
    def _copies(self) -> None:
        for key in [key for key in self.x if key[0] == "copy"]:
            _, b, agent = key
            name = f"voltage bus {self.grid.bus[b]} in {self.names[agent]}"
            self.row(("same", b, agent), name, [(key, 1.0), (("w", b, 0), -1.0)], 0.0)

    def _balances(self) -> None:
        grid = self.grid
        bus = grid.table["bus"]
        active: list[Linear] = [{("w", b, 0): -bus[b, 4] / grid.base} for b in range(grid.buses)]
        reactive: list[Linear] = [{("w", b, 0): bus[b, 5] / grid.base} for b in range(grid.buses)]
        for k, b in enumerate(grid.unit_bus.tolist()):
            active[b]["p", k, 0] = 1.0
            reactive[b]["q", k, 0] = 1.0
        for k, flow in enumerate(self.flows):
            for end, (p, q) in ((grid.line_from[k], flow[:2]), (grid.line_to[k], flow[2:])):
                _less(active[end], p)
                _less(reactive[end], q)
        for b in range(grid.buses):
            for kind, terms, column in (("balance", active, 2), ("reactive", reactive, 3)):
                demand = self.load * float(bus[b, column]) / grid.base
                self.row((kind, b, 0), f"{kind} bus {grid.bus[b]}", [*terms[b].items()], demand)

    def _limits(self) -> None:
        """Ratings, angles, and the cones of pairs."""
        grid = self.grid
        for k, flow in enumerate(self.flows):
            pair, sign = self._pair(k)
            for p, q in (flow[:2], flow[2:]):
                if grid.rating[k] < self._most(p, q):
                    self._cone(self._owner(pair), [{}, p, q], float(grid.rating[k]))
            for limit, side in zip(grid.spread[k], (-1.0, 1.0), strict=True):
                if abs(limit) < 0.5 * np.pi:
                    terms = [
                        (("wi", pair, 0), side * sign),
                        (("wr", pair, 0), -side * np.tan(limit)),
                    ]
                    self.row((f"angle {side}", k, 0), "angle", terms, 0.0, "<=")
        for (i, j), pair in self.pairs.items():
            owner = self._owner(pair)
            w = self._w(j, owner)
            wr, wi = ("wr", pair, 0), ("wi", pair, 0)
            both: Linear = {("w", i, 0): 1.0, w: 1.0}
            apart: Linear = {("w", i, 0): 1.0, w: -1.0}
            self._cone(owner, [both, {wr: 2.0}, {wi: 2.0}, apart])

    def _most(self, p: Linear, q: Linear) -> float:
        """No voltages within their limits let more through: |Y| v_max^2 + |Y'| v_max v_max'."""
        size = {key: float(np.hypot(p[key], q[key])) for key in p}
        [(w, own)] = [(key, value) for key, value in size.items() if key[0] in ("w", "copy")]
        across = max(value for key, value in size.items() if key != w)
        top = float(self.grid.table["bus"][:, 11].max()) ** 2
        return (own + across) * top

    def _cone(self, agent: int, rows: list[Linear], first: float = 0.0) -> None:
        """(rows of x plus ``first`` in the first) lies in a second-order cone."""
        for k, terms in enumerate(rows):
            pairs = [(self.x[key][1], -value) for key, value in terms.items()]
            self.cones[agent].add(pairs, first if k == 0 else 0.0)
        self.kinds[agent].append(len(rows))

    # -- the problem -------------------------------------------------------------------------------
    def _problem(self) -> Problem:
        agents = self.agents(self._cones_of)
        return Problem(agents, q=0, m=len(self.right), row_names=self.row_names)

    def _cones_of(self, a: int) -> dict[str, Any]:
        if not self.kinds[a]:
            return {}
        kinds = [cones.SecondOrder(k) for k in self.kinds[a]]
        rows = self.cones[a]
        return {"G": rows.matrix(self.size[a]), "h": rows.right, "cones": kinds}

    def bounds(self, key: Key) -> tuple[float, float]:
        """Of an entry of x; a copy has none: its multiplier is the price of w there."""
        kind, which, _ = key
        if kind == "q":
            most, least = self.grid.table["gen"][which, 3:5] / self.grid.base
            return float(least), float(most)
        if kind == "w":
            most, least = self.grid.table["bus"][which, 11:13] ** 2
            return float(least), float(most)
        return super().bounds(key)


def _less(terms: Linear, other: Linear) -> None:
    """Take the other terms away."""
    for key, value in other.items():
        terms[key] = terms.get(key, 0.0) - value


@dataclass(frozen=True)
class AcDispatch:
    """An AC case: its ``problem`` and ``network``, and what a result says of the grid.

    Parameters
    ----------
    grid : Grid
        Buses, lines and units.
    model : AcModel
        The agents' problem.
    network : Network
        Which areas talk to each other.

    Examples
    --------
    >>> import ccmac
    >>> case = ccmac.power.ac_opf("case30", areas=3)
    >>> result = ccmac.solve(case.problem, case.network, tol=1e-8)
    >>> result.status, round(case.cost(result), 2)
    ('optimal', 573.58)
    """

    grid: Grid
    model: AcModel
    network: Network

    @property
    def problem(self) -> Problem:
        """Agents are areas, or buses."""
        return self.model.problem

    def cost(self, result: Any) -> float:
        """Cost of generation an hour."""
        return self.grid.cost_of(self._found("p", len(self.grid.p_max), result)[None])

    def lower_bound(self, result: Any) -> float:
        """No AC dispatch within the result's radius costs less: the cost less the proved gap."""
        if result.status != "optimal":
            raise InputError(f"power: the run ended {result.status}; it bounds no cost")
        return self.cost(result) - float(result.certificates["gap"])

    def generation(self, result: Any) -> Array:
        """Active output of the units in MW."""
        return self.grid.base * self._found("p", len(self.grid.p_max), result)

    def reactive(self, result: Any) -> Array:
        """Reactive output of the units in MVAr."""
        return self.grid.base * self._found("q", len(self.grid.p_max), result)

    def voltages(self, result: Any) -> Array:
        """Magnitudes at the buses, per unit."""
        return np.sqrt(np.maximum(self._found("w", self.grid.buses, result), 0.0))

    def flows(self, result: Any) -> Array:
        """MVA by lines: what enters at the first end, and what enters at the second (complex)."""
        found = np.zeros((self.grid.lines, 4))
        for k, flow in enumerate(self.model.flows):
            for j, terms in enumerate(flow):
                places = [(*self.model.x[key], value) for key, value in terms.items()]
                found[k, j] = sum(value * result.x[a][entry] for a, entry, value in places)
        return np.asarray(self.grid.base * (found[:, ::2] + 1j * found[:, 1::2]))

    def prices(self, result: Any) -> Array:
        """Locational prices per MWh by buses: what one MWh more of demand there costs."""
        found = self.model.prices("balance", self.grid.buses, result.multipliers)[0]
        return np.asarray(found / self.grid.base)

    def ties(self, result: Any) -> list[tuple[str, float, float, float]]:
        """Lines between areas: name, MW from the first bus, and the price at either end."""
        price = self.prices(result)
        flow = self.flows(result)[:, 0].real
        grid = self.grid
        at_first = price[grid.line_from]
        at_second = price[grid.line_to]
        return [
            (grid.line_name(k), float(flow[k]), float(at_first[k]), float(at_second[k]))
            for k in ties(grid, self.model.parts)
        ]

    def slack(self, result: Any) -> Array:
        """How far each line is from exact: 1 - |W|^2 / (w_i w_j); 0 is a power flow."""
        w = self._found("w", self.grid.buses, result)
        count = len(self.model.pairs)
        square = self._found("wr", count, result) ** 2 + self._found("wi", count, result) ** 2
        at = [self.model._pair(k)[0] for k in range(self.grid.lines)]
        return np.asarray(1.0 - square[at] / (w[self.grid.line_from] * w[self.grid.line_to]))

    def _found(self, kind: str, count: int, result: Any) -> Array:
        return np.asarray(self.model.values(kind, count, result.x)[0])


def ac_opf(
    case: Any = "case118",
    areas: int | str | Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None = None,
    *,
    relaxation: str = "soc",
    load: float = 1.0,
) -> AcDispatch:
    """An AC optimal power flow by areas, relaxed: a lower bound on the cost of every dispatch.

    Parameters
    ----------
    case, areas
        As in :func:`dc_opf`.
    relaxation : {"soc"}
        Second-order cones.
    load : float
        A factor of the demand.

    Returns
    -------
    AcDispatch

    Examples
    --------
    >>> import ccmac
    >>> case = ccmac.power.ac_opf("case30", areas=3)
    >>> case.problem.n, case.problem.m
    (3, 18)
    """
    if relaxation != "soc":
        raise InputError(
            f"power, ac_opf: relaxation {shown(relaxation)}; take 'soc', the AC equations "
            "themselves are not convex"
        )
    grid = read_grid(case, "powermodels")
    parts, names = divided(grid, areas)
    network = Network.from_graph(area_graph(grid, parts, names), nodes=names, name=grid.name)
    return AcDispatch(grid, AcModel(grid, parts, names, number("power, load", load)), network)
