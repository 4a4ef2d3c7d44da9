"""What an instance carries: problem, network, solution, facts; and for hard ones, a frontier.

A hard instance numbers the coordinates of z by their place j = 1, 2, ... in a chain. In the
linear-span model (memories start at zero; new vectors are combinations of stored ones and of what
gradient, channel, adjoint and neighbor oracles return) coordinate j needs at least T_j uses of a
resource. So after k uses

    frontier(k) = max { j : T_j <= k }             (nothing beyond it is nonzero)
    ||w - w*||  >= tail(s) = ( n sum_{j > s} (z*_j)^2 )^{1/2},   s = frontier(k),

since every one of the n copies of z misses the coordinates beyond s. Read backwards, a relative
distance eps costs at least T_s for the least s with tail(s) <= eps ||w0 - w*||. The tail is that
of the closed-form solution of the finite instance: nothing asymptotic and nothing measured enters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.network import Network
from ccmac.problem import Problem

Resource = Literal["rounds", "affine", "gradients"]


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem on a network with its exact solution and its closed-form ``facts``."""

    name: str
    problem: Problem
    network: Network
    x: list[Array]
    z: Array
    facts: Mapping[str, float]

    @property
    def execution_radius(self) -> float:
        """||w*|| of w = (x_1, .., x_n, z_1, .., z_n), the distance from the zero start."""
        squares = sum(float(x @ x) for x in self.x)
        return float(np.sqrt(squares + self.problem.n * float(self.z @ self.z)))


@dataclass(frozen=True)
class Exposure:
    """T_j = first + step (j - 1): uses of a resource before chain coordinate j can appear."""

    step: int
    first: int = 0

    def needed(self, coordinate: int) -> int:
        """T_j; zero for j = 0."""
        return 0 if coordinate < 1 else self.first + self.step * (coordinate - 1)

    def frontier(self, count: int) -> int:
        """The largest j with T_j <= count."""
        return 0 if count < self.first else 1 + (count - self.first) // self.step


@dataclass(frozen=True, eq=False)
class HardInstance(Instance):
    """An instance whose solution hides behind a frontier.

    ``coordinate[k]`` is the chain place (from 1) of entry k of z; ``exposure`` has one entry for
    each resource with a proven bound.
    """

    coordinate: NDArray[np.int64]
    exposure: Mapping[Resource, Exposure]

    def frontier(self, resource: Resource, count: int) -> int:
        """Largest chain place that can be nonzero at any agent after ``count`` uses."""
        return min(self._exposure(resource).frontier(count), int(self.coordinate.max()))

    def reachable(self, resource: Resource, count: int) -> NDArray[np.bool_]:
        """Which entries of a copy of z may be nonzero after ``count`` uses."""
        return np.asarray(self.coordinate <= self.frontier(resource, count))

    def tail(self, s: int) -> float:
        """Least ||w - w*|| over vectors whose z-copies live on the first s chain places."""
        missing = self.z[self.coordinate > s]
        return float(np.sqrt(self.problem.n * float(missing @ missing)))

    def lower_bound(self, resource: Resource, eps: float) -> int:
        """Uses of ``resource`` no linear-span method can avoid for ||w - w*|| <= eps ||w*||.

        One instance's part of Equation eq:minimax-resource-def.
        """
        exposure = self._exposure(resource)
        if not eps > 0:
            raise InputError(f"{self.name}: eps = {eps}; a relative distance is positive")
        least = (eps * self.execution_radius) ** 2 / self.problem.n
        return exposure.needed(int(np.argmax(self.tails <= least)))

    @property
    def tails(self) -> Array:
        """sum_{j > s} (z*_j)^2 by s; small terms first, so that deep tails stay accurate."""
        squares = np.bincount(self.coordinate, weights=self.z**2)
        return np.append(np.cumsum(squares[:0:-1])[::-1], 0.0)

    def _exposure(self, resource: Resource) -> Exposure:
        if resource not in self.exposure:
            known = ", ".join(self.exposure)
            raise InputError(f"{self.name}: no bound on {resource!r}; there is one on {known}")
        return self.exposure[resource]


def gradient_scale(problem: Problem, x: list[Array], z: Array, L: float, radius: float) -> float:
    """||grad F(w*)|| / (L R) over the copies.

    K'lambda* = -grad F(w*) gives sigma ||lambda*|| <= ||grad F(w*)|| for the minimum-norm
    multiplier, hence Lambda_cvx = sigma ||lambda*|| / (L R) is at most this.
    """
    squares = 0.0
    for i, agent in problem.agents.items():
        g_x, g_z = agent.objective.gradient(x[i], z)
        squares += float(g_x @ g_x + g_z @ g_z)
    return float(np.sqrt(squares)) / (L * radius)
