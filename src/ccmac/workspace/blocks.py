"""A problem's blocks and right-hand sides in the form that operators use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmac.ledger import Ledger
from ccmac.linalg.families import LocalFamily
from ccmac.problem import Problem

Array = NDArray[np.float64]


class RightHandSides(NamedTuple):
    """b with one row per agent; c and e flat, agent after agent. Absent ones are zero."""

    b: Array
    c: Array
    e: Array


def right_hand_sides(problem: Problem) -> RightHandSides:
    """Of the agents held here (no copies of b if no agent has one)."""
    agents, m = problem.agents, problem.m
    b: Array = np.broadcast_to(0.0, (len(agents), m))
    if any(agent.b is not None for agent in agents.values()):
        b = np.stack([_filled(agent.b, m) for agent in agents.values()])
    c = [_filled(agent.c, problem.p[i]) for i, agent in agents.items()]
    e = [_filled(agent.e, problem.r[i]) for i, agent in agents.items()]
    return RightHandSides(b, np.concatenate([*c, np.zeros(0)]), np.concatenate([*e, np.zeros(0)]))


def block_families(problem: Problem, ledger: Ledger) -> dict[str, LocalFamily]:
    """The families A, B, C, D over the agents that ``problem`` holds."""
    d, p, r = (list(sizes.values()) for sizes in (problem.d, problem.p, problem.r))
    m, q = [problem.m] * len(d), [problem.q] * len(d)
    shapes = {"A": (m, d), "B": (m, q), "C": (p, d), "D": (r, q)}
    return {
        name: LocalFamily(
            name, problem.blocks(name), rows, columns, ledger, present=name in problem.present
        )
        for name, (rows, columns) in shapes.items()
    }


def _filled(vector: Any, size: int) -> Array:
    return np.zeros(size) if vector is None else np.asarray(vector, dtype=np.float64)
