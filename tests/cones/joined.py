"""A problem of quadratics as one conic program, solved by Clarabel: an independent judge."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

import ccmac
from ccmac.inputs import Array

CONES = {
    ccmac.cones.Zero: clarabel.ZeroConeT,
    ccmac.cones.Nonnegative: clarabel.NonnegativeConeT,
    ccmac.cones.SecondOrder: clarabel.SecondOrderConeT,
}
WORDS = {
    "Solved": "optimal",
    "AlmostSolved": "optimal",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded",
}


@dataclass(frozen=True)
class Joined:
    """What Clarabel says: a word of ccmac (or its own), the cost, the coupled and conic prices."""

    status: str
    cost: float
    coupled: Array
    cones: list[Array]


def joined(problem: ccmac.Problem, tol: float = 1e-9) -> Joined:
    """The sum of all agents' problems, with all rows side by side."""
    starts = np.cumsum([0, *problem.d.values()])
    size = int(starts[-1]) + problem.q
    at_z = np.arange(size - problem.q, size)
    H: Any = sp.csc_array((size, size))
    g = np.zeros(size)
    rows: list[tuple[Any, Array, Any]] = []  # K u + s = b, s in a cone of Clarabel
    coupled: Any = sp.csr_array((problem.m, size))
    right = np.zeros(problem.m)

    def wide(block: Any, at: Any) -> Any:
        pick = sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), size))
        return sp.csr_array(block) @ pick

    def put(K: Any, b: Array, sense: Any) -> None:
        for k, word in enumerate(_senses(sense, len(b))):
            sign = -1.0 if word == ">=" else 1.0
            cone = clarabel.ZeroConeT if word == "==" else clarabel.NonnegativeConeT
            rows.append((sign * K[[k]], sign * b[[k]], cone(1)))

    def bound(at: Any, lower: Any, upper: Any) -> None:
        for ends, word in ((lower, ">="), (upper, "<=")):
            if ends is not None:
                known = np.flatnonzero(np.isfinite(ends))
                put(
                    wide(sp.eye_array(len(at), format="csr")[known], at),
                    ends[known],
                    [word] * len(known),
                )

    own: list[list[int]] = []
    for k, (i, agent) in enumerate(problem.agents.items()):
        at_x = np.arange(starts[k], starts[k + 1])
        both = np.append(at_x, at_z)
        mine, slope, _ = agent.objective.quadratic(problem.d[i], problem.q)
        pick = wide(sp.eye_array(len(both)), both)
        H = H + pick.T @ sp.csr_array(mine) @ pick
        g[both] += slope
        for name, at in (("A", at_x), ("B", at_z)):
            if getattr(agent, name) is not None:
                coupled = coupled + wide(getattr(agent, name), at)
        right += 0.0 if agent.b is None else agent.b
        for name, side, at in (("C", "c", at_x), ("D", "e", at_z)):
            block = getattr(agent, name)
            if block is not None:
                given = getattr(agent, side)
                b = np.zeros(block.shape[0]) if given is None else given
                put(wide(block, at), b, getattr(agent, f"{name}_sense"))
        bound(at_x, agent.lower, agent.upper)
        own.append([])
        first = 0
        for cone in agent.cones or ():
            part = slice(first, first + cone.size)
            K = sp.csr_array((cone.size, size))
            for block, at in ((agent.G, at_x), (agent.H, at_z)):
                K = K if block is None else K + wide(block[part], at)
            own[-1].append(len(rows))
            h = np.zeros(cone.size) if agent.h is None else agent.h[part]
            rows.append((K, h, CONES[type(cone)](cone.size)))
            first += cone.size
    bound(at_z, problem.z_lower, problem.z_upper)
    first_coupled = len(rows)
    put(coupled, right, problem.sense)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    K = sp.csc_array(sp.vstack([sp.csr_array((0, size)), *(row for row, _, _ in rows)]))
    b = np.concatenate([np.zeros(0), *(side for _, side, _ in rows)])
    P = sp.csc_array(sp.triu(H))
    found = clarabel.DefaultSolver(P, -g, K, b, [cone for _, _, cone in rows], settings).solve()
    ends = np.cumsum([0, *(len(side) for _, side, _ in rows)])
    prices = [np.array(found.z[a:b]) for a, b in itertools.pairwise(ends)]
    signs = [-1.0 if word == ">=" else 1.0 for word in _senses(problem.sense, problem.m)]
    return Joined(
        WORDS.get(str(found.status), str(found.status)),
        float(found.obj_val),
        np.array(signs) * np.concatenate([np.zeros(0), *prices[first_coupled:]]),
        [np.concatenate([np.zeros(0), *(prices[r] for r in mine)]) for mine in own],
    )


def _senses(sense: Any, rows: int) -> list[str]:
    return np.broadcast_to("==" if sense is None else sense, rows).tolist()  # type: ignore[no-any-return]
