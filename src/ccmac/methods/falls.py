"""Whether a convex quadratic falls without bound on the equations, before a method starts.

    d in ker K and ker H,   <g, d> < 0

ker H is the intersection of the agents' ker H_i: no such d exists where every g_i is orthogonal to
the (x_i, z) with H_i (x_i, z) = 0 and C_i x_i = 0, as those of least squares are. Everybody tells
whether its own is. Where one is not, the summed system of ``cross-direct`` has the directions that
are free, and g's part along them is tested (:mod:`ccmac.certificates.recession`).
Cost: a float with the next message; if somebody slopes, the sum of :mod:`ccmac.methods.system` and
an averaging for each direction tried.
"""

from __future__ import annotations

import numpy as np

from ccmac.certificates.recession import Recession, Recessions
from ccmac.linalg.blocks import dense
from ccmac.linalg.tolerances import PROMISED, RANK
from ccmac.methods.base import Request
from ccmac.methods.direct import Direct
from ccmac.methods.system import affordable
from ccmac.workspace import Workspace

UNSEEN = (
    "the objective slopes along directions without curvature that are too many to be looked at "
    "together: whether it falls without end is not known; add curvature, limits or equations"
)


def falling(work: Workspace, request: Request) -> Recession | None:
    """A recession direction that proves that F has no least value; None where none is found."""
    if "quadratic" not in work.capabilities or (reduced := work.gather_constraints()) is None:
        return None
    sloping = work.runtime.piggyback(np.array([[float(slopes)] for slopes in _own_slopes(work)]))
    if not sloping.value.any():
        return None
    if not affordable(work, reduced):
        work.doubts.append(UNSEEN)
        return None
    problem = work.problem
    forms = [a.objective.polyhedral(problem.d[i], problem.q) for i, a in problem.agents.items()]
    test = Recessions(work, reduced, forms).test
    tried = (test(*direction) for direction in Direct(work, reduced).steepest())
    return next((found for found in tried if found is not None), None)


def _own_slopes(work: Workspace) -> list[bool]:
    """Of the agents owned here: whether g_i has a part on ker H_i and ker C_i."""
    problem = work.problem
    found = []
    for kernel, (i, agent) in zip(work.kernels, problem.agents.items(), strict=True):
        work.runtime.mind_the_time()
        H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
        d = problem.d[i]
        N = kernel.basis
        whole = np.vstack([N.T @ dense(H)[:d], dense(H)[d:]])
        own = np.hstack([whole[:, :d] @ N, whole[:, d:]])
        inside = np.concatenate([N.T @ g[:d], g[d:]])
        fit = np.linalg.lstsq(own, inside, rcond=RANK)[0]
        left = inside - own @ fit
        found.append(bool(np.linalg.norm(left) > PROMISED * np.linalg.norm(g)))
    return found
