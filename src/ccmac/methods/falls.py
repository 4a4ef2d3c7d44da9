"""Whether a convex quadratic falls without bound on the equations, before a method starts.

    d in ker K and ker H,   <g, d> < 0

The gradient's part in ker K is tried first (:mod:`ccmac.certificates.recession`): it decides where
F is linear, and is no such d where it bends. ker H is the intersection of the agents' ker H_i, so
that no d exists where every g_i is orthogonal to the (x_i, z) with H_i (x_i, z) = 0 and
C_i x_i = 0; least squares always are. Everybody tells whether its own is. Where one is not, the
summed system of ``cross-direct`` has the directions that are free, and g's part along them decides.
Cost: a float with the next message; if somebody slopes, the sum of :mod:`ccmac.methods.system` and
an averaging for each direction tried.
"""

from __future__ import annotations

import numpy as np

from ccmac.certificates.duality import Duality, DualityJudge
from ccmac.certificates.gap import Goal
from ccmac.certificates.recession import Recession, recession
from ccmac.linalg.blocks import dense
from ccmac.methods.base import Request
from ccmac.methods.direct import Direct
from ccmac.methods.system import SLIGHT, affordable
from ccmac.workspace import Workspace
from ccmac.workspace.flats import flat_directions

UNSEEN = (
    "the objective slopes along directions without curvature that are too many to be looked at "
    "together: whether it falls without end is not known; add curvature, limits or equations"
)


def falling(work: Workspace, request: Request) -> Recession | None:
    """A direction that proves that F has no least value; None where none is found.

    What can be neither proved nor excluded is added to the doubts of ``work``.
    """
    if "quadratic" not in work.capabilities or (reduced := work.gather_constraints()) is None:
        return None
    if not work.curvature.L.any():
        return recession(work)
    sloping = work.runtime.ride(np.array([[float(slopes)] for slopes in _own_slopes(work)]))
    found = recession(work)
    if found is not None or not sloping.value.any():
        return found
    if not affordable(work, reduced):
        work.doubts.append(UNSEEN)
        return None
    start = request.x0, request.z0
    duality = Duality.unbounded_below(work, reduced, start)
    return DualityJudge(duality, Goal(request.tol), {}).fall(Direct(work, reduced))


def _own_slopes(work: Workspace) -> list[bool]:
    """Of the agents owned here: whether g_i has a part on ker H_i and ker C_i, beyond rounding."""
    problem = work.problem
    found = []
    for kernel, (i, agent) in zip(work.kernels, problem.agents.items(), strict=True):
        work.runtime.mind_the_time()
        H, g, _ = agent.objective.quadratic(problem.d[i], problem.q)
        d = problem.d[i]
        N = kernel.basis
        whole = dense(H)
        own = np.vstack([N.T @ whole[:d], whole[d:]])
        own = np.hstack([own[:, :d] @ N, own[:, d:]])
        inside = np.concatenate([N.T @ g[:d], g[d:]])
        size = np.abs(whole)
        sizes = [np.einsum("ij,ij->j", np.abs(N), size[:d, :d] @ np.abs(N)), np.diag(size)[d:]]
        flat = flat_directions(own, np.concatenate(sizes)).basis
        least = SLIGHT * float(np.linalg.norm(g))
        found.append(bool(np.linalg.norm(flat.T @ inside) > least))
    return found
