"""Two applications and two pictures of an angle, each with its exact solution.

**Dispatch**: power over areas that share one reserve schedule.

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

**Calibration**: personal models calibrated to published population totals.

    outcome of person i in sample k:  y_ik = X_ik x_i + U_ik z + noise

    x_i                             the person's own effects; z = effects common to the population
    A_i x_i + B_i z = b_i, summed   predictions summed over everybody meet the published total of
                                    each stratum: row s of (A_i, B_i) adds up the rows of (X_i, U_i)
                                    that fall into stratum s; b_i are the person's expected part
    C_i x_i = c_i                   own effects sum to zero (else the intercept would be shared
                                    between x_i and z)
    D_i z = e_i                     persons measured with a reference device know one combination of
                                    the common effects
    f_i                             mean squared error of the person's samples, plus ridge on x_i
                                    and the person's part of a ridge on z

Persons with different designs U_i have different B_i: that is what makes chi larger than one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmac.angles.principal import cross_factor
from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.paper.instances.base import Instance
from ccmac.paper.instances.reference import solve_kkt
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
    total_reserve = float(wish.sum())
    evening_step = float(wish[-1] - wish[0])
    agents = []
    demands = []
    for i in range(areas):
        demand = random.uniform(0.8, 1.6) * day * random.uniform(0.9, 1.1, hours)
        demands.append(demand)
        I = np.eye(hours)
        rule: dict[str, Any] = {}
        if i == 0:
            rule = {"D": np.ones((1, hours)), "e": np.array([total_reserve])}
        elif i == 1:
            rule = {"D": I[-1:] - I[:1], "e": np.array([evening_step])}
        cost = _cost(random, wish, demand, areas)
        ratio = random.uniform(0.5, 1.2)
        A = np.hstack([I, np.zeros((hours, hours)), I])
        B = -shares[i] * I
        own: dict[str, Any] = {"C": _equipment(hours, ratio), "c": np.zeros(hours + 1)}
        agents.append(Agent(cost, A=A, B=B, b=demand, **own, **rule))
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
    I = np.eye(hours)
    zero = np.zeros((hours, hours))
    day = np.concatenate([np.zeros(2 * hours), np.ones(hours)])
    return np.vstack([np.hstack([-ratio * I, I, zero]), day])


def _cost(random: np.random.Generator, wish: Array, demand: Array, areas: int) -> Quadratic:
    """fuel a p^2/2 + price p, (heat - 0.8 demand)^2/4, wear w s^2/2, (z - own wish)^2/(2 areas)."""
    hours = len(wish)
    fuel = random.uniform(0.5, 2.0)
    price = random.uniform(0.5, 1.5)
    wear = random.uniform(1.0, 3.0)
    own_wish = wish * random.uniform(0.8, 1.2, hours)
    curvature = np.repeat([fuel, 0.5, wear, 1.0 / areas], hours)
    linear = [np.full(hours, -price), 0.4 * demand, np.zeros(hours), own_wish / areas]
    return Quadratic(curvature, np.concatenate(linear))


def calibration(
    seed: int = 0,
    persons: int = 8,
    *,
    own: int = 3,
    common: int = 4,
    samples: int = 12,
    strata: int = 2,
    ridge: float = 0.1,
) -> Instance:
    """Persons on a random 3-regular (else ring) network with the exact calibrated models.

    Published totals are those of the true effects, which also satisfy the C_i and D_i: feasible by
    construction. Facts: ``parameter_error``, the root mean square distance of the calibrated
    effects to the true ones, and ``objective``.
    """
    if min(persons, own, common, strata) < 1 or samples < strata or not ridge > 0:
        raise InputError(
            f"calibration: persons = {persons}, own = {own}, common = {common}, "
            f"samples = {samples}, strata = {strata}, ridge = {ridge}; "
            "take positive sizes, samples >= strata and ridge > 0"
        )
    random = np.random.default_rng(seed)
    z_true = random.standard_normal(common)
    device = random.standard_normal((1, common))
    agents = []
    truths = []
    for i in range(persons):
        x_true = random.standard_normal(own)
        x_true -= x_true.mean()
        truths.append(x_true)
        X = random.standard_normal((samples, own))
        U = random.standard_normal((samples, common)) + random.standard_normal(common)
        y = X @ x_true + U @ z_true + 0.3 * random.standard_normal(samples)
        member = np.eye(strata)[:, np.arange(samples) % strata] / samples
        coupled: dict[str, Any] = {
            "A": member @ X,
            "B": member @ U,
            "b": member @ (X @ x_true + U @ z_true),
        }
        shared: dict[str, Any] = {"D": device, "e": device @ z_true} if i % 4 == 0 else {}
        sums: dict[str, Any] = {"C": np.ones((1, own)), "c": np.zeros(1)}
        agents.append(Agent(_fit(X, U, y, ridge, persons), **coupled, **sums, **shared))
    problem = Problem(agents)
    solution = solve_kkt(problem)
    true = np.concatenate([*truths, z_true])
    facts = {
        "parameter_error": float(np.sqrt(np.mean((solution.vector - true) ** 2))),
        "objective": solution.objective,
    }
    regular = persons >= 4 and persons % 2 == 0
    network = Network.random_regular(persons, 3, seed) if regular else Network.ring(persons)
    return Instance(f"calibration({seed})", problem, network, solution.x, solution.z, facts)


def _fit(X: Array, U: Array, y: Array, ridge: float, persons: int) -> Quadratic:
    """||X x + U z - y||^2/(2 samples) + ridge (||x||^2 + ||z||^2/persons)/2, less a constant."""
    design = np.hstack([X, U])
    penalty = np.concatenate([np.full(X.shape[1], ridge), np.full(U.shape[1], ridge / persons)])
    return Quadratic(design.T @ design / len(y) + np.diag(penalty), design.T @ y / len(y))


def two_agent(t: float) -> Instance:
    """x_1 + x_2 + (1+t) z_1 + (1-t) z_2 = 1, z_1 = z_2, f_i = (x_i^2 + z^2)/2.

    t moves weight between the two B_i with their sum fixed (Appendix app:two-agent-example): the
    solution stays x_1 = x_2 = z = 1/4 with price -1/4, while c_F = |t| / sqrt(2 + t^2).
    """
    if not math.isfinite(t):
        raise InputError(f"two_agent: t = {t}; take a finite number")
    agents = [
        Agent(Quadratic(np.ones(2), np.zeros(2)), A=[[1.0]], B=[[weight]], b=[0.5])
        for weight in (1.0 + t, 1.0 - t)
    ]
    cosine = abs(t) / math.sqrt(2.0 + t * t)
    facts = {
        "friedrichs_cosine": cosine,
        "cross_factor": cross_factor(cosine),
        "kappa_f": 1.0,
        "kappa_W": 1.0,
        "price": -0.25,
        "objective": 0.125,
    }
    quarter = np.array([0.25])
    return Instance(
        f"two_agent({t:g})", Problem(agents), Network.path(2), [quarter, quarter], quarter, facts
    )


def two_rows(theta: float) -> Instance:
    """Rows (1, 0) and (cos theta, sin theta) as B_1 and D_1 of one agent (Proposition prop:2d).

    Each channel has condition one, the stack cot^2(theta/2), so chi = cot(theta/2). The right-hand
    sides are read off z = (1, 1); both rows together leave no other point, so z* = (1, 1).
    """
    if not 0 < theta <= math.pi / 2:
        raise InputError(f"two_rows: theta = {theta}; an angle between lines is in (0, pi/2]")
    row = np.array([[math.cos(theta), math.sin(theta)]])
    z = np.ones(2)
    agent = Agent(Quadratic(np.ones(2), np.zeros(2)), B=[[1.0, 0.0]], b=[1.0], D=row, e=row @ z)
    facts = {
        "friedrichs_cosine": math.cos(theta) if theta < math.pi / 2 else 0.0,
        "cross_factor": 1.0 / math.tan(theta / 2.0),
        "kappa_f": 1.0,
        "kappa_W": 1.0,
    }
    return Instance(
        f"two_rows({theta:g})", Problem([agent]), Network.path(1), [np.zeros(0)], z, facts
    )
