"""Two agents, one equation, any angle; and two rows in the plane."""

from __future__ import annotations

import math

import numpy as np

from ccmac.angles.principal import cross_factor
from ccmac.errors import InputError
from ccmac.lab.instances.base import Instance
from ccmac.network import Network
from ccmac.objectives import Quadratic
from ccmac.problem import Agent, Problem


def two_agent(t: float) -> Instance:
    """x_1 + x_2 + (1+t) z_1 + (1-t) z_2 = 1, z_1 = z_2, f_i = (x_i^2 + z^2)/2.

    t moves weight between the two B_i with their sum fixed (app:two-agent-example): the solution
    stays x_1 = x_2 = z = 1/4 with price -1/4, while c_F = |t| / sqrt(2 + t^2).
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
    """Rows (1, 0) and (cos theta, sin theta) as B_1 and D_1 of one agent (Proposition 2d).

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
