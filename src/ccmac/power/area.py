"""One area's own part of a DC dispatch: from its own table and the tie lines that all know.

An area sees its own buses, units, costs and lines, and of the others only the far ends of its tie
lines. Coupled rows are named and ordered by the ties alone: the balances of all buses where ties
end, area by area, then the flows of ties that have a rating.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.power.grid import Grid, read_grid
from ccmac.power.model import Ask, Model
from ccmac.power.tables import read_table
from ccmac.problem import Agent
from ccmac.texts import dumps, shown

FIELDS = ("from_area", "from_bus", "to_area", "to_bus", "r", "x", "rating")
Tie = Mapping[str, Any]


class SeenGrid(Grid):
    """What one area sees: nothing says how much can flow, so every rating counts."""

    @property
    def reachable(self) -> float:
        """The most that a line may have to carry: not known to one area."""
        return np.inf


@dataclass(frozen=True)
class Area:
    """An area's agent, and what a result says to it.

    Parameters
    ----------
    agent : Agent
        Its part of the problem.
    names : tuple of str
        All areas, in the order of the agents.
    row_names : tuple of str
        The coupled rows, the same at every area.
    model : Model
        Of what it sees.
    ties : tuple of mapping
        The lines between areas, as given.

    Examples
    --------
    >>> import ccmac
    >>> ties = [{"from_area": "a", "from_bus": 1, "to_area": "b", "to_bus": 2, "r": 0, "x": 0.1,
    ...          "rating": 50}]
    >>> own = {"baseMVA": 100, "bus": [[1, 3, 20, 0, 0, 0]], "branch": [],
    ...        "gen": [[1, 0, 0, 0, 0, 1, 100, 1, 200, 0]], "gencost": [[2, 0, 0, 2, 10, 0]]}
    >>> part = ccmac.power.area(own, ties, "a")
    >>> part.row_names
    ('balance bus 1', 'balance bus 2', 'tie 0 (1-2)')
    """

    agent: Agent
    names: tuple[str, ...]
    row_names: tuple[str, ...]
    model: Model
    ties: tuple[Tie, ...]

    @property
    def position(self) -> int:
        """Its number among the agents."""
        return self.names.index(str(self.agent.name))

    def generation(self, result: Any) -> dict[int, float]:
        """MW by bus of its units."""
        grid = self.model.grid
        found: dict[int, float] = {}
        for k, b in enumerate(grid.unit_bus.tolist()):
            value = grid.base * float(self._own(result)[self.model.x["p", k, 0][1]])
            found[int(grid.bus[b])] = found.get(int(grid.bus[b]), 0.0) + value
        return found

    def prices(self, result: Any) -> dict[int, float]:
        """Price per MWh at its buses."""
        grid = self.model.grid
        local = result.multipliers.local[self._here(result)]
        found = {}
        for b in self.model.parts[0]:
            agent, row = self.model.rows["balance", b, 0]
            name = f"balance bus {grid.bus[b]}"
            coupled = result.multipliers.coupled
            price = coupled[self.row_names.index(name)] if agent is None else local[row]
            found[int(grid.bus[b])] = -float(price) / grid.base
        return found

    def public(self) -> str:
        """The public file of a run between owners; the same whichever area writes it."""
        lines = [f"agents = {len(self.names)}", "q = 0", f"m = {len(self.row_names)}"]
        lines += ['network = "ties.txt"', 'method = "cross-ipm"', "tol = 1e-8"]
        lines += [f"names = {dumps(list(self.names), None)}"]
        return "\n".join([*lines, f"row_names = {dumps(list(self.row_names), None)}"]) + "\n"

    def network(self) -> str:
        """Who talks to whom: the edge list ``ties.txt``."""
        at = {name: k for k, name in enumerate(self.names)}
        pairs = {tuple(sorted((at[t["from_area"]], at[t["to_area"]]))) for t in self.ties}
        return "".join(f"{i} {j}\n" for i, j in sorted(pairs))

    def _here(self, result: Any) -> int:
        return list(result.agents).index(self.position)

    def _own(self, result: Any) -> Array:
        return np.asarray(result.x[self._here(result)])


def area(
    case: Any,
    ties: Sequence[Tie],
    name: str,
    *,
    load: float = 1.0,
    shed: float | None = None,
    convention: str = "matpower",
) -> Area:
    """One area of a DC dispatch, stated by its operator.

    Parameters
    ----------
    case : path or mapping
        Its own buses, units, lines and costs, as :func:`dc_opf` takes them.
    ties : sequence of mapping
        The lines between areas, the same list at all: from_area, from_bus, to_area, to_bus, r, x
        (per unit) and rating (MW; 0: none). Areas are in the order of their first tie.
    name : str
        This area.
    load : float
        A factor of the demand.
    shed : float, optional
        Price per MWh of demand that is not served.
    convention : {"matpower", "powermodels"}
        As in :func:`dc_opf`.

    Returns
    -------
    Area

    Examples
    --------
    >>> import ccmac
    >>> ties = [{"from_area": "a", "from_bus": 1, "to_area": "b", "to_bus": 2, "r": 0, "x": 0.1,
    ...          "rating": 50}]
    >>> def table(bus, demand, price):
    ...     return {"baseMVA": 100, "bus": [[bus, 3 if bus == 1 else 2, demand, 0, 0, 0]],
    ...             "gen": [[bus, 0, 0, 0, 0, 1, 100, 1, 200, 0]], "branch": [],
    ...             "gencost": [[2, 0, 0, 2, price, 0]]}
    >>> a = ccmac.power.area(table(1, 20, 10), ties, "a")
    >>> b = ccmac.power.area(table(2, 60, 30), ties, "b")
    >>> result = ccmac.solve(ccmac.Problem([a.agent, b.agent], row_names=a.row_names), tol=1e-8)
    >>> {bus: round(mw, 3) for bus, mw in {**a.generation(result), **b.generation(result)}.items()}
    {1: 70.0, 2: 10.0}
    """
    for k, tie in enumerate(ties):
        lacking = [field for field in FIELDS if field not in tie]
        if lacking:
            raise InputError(f"power, area {name}: tie {k} lacks {lacking[0]}; give {FIELDS}")
    names = tuple(dict.fromkeys(t[end] for t in ties for end in ("from_area", "to_area")))
    if name not in names:
        raise InputError(f"power, area {shown(name)}: has no tie; areas are {', '.join(names)}")
    grid, far = _seen(case, ties, name, convention)
    others = [other for other in names if far.get(other)]
    place = {int(number): k for k, number in enumerate(grid.bus)}
    abroad = {bus for buses in far.values() for bus in buses}
    own = [k for k, number in enumerate(grid.bus.tolist()) if number not in abroad]
    parts = [own, *([place[bus] for bus in far[other]] for other in others)]
    ask = Ask(np.full((1, 1), float(load)), shed=shed)
    model = Model(grid, parts, [name, *others], ask)
    rows = _row_names(ties, names)
    return Area(_agent(model, name, rows, ties), names, rows, model, tuple(ties))


def _seen(
    case: Any, ties: Sequence[Tie], name: str, convention: str
) -> tuple[Grid, dict[str, list[int]]]:
    """The area's own grid with its ties, and their far ends by area."""
    _, table = read_table(case)
    mine = [t for t in ties if name in (t["from_area"], t["to_area"])]
    far: dict[str, list[int]] = {}
    for t in mine:
        end = "to" if t["from_area"] == name else "from"
        seen = far.setdefault(t[f"{end}_area"], [])
        if int(t[f"{end}_bus"]) not in seen:
            seen.append(int(t[f"{end}_bus"]))
    bus = np.asarray(table["bus"], dtype=float)
    own = set(bus[:, 0].astype(int).tolist())
    taken = [b for buses in far.values() for b in buses if b in own]
    if taken:
        raise InputError(
            f"power, area {name}: bus {taken[0]} is its own and another's; number buses apart"
        )
    beyond = np.zeros((sum(map(len, far.values())), bus.shape[1]))
    beyond[:, 0] = [b for buses in far.values() for b in buses]
    beyond[:, 1] = 1.0
    lines = [
        [t["from_bus"], t["to_bus"], t["r"], t["x"], 0, t["rating"], 0, 0, 0, 0, 1] for t in mine
    ]
    inner = np.atleast_2d(np.asarray(table["branch"], dtype=float))
    inner = inner if inner.size else np.zeros((0, 11))
    branch = np.zeros((len(inner) + len(lines), inner.shape[1]))
    branch[: len(inner)] = inner
    branch[len(inner) :, :11] = lines
    merged = {**table, "bus": np.vstack([bus, beyond]), "branch": branch}
    grid = read_grid(merged, convention)
    given = {field: getattr(grid, field) for field in grid.__dataclass_fields__}
    given["reference"] = grid.reference if (bus[:, 1] == 3).any() else -1
    return replace(SeenGrid(**given), name=name), far


