"""The equations that hold at a solution: active inequalities and bounds as equations, others gone.

The geometry of a problem with inequalities is that of these rows: near the solution the method sees
no others. Without a solution only the equations count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ccmac.inputs import Array, is_sparse, rows_of
from ccmac.limits.reduction import coupled_misfit
from ccmac.problem import CONIC, LIMITS, Agent, Problem

ACTIVE = 1e-6  # room below which a row counts as active, as a share of 1 + its right-hand side


def active(problem: Problem, at: Any = None) -> tuple[Problem, str]:
    """(the problem with the rows that hold at ``at`` as equations, a sentence that says so)."""
    rows = _coupled(problem, at)
    agents = {}
    for k, (i, agent) in enumerate(problem.agents.items()):
        x = None if at is None else np.asarray(at.x[k])
        z = None if at is None else np.asarray(at.z)
        changes = {name: _rows(getattr(agent, name), rows) for name in "ABb"}
        bounds = problem.z_lower, problem.z_upper
        changes |= _own(agent, "C", "c", agent.C_sense, x, (agent.lower, agent.upper))
        changes |= _own(agent, "D", "e", agent.D_sense, z, bounds if k == 0 else (None, None))
        free: dict[str, Any] = dict.fromkeys((*LIMITS, *CONIC, "cones"))
        if changes["A"] is None and changes["C"] is None and agent.G is not None:
            changes["A"] = sp.csr_array((len(rows), problem.d[i]))
        agents[i] = replace(agent, **changes, **free)
    found = Problem(agents, n=problem.n, q=problem.q, m=len(rows), present=problem.present)
    return found, _words(problem, found, at)


def _coupled(problem: Problem, at: Any) -> NDArray[np.intp]:
    if problem.sense is None:
        return np.arange(problem.m)
    misfit = np.full(problem.m, np.inf)
    size = np.zeros(problem.m)
    if at is not None:
        z = np.asarray(at.z)
        pairs = list(zip(at.x, problem.agents.values(), strict=True))
        misfit = sum(
            (coupled_misfit(a, np.asarray(x), z, problem.m) for x, a in pairs), np.zeros(problem.m)
        )
        size = sum((np.abs(a.b) for _, a in pairs if a.b is not None), size)
    keep = np.abs(misfit) <= ACTIVE * (1.0 + size)
    keep[rows_of(problem.sense, problem.m, equal=True)] = True
    return np.flatnonzero(keep)


def _own(
    agent: Agent,
    name: str,
    right: str,
    sense: Any,
    v: Array | None,
    bounds: tuple[Array | None, Array | None],
) -> dict[str, Any]:
    """Rows of C or D that hold at v, and those entries of v that sit on a bound."""
    block = getattr(agent, name)
    side = getattr(agent, right)
    if block is not None and sense is not None:
        side = np.zeros(len(sense)) if side is None else side
        gap = np.full(len(sense), np.inf) if v is None else np.abs(block @ v - side)
        rows = np.flatnonzero((gap <= ACTIVE * (1.0 + np.abs(side))) | (sense == "=="))
        block = _rows(block, rows)
        side = side[rows]
    tight = np.zeros(0, dtype=np.intp)
    if v is not None:
        at_bound = np.zeros(len(v), dtype=bool)
        for limit in bounds:
            if limit is not None:
                near = np.isfinite(limit)
                near[near] = np.abs(v[near] - limit[near]) <= ACTIVE * (1.0 + np.abs(limit[near]))
                at_bound |= near
        tight = np.flatnonzero(at_bound)
    if tight.size and v is not None:
        unit = sp.csr_array(
            (np.ones(len(tight)), (np.arange(len(tight)), tight)), shape=(len(tight), len(v))
        )
        side = np.zeros(0 if block is None else block.shape[0]) if side is None else side
        block = unit if block is None else sp.csr_array(sp.vstack([sp.csr_array(block), unit]))
        side = np.concatenate([side, v[tight]])
    return {name: block, right: side}


def _rows(block: Any, rows: NDArray[np.intp]) -> Any:
    if block is None or len(rows) == block.shape[0]:
        return block
    return sp.csr_array(block)[rows] if is_sparse(block) else block[rows]


def _words(problem: Problem, found: Problem, at: Any) -> str:
    kept = found.m + sum(found.p.values()) + sum(found.r.values())
    cones = " Conic rows are left out." if problem.conic else ""
    if at is None:
        return (
            "This is the geometry of the equations alone; inequalities and bounds count where "
            f"they are active: pass at=result for their geometry at a solution.{cones}"
        )
    return f"At the solution given {kept} rows hold with equality; only these count here.{cones}"
