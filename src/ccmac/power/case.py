"""``dc_opf``: a grid dispatched by its buses or areas; cost, prices and flows of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, number, of_kind, positive, real_matrix, real_vector, whole
from ccmac.network import Network
from ccmac.power.areas import area_graph, divided
from ccmac.power.grid import Grid, read_grid
from ccmac.power.model import Ask, Model, Storage
from ccmac.problem import Problem
from ccmac.texts import shown

HOURS = """
    0.67 0.63 0.60 0.59 0.59 0.60 0.74 0.86 0.95 0.96 0.96 0.95
    0.95 0.95 0.93 0.94 0.99 1.00 1.00 0.96 0.91 0.83 0.73 0.63
"""
DAY = np.array([float(hour) for hour in HOURS.split()])
"""Demand by hours of a winter weekday over its peak (IEEE Reliability Test System)."""
LONGEST = 8784  # hours of a leap year


@dataclass(frozen=True)
class Dispatch:
    """A case: its ``problem`` and ``network``, and what a result says of the grid.

    Parameters
    ----------
    grid : Grid
        Buses, lines and units.
    model : Model
        The agents' problem, and what was asked.
    network : Network
        Which agents talk to each other.

    Examples
    --------
    >>> import ccmac
    >>> case = ccmac.power.dc_opf("case30", areas=4)
    >>> result = ccmac.solve(case.problem, case.network, tol=1e-8)
    >>> case.prices(result).shape, round(case.cost(result), 2)
    ((1, 30), 565.21)
    """

    grid: Grid
    model: Model
    network: Network

    @property
    def problem(self) -> Problem:
        """Agents are buses or areas."""
        return self.model.problem

    def plot(self, result: Any, ax: Any = None) -> Any:
        """Draw the grid with its prices and full lines, and the hours; returns the axes."""
        from ccmac.power.plot import draw

        return draw(self, result, ax)

    def cost(self, result: Any) -> float:
        """What generation and demand not served cost over all hours, without reserve."""
        self._dispatched(result)
        total = self.grid.cost_of(self.generation(result) / self.grid.base)
        return total + float(self.model.ask.shed or 0.0) * float(self.shed(result).sum())

    def generation(self, result: Any) -> Array:
        """Output of the units in MW, by hours and units."""
        return self.grid.base * self._values("p", len(self.grid.p_max), result)

    def angles(self, result: Any) -> Array:
        """Voltage angles in radians, by hours and buses."""
        found = self._values("theta", self.grid.buses, result)
        return np.asarray(found / self.grid.stiffness)

    def flows(self, result: Any) -> Array:
        """MW by hours and lines, from their first bus to their second."""
        grid = self.grid
        theta = self.angles(result)
        apart = theta[:, grid.line_from] - theta[:, grid.line_to] - grid.shift
        return np.asarray(grid.base * grid.susceptance * apart)

    def stored(self, result: Any) -> Array:
        """Stored energy in MWh, by hours and stores."""
        return self.grid.base * self._values("energy", len(self.model.ask.storage), result)

    def shed(self, result: Any) -> Array:
        """MW of demand that is not served, by hours and buses."""
        return self.grid.base * np.nan_to_num(
            self._values("shed", self.grid.buses, result), nan=0.0
        )

    def reserve(self, result: Any) -> Array:
        """MW by hours (nothing where none was asked for)."""
        return self.grid.base * np.asarray(result.z)

    def prices(self, result: Any) -> Array:
        """Locational prices per MWh by hours and buses: what one MWh more of demand there costs."""
        self._dispatched(result)
        hours = self.model.ask.hours
        found = self.model.prices("balance", self.grid.buses, result.multipliers, hours)
        return np.asarray(found / self.grid.base)

    def _values(self, kind: str, count: int, result: Any) -> Array:
        """Rows over hours of one kind of entries."""
        return self.model.values(kind, count, result.x, self.model.ask.hours)

    def imbalance(self, result: Any) -> float:
        """Largest mismatch at a bus, in per unit."""
        grid = self.grid
        ask = self.model.ask
        net = self.shed(result) / grid.base - self.model.demand
        np.add.at(net.T, grid.unit_bus, self.generation(result).T / grid.base)
        for k, store in enumerate(ask.storage):
            for kind, sign in (("discharge", 1.0), ("charge", -1.0)):
                net[:, store.bus] += sign * self._values(kind, len(ask.storage), result)[:, k]
        flow = self.flows(result).T / grid.base
        np.add.at(net.T, grid.line_from, -flow)
        np.add.at(net.T, grid.line_to, flow)
        return float(np.abs(net).max())

    def overload(self, result: Any) -> float:
        """Largest excess over a rating or a unit's limits, in per unit."""
        grid = self.grid
        p = self.generation(result) / grid.base
        flow = self.flows(result) / grid.base
        least, most = grid.flow_limits
        beyond = [flow - most, least - flow, p - grid.p_max, grid.p_min - p]
        return max(0.0, *(float(v.max()) for v in beyond))

    def explain(self, result: Any) -> str:
        """Why no dispatch serves the demand, in MW: capacity that lacks, or lines that limit."""
        grid = self.grid
        if result.status != "infeasible":
            return f"{grid.name}: the run ended {result.status}; there is nothing to explain"
        demand = grid.base * self.model.demand.sum(axis=1)
        stores = grid.base * sum(store.power for store in self.model.ask.storage)
        t = int(np.argmax(demand))
        hour = f" in hour {t}" if len(demand) > 1 else ""
        most = grid.base * float(grid.p_max.sum()) + stores
        least = grid.base * float(grid.p_min.sum()) - stores
        if demand[t] > most:
            return f"{grid.name}: demand {demand[t]:,.0f} MW{hour}, capacity {most:,.0f}"
        if demand.min() < least:
            return (
                f"{grid.name}: demand {demand.min():,.0f} MW, the units give at least {least:,.0f}"
            )
        full = self._limiting(result)
        if full:
            return f"{grid.name}: units suffice, these lines do not: {', '.join(full)}"
        return f"{grid.name}: units suffice, lines or ramps do not; {result.message}"

    def _limiting(self, result: Any) -> list[str]:
        """The lines whose limits carry the certificate, largest first, with their limits."""
        grid = self.grid
        weight: dict[int, float] = {}
        for (kind, k, _), (agent, entry) in self.model.x.items():
            if kind == "f" and agent in result.infeasibility.bounds:
                used = abs(float(result.infeasibility.bounds[agent][entry]))
                weight[k] = max(weight.get(k, 0.0), used)
        largest = max(weight.values(), default=0.0)
        carrying = [k for k in weight if weight[k] > max(1e-3 * largest, 0.0)]
        carrying.sort(key=lambda k: -weight[k])
        most = grid.base * grid.flow_limits[1]
        return [f"{grid.line_name(k)} with {most[k]:.4g} MW" for k in carrying[:8]]

    def _dispatched(self, result: Any) -> None:
        """Refuse costs and prices of a run that ended without a dispatch."""
        if result.status in ("infeasible", "unbounded"):
            raise InputError(f"power: no dispatch to price; {self.explain(result)}")

    def tightened(self, result: Any, factor: float, share: float = 0.25) -> Array:
        """Ratings in MW: ``factor`` times the flow on the ``share`` of lines with the largest."""
        flow = np.abs(self.flows(result)).max(axis=0)
        ratings = self.grid.base * self.grid.rating
        loaded = np.argsort(-flow)[: round(share * len(flow))]
        ratings[loaded] = factor * flow[loaded]
        return ratings

    def after(self, result: Any, hours: int) -> Ask:
        """The settings ``hours`` later: outputs and stored energy as the result leaves them."""
        ask = self.model.ask
        last = hours - 1
        stored = self.stored(result)[last] / self.grid.base
        kept = tuple(replace(s, stored=float(e)) for s, e in zip(ask.storage, stored, strict=True))
        p = self.generation(result)[last] / self.grid.base
        return replace(ask, load=np.roll(ask.load, -hours, axis=0), storage=kept, before=p)


