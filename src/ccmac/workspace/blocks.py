"""A problem's blocks and right-hand sides in the form that operators use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ccmac.inputs import Array
from ccmac.ledger import Ledger
from ccmac.linalg.families import LocalFamily, has_entries
from ccmac.linalg.ranks import row_lengths
from ccmac.linalg.tolerances import UNEVEN
from ccmac.problem import Agent, Problem


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


def even_rows(problem: Problem) -> Problem:
    """The same equations with very long and very short own rows of C_i and D_i near unit length.

    For realizations that work with the rows as they are: squares of rows that differ by more than
    UNEVEN^2 would not be seen beside each other, and the rank would be another one than
    everybody's (:mod:`ccmac.linalg.ranks`). Powers of two: nothing is rounded. No communication.
    """
    changed = {i: _even(agent) for i, agent in problem.agents.items()}
    if all(changed[i] is agent for i, agent in problem.agents.items()):
        return problem
    return Problem(changed, n=problem.n, q=problem.q, m=problem.m, present=problem.present)


def _even(agent: Agent) -> Agent:
    changes: dict[str, Any] = {}
    for name, right in (("C", "c"), ("D", "e")):
        block, v = getattr(agent, name), getattr(agent, right)
        if block is None or not has_entries(block):
            continue
        lengths = row_lengths(block)
        far = (lengths > 0) & ((lengths > UNEVEN) | (lengths < 1 / UNEVEN))
        if far.any():
            scale = np.exp2(-np.round(np.log2(np.where(far, lengths, 1.0))))
            changes[name] = (
                scale[:, None] * block
                if isinstance(block, np.ndarray)
                else (sp.csr_array(sp.diags_array(scale) @ block))
            )
            changes |= {} if v is None else {right: scale * v}
    return replace(agent, **changes) if changes else agent


def _filled(vector: Any, size: int) -> Array:
    return np.zeros(size) if vector is None else np.asarray(vector, dtype=np.float64)
