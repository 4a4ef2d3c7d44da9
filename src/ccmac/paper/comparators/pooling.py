"""The sum of all agents' losses of z, for reductions in which z is not copied.

Pooling is a change of representation: whoever holds z must know sum_i h_i(z) and sum_i B_i. It is
possible when f_i(x, z) = g_i(x) + h_i(z) with squared distances h_i, the B_i are multiples of the
identity, and there is no D. Everything else is refused with the reason. Cost, in setup: two
reductions, and one averaging of q + 1 floats.
"""

from __future__ import annotations

import numpy as np

from ccmac.errors import MethodRefused
from ccmac.inputs import Array
from ccmac.linalg.blocks import identity_multiple
from ccmac.objectives import Separable, SquaredDistance
from ccmac.workspace import Workspace

REMEDY = "use reduction='R1', which fits every problem"


def pooled_multiple(work: Workspace, name: str) -> float:
    """beta of sum_i B_i = beta I."""
    problem = work.problem
    rows = []
    for i, agent in problem.agents.items():
        multiple = 0.0 if agent.B is None else identity_multiple(agent.B)
        rows.append([np.nan if multiple is None else multiple, float(problem.r[i] > 0)])
    values = work.runtime.gather(np.array(rows))
    if values[:, 1].any():
        raise MethodRefused(f"reduction {name} has no place for equations D z = e; {REMEDY}")
    beta = float(np.add.reduce(values[:, 0]))
    if not np.isfinite(beta) or beta == 0.0:
        raise MethodRefused(
            f"reduction {name} needs B_i that are multiples of the identity (sparse) with a sum "
            f"that is not zero; {REMEDY}"
        )
    return beta


def pooled_loss(work: Workspace, name: str) -> tuple[int, SquaredDistance]:
    """(the first agent that has a loss of z, sum_i h_i): (a_i/2)||z||^2 - <s_i, z>, summed."""
    runtime = work.runtime
    q = work.problem.q
    rows = np.zeros((work.space.count, q + 1))
    kinds = np.zeros((work.space.count, 2))  # has a loss of z; it is no squared distance
    for k, agent in enumerate(work.problem.agents.values()):
        f = agent.objective
        part = f.z_part if isinstance(f, Separable) else None
        known: tuple[float, Array | None] | None = (0.0, None)
        if part is not None:
            known = part.isotropic()
        kinds[k] = part is not None, known is None or not isinstance(f, Separable)
        if known is not None:
            rows[k, 0] = known[0]
            rows[k, 1:] = 0.0 if known[1] is None else known[1]
    found = runtime.gather(kinds)
    if found[:, 1].any():
        raise MethodRefused(
            f"reduction {name} needs objectives g(x) + h(z) with squared distances h; {REMEDY}"
        )
    holders = np.flatnonzero(found[:, 0])
    if not len(holders):
        return 0, SquaredDistance(0.0)
    weight, *centre = runtime.average(rows)[0]
    total = SquaredDistance(0.0)
    if weight > 0:
        total = SquaredDistance(runtime.n * weight, np.array(centre) / weight)
    return int(holders[0]), total