def dc_opf(
    case: Any = "case118",
    areas: int | str | Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None = None,
    *,
    hours: int = 1,
    reserve: float = 0.0,
    ratings: Any = None,
    ramp: Any = None,
    storage: Mapping[int, tuple[float, float]] | None = None,
    load: Any = 1.0,
    shed: float | None = None,
    convention: str = "matpower",
) -> Dispatch:
    """A DC optimal power flow, by areas or by buses, on the grid itself.

    Parameters
    ----------
    case : str, path, mapping or pandapower net
        A case of PYPOWER or PGLib-OPF by name, a MATPOWER file (``.m``), or a table of its form.
    areas : int, str or lists of bus numbers, optional
        How many areas, lists of buses (a mapping names them), or the column "area" or "zone" of the
        bus table; None: every bus is an agent.
    hours : int
        The horizon; from 2 on the demand follows :data:`DAY` unless ``load`` says otherwise.
    reserve : float
        Share of the demand that the units' headroom must cover, one schedule z for all.
    ratings : array_like, optional
        MW for every line in service (inf: none), instead of those of the case.
    ramp : float or array_like, optional
        Share of its capacity by which a unit may change in an hour.
    storage : mapping, optional
        (MW, MWh) by bus number; half full at first, and at least so in the end.
    load : float or array_like
        A factor of the demand, one for each hour, or a table of hours by buses.
    shed : float, optional
        Price per MWh of demand that is not served; None: all must be served.
    convention : {"matpower", "powermodels"}
        Susceptance 1/(x tap) with phase shifts, or x/(r^2 + x^2) without.

    Returns
    -------
    Dispatch

    Examples
    --------
    >>> import ccmac
    >>> case = ccmac.power.dc_opf("case30", areas=4)
    >>> case.problem.n, case.problem.m > 0
    (4, True)
    """
    grid = read_grid(case, convention)
    if ratings is not None:
        given = real_vector("power, ratings", ratings, infinite=True)
        if len(given) != grid.lines or (given <= 0).any():
            raise InputError(
                f"power, ratings: give a positive number for each of the {grid.lines} lines in "
                "service (inf: no limit)"
            )
        grid = replace(grid, rating=given / grid.base)
    ask = _settings(grid, hours, reserve, ramp, storage, load, shed)
    parts, names = divided(grid, areas)
    network = Network.from_graph(area_graph(grid, parts, names), nodes=names, name=grid.name)
    return Dispatch(grid, Model(grid, parts, names, ask), network)


