"""Problems without a solution, one for each place where the contradiction can hide."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from ccmac.errors import InputError
from ccmac.lab.instances.random_quadratic import random_quadratic
from ccmac.lab.instances.reference import dense
from ccmac.problem import Agent, Problem

Conflict = Literal["coupled", "local", "shared", "cross"]


def infeasible(seed: int, conflict: Conflict, n: int = 4, gap: float = 1.0) -> Problem:
    """A feasible random quadratic plus one equation that contradicts the others by ``gap``.

    coupled  a second coupled row with the left side of the first and another sum of b_i
    local    agent 0 repeats a row of C_0 with another value
    shared   the last agent repeats a row of D_0 with another value (with n = 1, agent 0 does)
    cross    a coupled row in z alone that contradicts D_0; each channel by itself is consistent
    """
    if conflict not in get_args(Conflict):
        known = ", ".join(get_args(Conflict))
        raise InputError(f"infeasible: unknown conflict {conflict!r}; take one of {known}")
    base = random_quadratic(seed, n)
    agents = dict(base.agents)
    first, last = agents[0], agents[n - 1]
    if conflict == "coupled":
        agents = {i: _repeat_coupled(a, gap if i == 0 else 0.0) for i, a in agents.items()}
    elif conflict == "local":
        agents[0] = replace(
            first, C=np.vstack([first.C, first.C[:1]]), c=np.append(first.c, first.c[0] + gap)
        )
    elif conflict == "shared":
        agents[n - 1] = replace(
            last, D=np.vstack([last.D, first.D[:1]]), e=np.append(last.e, first.e[0] + gap)
        )
    else:
        weights = 1.0 + np.arange(n)
        row, value = first.D[0], float(first.e[0])
        for i, agent in base.agents.items():
            A = np.vstack([dense(agent.A, (base.m, base.d[i])), np.zeros(base.d[i])])
            B = np.vstack([dense(agent.B, (base.m, base.q)), weights[i] * row])
            shift = weights[i] * value + (gap if i == 0 else 0.0)
            agents[i] = replace(agent, A=A, B=B, b=np.append(agent.b, shift))
    return Problem(agents, n=n)


def _repeat_coupled(agent: Agent, gap: float) -> Agent:
    return replace(
        agent,
        A=np.vstack([agent.A, agent.A[:1]]),
        B=np.vstack([agent.B, agent.B[:1]]),
        b=np.append(agent.b, agent.b[0] + gap),
    )
