"""Words about problems that have no solution: each contradiction is known with its multiplier."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ccmac
from ccmac.inputs import Array
from ccmac.objectives import Hinge, Objective, Quadratic

INF = np.inf


def rows(seed: int, level: float) -> tuple[Array, Array, Array]:
    """(G, h, w) with G_k w <= h_k for all k but the last: y'G w >= y'h + level, some y > 0."""
    random = np.random.default_rng(seed)
    G = random.integers(-3, 4, (3, 9)).astype(float)
    w = random.integers(-2, 3, 9).astype(float)
    y = random.integers(1, 4, 3).astype(float)
    h = G @ w + random.integers(0, 3, 3)
    exact = [Fraction(v) for v in y]
    last = [sum((v * Fraction(a) for v, a in zip(exact, column, strict=True))) for column in G.T]
    assert [float(v) for v in last] == (y @ G).tolist()  # nothing is rounded
    assert Fraction(y @ h + level) - sum(v * Fraction(b) for v, b in zip(exact, h, strict=True)) > 0
    return np.vstack([G, y @ G]), np.append(h, y @ h + level), w


def problem(G: Array, h: Array, objectives: list[Objective], lower: Array) -> ccmac.Problem:
    agents = [
        ccmac.Agent(
            f, A=G[:, 3 * i : 3 * i + 3], b=h if i == 0 else 0 * h, lower=lower[3 * i : 3 * i + 3]
        )
        for i, f in enumerate(objectives)
    ]
    return ccmac.Problem(agents, q=0, sense=["<="] * (len(h) - 1) + [">="])


def falling(seed: int, level: float) -> ccmac.Problem:
    """Linear costs and hinges that fall along some direction, wherever one could start."""
    G, h, w = rows(seed, level)
    random = np.random.default_rng([seed, 1])
    costs = random.integers(-3, 4, (3, 3)).astype(float)
    hinge = Hinge(random.integers(-3, 4, (2, 3)).astype(float), np.array([1.0, -1.0]))
    lower = np.where(random.random(9) < 0.5, w, -INF)
    return problem(G, h, [hinge, *(Quadratic(np.zeros(3), g) for g in costs[1:])], lower)


@pytest.mark.parametrize("level", [2.0**-8, 2.0**-14])
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 19])
def test_what_has_no_feasible_point_is_not_unbounded(seed: int, level: float) -> None:
    result = ccmac.solve(falling(seed, level), "path", "cross-ipm", 1e-6)
    assert result.status == "infeasible"
    assert result.infeasibility.radius >= 1e5


def test_a_fall_from_a_feasible_point_is_unbounded() -> None:
    """x_0 grows along x_0 - x_1 = 1 with x_1 <= 5 gone; x_2 = 0 twice over has no room at all."""

    def agent(lower: list[float], upper: list[float]) -> ccmac.Agent:
        return ccmac.Agent(
            Quadratic(np.zeros(3), [1.0, 0.0, 0.0]),
            A=[[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]],
            b=[1.0, 0.0],
            lower=lower,
            upper=upper,
        )

    free = agent([-INF, -INF, 0.0], [INF, INF, INF])
    sense = ["==", "<="]
    result = ccmac.solve(ccmac.Problem([free, free], q=0, sense=sense), "path", "cross-ipm")
    assert result.status == "unbounded"
    held = agent([-INF, -INF, 0.0], [2.0, 5.0, INF])
    result = ccmac.solve(ccmac.Problem([held, held], q=0, sense=sense), "path", "cross-ipm")
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-4.0, abs=1e-5)