def later(case: Dispatch, settings: Ask) -> Dispatch:
    """The same grid and areas with other settings."""
    model = case.model
    return replace(case, model=Model(case.grid, model.parts, model.names, settings))


def _settings(
    grid: Grid, hours: int, reserve: float, ramp: Any, storage: Any, load: Any, shed: float | None
) -> Ask:
    if whole("power: hours", hours, 1) > LONGEST:
        raise InputError(f"power: hours = {shown(hours)}; give at most {LONGEST}, a year")
    if not 0 <= number("power, reserve", reserve) < 1:
        raise InputError("power: reserve must be a share from 0 to 1")
    if shed is not None:
        positive("power, shed", shed)
    place = {int(number): k for k, number in enumerate(grid.bus)}
    given = {} if storage is None else storage
    of_kind("power, storage", given, Mapping, "{bus: (MW, MWh)}")
    unknown = [b for b in given if b not in place]
    if unknown:
        raise InputError(f"power, storage: bus {shown(unknown[0])} is none of {grid.name}'s")
    stores = tuple(_store(place[b], b, pair, grid.base) for b, pair in given.items())
    return Ask(_load(grid, hours, load), reserve, _ramp(grid, ramp), stores, shed)


def _load(grid: Grid, hours: int, load: Any) -> Array:
    """Factors of the demand by hours and buses (one column: the same at all buses)."""
    if np.ndim(load) == 0:
        day = np.ones(1) if hours == 1 else np.resize(DAY, hours)
        return number("power, load", load) * day[:, None]
    table = np.asarray(load if np.ndim(load) == 2 else real_vector("power, load", load)[:, None])
    table = np.asarray(real_matrix("power, load", table))
    if table.shape not in ((hours, 1), (hours, grid.buses)):
        raise InputError(
            f"power, load: has the shape {table.shape}; give one factor for each hour, {hours}, or "
            f"a row of {grid.buses} buses for each"
        )
    return table


def _ramp(grid: Grid, ramp: Any) -> Array | None:
    if ramp is None:
        return None
    units = len(grid.p_max)
    given = real_vector("power, ramp", ramp)
    if len(given) not in (1, units) or (given <= 0).any():
        raise InputError(
            f"power, ramp: give one positive share, or one for each of the {units} units in service"
        )
    return np.broadcast_to(given, units)


def _store(place: int, bus: Any, pair: Any, base: float) -> Storage:
    """Power and energy per unit; half full at the beginning and at the end."""
    sizes = real_vector(f"power, storage, bus {shown(bus)}", pair) / base
    if sizes.shape != (2,) or (sizes < 0).any():
        raise InputError(f"power, storage, bus {shown(bus)}: give (MW, MWh), not negative")
    power, energy = sizes.tolist()
    return Storage(place, power, energy, 0.5 * energy, 0.5 * energy)
