"""``dc_opf``: a grid dispatched by its buses or areas; cost, prices and flows of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array, number, of_kind, positive, real_vector, whole
from ccmac.network import Network
from ccmac.power.areas import area_graph, partition
from ccmac.power.grid import Grid, read_grid
from ccmac.power.model import Ask, Model, Storage
from ccmac.problem import Problem
from ccmac.texts import shown

DAY = np.array(
    [
        0.67,
        0.63,
        0.60,
        0.59,
        0.59,
        0.60,
        0.74,
        0.86,
        0.95,
        0.96,
        0.96,
        0.95,
        0.95,
        0.95,
        0.93,
        0.94,
        0.99,
        1.00,
        1.00,
        0.96,
        0.91,
        0.83,
        0.73,
        0.63,
    ]
)
"""Demand by hours of a winter weekday over its peak (IEEE Reliability Test System)."""
LONGEST = 8784  # hours of a leap year


@dataclass(frozen=True)
class Dispatch:
    """A case: its ``problem`` and ``network``, and what a result says of the grid."""

    grid: Grid
    model: Model
    network: Network

    @property
    def problem(self) -> Problem:
        """Agents are buses or areas."""
        return self.model.problem

    def cost(self, result: Any) -> float:
        """What generation costs over all hours, without the payments for reserve."""
        c2, c1, c0 = self.grid.cost.T
        p = self.generation(result) / self.grid.base
        return float((c2 * p * p + c1 * p + c0).sum())

    def generation(self, result: Any) -> Array:
        """MW by hours and units."""
        return self.grid.base * self.model.values("p", len(self.grid.p_max), result.x)

    def angles(self, result: Any) -> Array:
        """Radians by hours and buses."""
        found = self.model.values("theta", self.grid.buses, result.x)
        return np.asarray(found / self.grid.stiffness)

    def flows(self, result: Any) -> Array:
        """MW by hours and lines, from their first bus to their second."""
        grid = self.grid
        theta = self.angles(result)
        apart = theta[:, grid.line_from] - theta[:, grid.line_to] - grid.shift
        return np.asarray(grid.base * grid.susceptance * apart)

    def stored(self, result: Any) -> Array:
        """MWh by hours and stores."""
        return self.grid.base * self.model.values("energy", len(self.model.ask.storage), result.x)

    def reserve(self, result: Any) -> Array:
        """MW by hours (nothing where none was asked for)."""
        return self.grid.base * np.asarray(result.z)

    def prices(self, result: Any) -> Array:
        """Locational prices per MWh by hours and buses: what one MWh more of demand there costs."""
        found = np.zeros((self.model.ask.hours, self.grid.buses))
        prices = result.multipliers
        for (kind, bus, t), (agent, row) in self.model.rows.items():
            if kind != "balance":
                continue
            price = prices.coupled[row] if agent is None else prices.local[agent][row]
            found[t, bus] = -price / self.grid.base
        return found

    def imbalance(self, result: Any) -> float:
        """Largest mismatch at a bus, in per unit."""
        grid = self.grid
        ask = self.model.ask
        net = -np.outer(ask.load, grid.demand)
        np.add.at(net.T, grid.unit_bus, self.generation(result).T / grid.base)
        for k, store in enumerate(ask.storage):
            for kind, sign in (("discharge", 1.0), ("charge", -1.0)):
                net[:, store.bus] += (
                    sign * self.model.values(kind, len(ask.storage), result.x)[:, k]
                )
        flow = self.flows(result).T / grid.base
        np.add.at(net.T, grid.line_from, -flow)
        np.add.at(net.T, grid.line_to, flow)
        return float(np.abs(net).max())

    def overload(self, result: Any) -> float:
        """Largest excess over a rating or a unit's limits, in per unit."""
        grid = self.grid
        p = self.generation(result) / grid.base
        flow = np.abs(self.flows(result)) / grid.base - grid.rating
        beyond = [flow, p - grid.p_max, grid.p_min - p]
        return max(0.0, *(float(v.max()) for v in beyond))

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
        return replace(ask, load=np.roll(ask.load, -hours), storage=kept, before=p)


