"""The sum of all agents' losses of z, for reductions in which z is not copied.

Pooling is a change of representation: whoever holds z must know sum_i h_i(z) and sum_i B_i. It is
possible when f_i(x, z) = g_i(x) + h_i(z), the B_i are multiples of the identity, there is no D, and
the h_i are squared distances, or one elementwise loss with different weights. Everything else is
refused with the reason. Cost, in setup: two reductions, and one averaging of q + 1 floats for
squared distances.
"""

from __future__ import annotations

import zlib

import numpy as np

from ccmac.errors import MethodRefused
from ccmac.linalg.blocks import identity_multiple
from ccmac.objectives import Separable, SquaredDistance
from ccmac.objectives.function import Function
from ccmac.objectives.loss import Loss
from ccmac.runtime.base import Runtime
from ccmac.workspace import Workspace

REMEDY = "use reduction='R1', which fits every problem"
UNKNOWN = [-1.0, 0.0, 0.0, 0.0]


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


def pooled_loss(work: Workspace, name: str) -> tuple[int, list[Function]]:
    """(the first agent that has a loss of z, sum_i h_i as each owned agent knows it)."""
    runtime = work.runtime
    objectives = [agent.objective for agent in work.problem.agents.values()]
    parts = [f.z_part if isinstance(f, Separable) else None for f in objectives]
    rows = [
        _kind(part) if isinstance(f, Separable) else UNKNOWN
        for f, part in zip(objectives, parts, strict=True)
    ]
    kinds = runtime.gather(np.array(rows))
    holders = np.flatnonzero(kinds[:, 0])
    if not len(holders):
        return 0, [SquaredDistance(0.0) for _ in parts]
    present = kinds[holders]
    holder = int(holders[0])
    if np.all(present[:, 0] == 1):
        return holder, _pooled_squares(runtime, parts, work.problem.q)
    if len(np.unique(present[:, :2], axis=0)) > 1 or np.any(present[:, 0] < 0):
        raise MethodRefused(
            f"reduction {name} needs objectives g(x) + h(z) with squared distances h, or with one "
            f"smooth elementwise loss h that differs by its weight only; {REMEDY}"
        )
    if name == "R3" and len(holders) < runtime.n:
        raise MethodRefused(f"reduction R3 needs the labels at every agent; {REMEDY}")
    weight, ridge = np.add.reduce(present[:, 2:])
    totals = {"weight": float(weight), "ridge": float(ridge)}
    return holder, [
        type(part)(**{**part.state(), **totals}) if isinstance(part, Loss) else SquaredDistance(0.0)
        for part in parts
    ]


def _kind(part: Function | None) -> list[float]:
    """[0 absent, 1 squared distance, 2 elementwise loss, -1 other; digest, weight, ridge]."""
    if part is None:
        return [0.0, 0.0, 0.0, 0.0]
    if part.isotropic() is not None:
        return [1.0, 0.0, 0.0, 0.0]
    plain = isinstance(part, Loss) and part.M is None and np.ndim(part.weight) == 0
    if plain and isinstance(part, Loss) and np.isfinite(part.slope_lipschitz):
        digest = zlib.crc32(type(part).__name__.encode())
        for value in part.parameters:
            digest = zlib.crc32(np.ascontiguousarray(value, dtype=np.float64).tobytes(), digest)
        return [2.0, float(digest), part.weight, part.ridge]
    return UNKNOWN


def _pooled_squares(runtime: Runtime, parts: list[Function | None], q: int) -> list[Function]:
    """sum of (a_i/2)||z||^2 - <s_i, z> as one squared distance, from its averages."""
    rows = np.zeros((len(parts), q + 1))
    for row, part in zip(rows, parts, strict=True):
        known = None if part is None else part.isotropic()
        if known is not None:
            row[0] = known[0]
            if known[1] is not None:
                row[1:] = known[1]
    weight, *centre = runtime.average(rows)[0]
    if weight <= 0:
        return [SquaredDistance(0.0) for _ in parts]
    return [SquaredDistance(runtime.n * weight, np.array(centre) / weight) for _ in parts]
