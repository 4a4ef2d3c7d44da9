"""What all agents tell each other first: which blocks exist, curvature, form and supports."""

from __future__ import annotations

import numpy as np

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import multiples_of
from ccmac.problem import MATRICES, Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace import supports
from ccmac.workspace.curvature import CurvatureTable
from ccmac.workspace.own import Own, form_rows, own_parts

Declared = tuple[CurvatureTable, Array, Own | None, supports.Supports | None]


def declare(problem: Problem, runtime: Runtime) -> Declared:
    """What all agents declare of their objectives, :func:`form_rows` with the parts of the agents
    here, and the rows that concern them: one averaging.
    """
    parts = own_parts(problem)
    form = runtime.ride(form_rows(problem, parts), whole=True)
    multiples = multiples_of(problem.blocks("B"))
    told = supports.told(problem, multiples)
    rows = runtime.ride(told, whole=True) if told.size else None
    table = CurvatureTable(problem, runtime, multiples)
    heard = None if rows is None else supports.heard(rows.value, problem.m)
    return table, form.value, parts, heard


def owned_part(problem: Problem, runtime: Runtime) -> tuple[Problem, bool, Declared]:
    """The agents of this process, whether any agent has limits, and what all declare.

    Which block families exist anywhere is agreed upon: a number for each is 1 where it is there,
    2 more from an agent with limits. One averaging.
    """
    owned = runtime.owned
    if not set(owned) <= set(problem.agents):
        raise InputError(
            f"problem: this process needs agents {owned.start}..{owned.stop - 1} but "
            f"holds {sorted(problem.agents)}"
        )
    base = 2.0 * problem.limited
    rows = np.array([[base + (k in problem.present) for k in MATRICES]] * len(owned))
    there = runtime.ride(rows, whole=True)
    part = problem.restricted(owned) if problem.complete and not runtime.alone else problem
    declared = declare(part, runtime)
    told = there.value
    limited, seen = bool((told >= 2).any()), np.atleast_1d((told % 2 > 0).any(axis=0))
    if not problem.complete:
        held = {i: problem.agents[i] for i in owned}
        present = [k for k, found in zip(MATRICES, seen, strict=True) if found]
        part = declared[0].problem = problem.holding(held, present)
    return part, limited, declared
