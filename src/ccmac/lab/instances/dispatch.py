"""Power dispatch over areas that share one reserve schedule.

    x_i = (power, heat, storage) of area i, each over the hours; z = the reserve schedule.

    A_i x_i + B_i z = b_i, summed   energy balance hour by hour: what the areas produce and
                                    discharge covers demand plus the energy kept back for reserve,
                                    of which area i carries the share s_i (B_i = -s_i I)
    C_i x_i = c_i                   the area's equipment: heat = ratio_i * power (combined heat and
                                    power), and storage ends the day as it began
    D_i z = e_i                     rules some areas impose on the common schedule: area 0 buys a
                                    daily total, area 1 fixes the step from the first hour to the
                                    last
    f_i                             fuel (power, quadratic and linear), heat off its demand, wear of
                                    storage, and distance of the schedule to the area's own wish

The more the shares s_i differ, the smaller the angle between energy balance and consensus.
"""

from __future__ import annotations

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.lab.instances.base import Instance
from ccmac.lab.instances.reference import solve_kkt
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem


def dispatch(
    seed: int = 0, areas: int = 6, hours: int = 4, *, unequal_shares: float = 1.0
) -> Instance:
    """A dispatch day on a ring of areas with its exact solution.

    ``unequal_shares`` is the spread of the logarithms of the reserve shares s_i > 0, which sum to
    one; at 0 all B_i are equal, balance does not see disagreement, and what is left of c_F comes
    from the rules D_i. Facts: the hourly mean price
    (``mean_price``, minus the multiplier of the balance), total ``demand`` and ``reserve``.
    """
    if areas < 2 or hours < 2 or not unequal_shares >= 0:
        raise InputError(
            f"dispatch: areas = {areas}, hours = {hours}, unequal_shares = {unequal_shares}; "
            "take two or more areas and hours, and no negative inequality"
        )
    random = np.random.default_rng(seed)
    shares = _shares(random, areas, unequal_shares)
    day = 1.0 + 0.3 * np.sin(2 * np.pi * np.arange(hours) / hours)
    wish = 0.15 * areas * day
    total_reserve, evening_step = float(wish.sum()), float(wish[-1] - wish[0])
    agents, demands = [], []
    for i in range(areas):
        demand = random.uniform(0.8, 1.6) * day * random.uniform(0.9, 1.1, hours)
        demands.append(demand)
        D: Array | None = None
        e: Array | None = None
        if i == 0:
            D, e = np.ones((1, hours)), np.array([total_reserve])
        elif i == 1:
            D, e = np.eye(hours)[-1:] - np.eye(hours)[:1], np.array([evening_step])
        I = np.eye(hours)
        agents.append(
            Agent(
                _cost(random, wish, demand, areas),
                A=np.hstack([I, np.zeros((hours, hours)), I]),
                B=-shares[i] * I,
                b=demand,
                C=_equipment(hours, ratio=random.uniform(0.5, 1.2)),
                c=np.zeros(hours + 1),
                D=D,
                e=e,
            )
        )
    problem = Problem(agents)
    solution = solve_kkt(problem)
    facts = {
        "mean_price": float(-np.mean(solution.coupled)),
        "demand": float(np.sum(demands)),
        "reserve": total_reserve,
        "objective": solution.objective,
    }
    network = Network.ring(areas)
    return Instance(f"dispatch({seed})", problem, network, solution.x, solution.z, facts)


def _shares(random: np.random.Generator, areas: int, inequality: float) -> Array:
    weights = np.exp(inequality * random.standard_normal(areas))
    return np.asarray(weights / weights.sum())


def _equipment(hours: int, ratio: float) -> Array:
    """heat - ratio power = 0 every hour; storage sums to zero over the day."""
    I, zero = np.eye(hours), np.zeros((hours, hours))
    day = np.concatenate([np.zeros(2 * hours), np.ones(hours)])
    return np.vstack([np.hstack([-ratio * I, I, zero]), day])


def _cost(random: np.random.Generator, wish: Array, demand: Array, areas: int) -> Quadratic:
    """fuel a p^2/2 + price p, (heat - 0.8 demand)^2/4, wear w s^2/2, (z - own wish)^2/(2 areas)."""
    hours = len(wish)
    fuel, price, wear = random.uniform(0.5, 2.0), random.uniform(0.5, 1.5), random.uniform(1.0, 3.0)
    own_wish = wish * random.uniform(0.8, 1.2, hours)
    curvature = np.repeat([fuel, 0.5, wear, 1.0 / areas], hours)
    linear = [np.full(hours, -price), 0.4 * demand, np.zeros(hours), own_wish / areas]
    return Quadratic(curvature, np.concatenate(linear))