def dc_opf(
    case: str | Mapping[str, Any] = "case118",
    areas: int | None = None,
    *,
    hours: int = 1,
    reserve: float = 0.0,
    ratings: Any = None,
    ramp: float | None = None,
    storage: Mapping[int, tuple[float, float]] | None = None,
    load: Any = 1.0,
) -> Dispatch:
    """A DC optimal power flow, by ``areas`` or (None) by buses on the grid itself.

    - ``case``: a case of PYPOWER by name, or a table like its own.
    - ``hours``: 1, or a horizon; from 2 on the demand follows :data:`DAY` unless ``load`` says
      otherwise (a factor, or one for each hour).
    - ``reserve``: share of the demand that the units' headroom must cover, one schedule z for all.
    - ``ratings``: MW for every line in service (inf: none), instead of those of the case.
    - ``ramp``: share of its capacity by which a unit's output may change in an hour.
    - ``storage``: by bus number (MW, MWh); half full at first and at least so in the end.
    """
    grid = read_grid(case)
    if ratings is not None:
        given = real_vector("power, ratings", ratings, infinite=True)
        if len(given) != grid.lines or (given <= 0).any():
            raise InputError(
                f"power, ratings: give a positive number for each of the {grid.lines} lines in "
                "service (inf: no limit)"
            )
        grid = replace(grid, rating=given / grid.base)
    ask = _settings(grid, hours, reserve, ramp, storage, load)
    parts = partition(grid, grid.buses if areas is None else areas)
    names = [f"area {k}" for k in range(len(parts))]
    if areas is None:
        names = [f"bus {number}" for number in grid.bus]
    return _dispatch(grid, parts, names, ask)


def _dispatch(grid: Grid, parts: list[list[int]], names: list[str], ask: Ask) -> Dispatch:
    network = Network.from_graph(area_graph(grid, parts, names), nodes=names, name=grid.name)
    return Dispatch(grid, Model(grid, parts, names, ask), network)


def later(case: Dispatch, settings: Ask) -> Dispatch:
    """The same grid and areas with other settings."""
    model = case.model
    return replace(case, model=Model(case.grid, model.parts, model.names, settings))


def _settings(
    grid: Grid, hours: int, reserve: float, ramp: float | None, storage: Any, load: Any
) -> Ask:
    if whole("power: hours", hours, 1) > LONGEST:
        raise InputError(f"power: hours = {shown(hours)}; give at most {LONGEST}, a year")
    if not 0 <= number("power, reserve", reserve) < 1:
        raise InputError("power: reserve must be a share from 0 to 1")
    if ramp is not None:
        positive("power, ramp", ramp)
    day = np.ones(1) if hours == 1 else np.resize(DAY, hours)
    factor = real_vector("power, load", load)
    if np.ndim(load) and len(factor) != hours:
        raise InputError(f"power, load: has {len(factor)} entries; give one for each hour, {hours}")
    place = {int(number): k for k, number in enumerate(grid.bus)}
    given = {} if storage is None else storage
    of_kind("power, storage", given, Mapping, "{bus: (MW, MWh)}")
    unknown = [b for b in given if b not in place]
    if unknown:
        raise InputError(f"power, storage: bus {shown(unknown[0])} is none of {grid.name}'s")
    stores = tuple(_store(place[b], b, pair, grid.base) for b, pair in given.items())
    return Ask(factor if np.ndim(load) else float(factor[0]) * day, reserve, ramp, stores)


def _store(place: int, bus: Any, pair: Any, base: float) -> Storage:
    """Power and energy per unit; half full at the beginning and at the end."""
    sizes = real_vector(f"power, storage, bus {shown(bus)}", pair) / base
    if sizes.shape != (2,) or (sizes < 0).any():
        raise InputError(f"power, storage, bus {shown(bus)}: give (MW, MWh), not negative")
    power, energy = sizes.tolist()
    return Storage(place, power, energy, 0.5 * energy, 0.5 * energy)
