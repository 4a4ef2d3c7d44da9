"""Small random problems of every structural kind, and a plain loop around APAPC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmac.methods.apapc import Apapc, ApapcState
from ccmac.network import Network
from ccmac.paper.instances.random_quadratic import random_quadratic
from ccmac.problem import Problem
from ccmac.realizations.base import AffineSystem, Realized

Array = NDArray[np.float64]

FLAVOURS: dict[str, dict[str, Any]] = {
    "all blocks": {},
    "rank deficient": {"rank_deficient": True},
    "common direction": {"B": "overlap"},
    "B = 0": {"B": "zero"},
    "no B": {"absent": "B"},
    "no A, no C": {"absent": "AC", "m": 2, "q": 6},
    "no C": {"absent": "C"},
    "no D": {"absent": "D"},
    "no C, no D": {"absent": "CD"},
    "no A, no B": {"absent": "AB"},
    "only D": {"absent": "ABC"},
    "only consensus": {"absent": "ABCD"},
    "blocks missing here and there": {"absent": 0.3},
    "sparse": {"sparse": True},
    "one agent": {"n": 1},
    "one agent, no D": {"n": 1, "absent": "D"},
    "one agent, nothing": {"n": 1, "absent": "ABCD"},
    "two agents": {"n": 2},
}


def instance(name: str, seed: int = 3) -> tuple[Problem, Network]:
    """A problem of one flavour on a small graph."""
    problem = random_quadratic(seed, **{"n": 4, **FLAVOURS[name]})
    return problem, Network.ring(problem.n) if problem.n > 2 else Network.complete(problem.n)


def error(realized: Realized, w: Array, solution: Array) -> float:
    """||(x, mean z) - (x*, z*)|| relative to max(1, ||(x*, z*)||)."""
    point = np.concatenate([realized.space.x(w), realized.copies(w).mean(axis=0)])
    return float(np.linalg.norm(point - solution) / max(1.0, float(np.linalg.norm(solution))))


def fresh(iteration: Apapc) -> ApapcState:
    """At the origin, with no price."""
    space = iteration.space
    return iteration.begin(space.zeros(), space.zeros(), iteration.system.zero_multiplier())


def iterate(
    realized: Realized, solution: Array, tol: float = 1e-9, limit: int = 2000
) -> tuple[int, Array]:
    """Iterations of APAPC until the error is at most tol, and the iterate."""
    iteration = Apapc(realized)
    state = fresh(iteration)
    for k in range(1, limit + 1):
        state = iteration.step(state)
        if error(realized, state.w, solution) <= tol:
            return k, state.w
    raise AssertionError(f"not within {tol} after {limit} iterations")


def normal_matrix(system: AffineSystem) -> Array:
    """G, column by column."""
    linear = system.homogeneous()
    return np.stack([linear.residual(e)[0] for e in np.eye(system.space.size)], axis=1)


def positive_ends(gram: Array) -> tuple[float, float]:
    """Least positive and largest eigenvalue."""
    values = np.linalg.eigvalsh((gram + gram.T) / 2)
    positive = values[values > 1e-10 * values[-1]]
    return float(positive[0]), float(positive[-1])