def _row_names(ties: Sequence[Tie], names: Sequence[str]) -> tuple[str, ...]:
    """Balances of border buses by area, then rated ties."""
    border: dict[str, set[int]] = {name: set() for name in names}
    for t in ties:
        border[t["from_area"]].add(int(t["from_bus"]))
        border[t["to_area"]].add(int(t["to_bus"]))
    rows = [f"balance bus {bus}" for name in names for bus in sorted(border[name])]
    return (*rows, *(_tie_name(k, t) for k, t in enumerate(ties) if t["rating"]))


def _tie_name(k: int, tie: Tie) -> str:
    return f"tie {k} ({tie['from_bus']}-{tie['to_bus']})"


def _agent(model: Model, name: str, rows: Sequence[str], ties: Sequence[Tie]) -> Agent:
    """The area's agent, its coupled rows where all have them."""
    numbers = [k for k, t in enumerate(ties) if name in (t["from_area"], t["to_area"])]
    first = model.grid.lines - len(numbers)
    place = {row: k for k, row in enumerate(rows)}
    at = []
    for key, (agent, row) in model.rows.items():
        if agent is None:
            kind, which, _ = key
            tie = numbers[which - first] if kind == "line" else 0
            known = _tie_name(tie, ties[tie]) if kind == "line" else model.row_names[row]
            at.append((place[known], row))
    here, there = np.array(at).T if at else np.zeros((2, 0), dtype=int)
    move = sp.csr_array((np.ones(len(here)), (here, there)), shape=(len(rows), len(model.right)))
    whole = model.problem.agents[0]
    return replace(whole, A=sp.csr_array(move @ whole.A), b=move @ whole.b, name=name)
