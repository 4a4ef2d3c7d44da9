"""Nesterov's maximum of coordinates: a solution that hides from subgradients."""

from __future__ import annotations

import numpy as np

from ccmac.errors import InputError
from ccmac.network import Network
from ccmac.objectives import MaxAffine, SquaredDistance, Sum
from ccmac.paper.instances.base import Exposure, HardInstance
from ccmac.problem import Agent, Problem


def max_of_coordinates(k: int, mu: float = 1.0) -> HardInstance:
    """Two agents, consensus only: F(z) = max_j z_j + (mu/2)||z||^2, z* = -1/(mu k) in every entry.

    At a point with zeros in places not seen yet the maximum is attained at one of them, and the
    first of these is the subgradient that is answered: one adds one place, T_j = j subgradients.
    """
    if k < 1 or not mu > 0:
        raise InputError(f"max_of_coordinates: k = {k}, mu = {mu}; take k >= 1 and mu > 0")
    half = SquaredDistance(mu / 2)
    return HardInstance(
        f"max_of_coordinates({k})",
        Problem([Agent(Sum(MaxAffine(np.eye(k)), half)), Agent(half)], q=k),
        Network.path(2),
        [np.zeros(0)] * 2,
        np.full(k, -1.0 / (mu * k)),
        {"cross_factor": 1.0},
        np.arange(1, k + 1),
        {"gradients": Exposure(1, first=1)},
    )
