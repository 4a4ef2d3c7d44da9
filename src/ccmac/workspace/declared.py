"""What all agents announce first: which blocks exist, curvature, supports, and the form of
quadratics without mixed terms whose z-block is a multiple of the identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg.blocks import entries, has_entries, multiples_of
from ccmac.linalg.symmetric import DENSE_LIMIT
from ccmac.linalg.tolerances import EPS
from ccmac.objectives.base import Objective
from ccmac.objectives.quadratic import Quadratic
from ccmac.objectives.separable import Separable
from ccmac.problem import MATRICES, Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.curvature import CurvatureTable

SOLVES = 20  # d kappa eps times this: what a Cholesky solve may be off by


class OwnQuadratic(NamedTuple):
    """f = x'Hx/2 - g_x'x + (h/2) ||z||^2 - g_z'z + constant; H a vector where it is diagonal."""

    H: Any
    g_x: Array
    h: float
    g_z: Array


Own = Sequence[OwnQuadratic | None]  # of the agents here


def parts_of(objective: Objective, d: int, q: int) -> OwnQuadratic | None:
    """The parts, where the objective is such and its constants are those of a decomposition."""
    if isinstance(objective, Quadratic):
        return _of_quadratic(objective, d)
    if not isinstance(objective, Separable):
        return None
    x = objective.x_part
    z = objective.z_part
    on_z = (0.0, None) if z is None else z.isotropic()
    on_x = (0.0, None) if x is None else x.isotropic()
    if on_z is None:
        return None
    g_z = _zeros(q) if on_z[1] is None else on_z[1]
    if on_x is not None:
        g_x = _zeros(d) if on_x[1] is None else on_x[1]
        return OwnQuadratic(np.full(d, on_x[0]), g_x, on_z[0], g_z)
    if not isinstance(x, Quadratic) or not (x.coordinatewise or d <= DENSE_LIMIT):
        return None
    return OwnQuadratic(x.H.diagonal() if x.coordinatewise else x.H, x.g, on_z[0], g_z)


@lru_cache(maxsize=4)
def _zeros(size: int) -> Array:
    """The same ones for many agents."""
    zeros = np.zeros(size)
    zeros.flags.writeable = False
    return zeros


def _of_quadratic(f: Quadratic, d: int) -> OwnQuadratic | None:
    """Of a quadratic on (x, z) without mixed terms whose z-block is a multiple of I."""
    on_z = f.H[d:, d:]
    h = float(on_z[0, 0]) if on_z.shape[0] else 0.0
    rest = on_z - h * sp.eye_array(on_z.shape[0], format="csr")
    mixed = f.H[:d, d:]
    small = f.coordinatewise or d <= DENSE_LIMIT
    if not small or np.any(entries(rest)) or np.any(entries(mixed)):
        return None
    H = f.H.diagonal()[:d] if f.coordinatewise else f.H[:d, :d]
    return OwnQuadratic(H, f.g[:d], h, f.g[d:])


def own_parts(problem: Problem) -> Own:
    """:func:`parts_of` the agents here."""
    return [parts_of(a.objective, problem.d[i], problem.q) for i, a in problem.agents.items()]


def form_rows(problem: Problem, parts: Own) -> Array:
    """What the agents declare: :func:`_declared`."""
    rows = [_declared(problem, i, part) for i, part in zip(problem.agents, parts, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _declared(problem: Problem, i: int, found: OwnQuadratic | None) -> tuple[float, float, float]:
    """(whether the agent has the form, h, what rounding leaves of A H^{-1} A'w at ||w|| = 1)."""
    agent = problem.agents[i]
    d = problem.d[i]
    if found is None:
        return 0.0, 0.0, 0.0
    if agent.A is None:
        return 1.0, found.h, 0.0
    known = agent.objective.curvature(d, problem.q)
    if not has_entries(agent.A) or known.mu_x <= 0:
        return 0.0, 0.0, 0.0
    values = entries(agent.A)
    square = float(np.vdot(values, values))
    local = 4.0 if found.H.ndim == 1 else SOLVES * d * known.L_x / known.mu_x
    noise = EPS * (problem.m + d + problem.n + local) * square / known.mu_x
    return 1.0, found.h, noise


def has_form(problem: Problem, table: CurvatureTable, known: Array) -> bool:
    """Whether all declare the form of :mod:`ccmac.workspace.dual`, with h, beta not 0."""
    if table.multiples is None or not (table.separable and table.quadratic):
        return False
    if problem.present & {"C", "D"} or not known[:, 0].all():
        return False
    return bool(known[:, 1].any()) and math.fsum(table.multiple) != 0


Declared = tuple[CurvatureTable, Array, Own | None]


def declare(problem: Problem, runtime: Runtime) -> Declared:
    """What all agents declare of their objectives, :func:`form_rows` with the parts of the agents
    here: one averaging.
    """
    parts = own_parts(problem)
    mine = form_rows(problem, parts)
    multiples = multiples_of(problem.blocks("B"))
    if runtime.averaging.hides:  # only sums of h and noise are known
        form = runtime.piggyback(mine[:, :1], whole=True)
        sums = runtime.piggyback(mine[:, 1:])
        table = CurvatureTable(problem, runtime, multiples)
        means = np.tile(sums.value / runtime.n, (runtime.n, 1))
        return table, np.hstack([form.value, means]), parts
    form = runtime.piggyback(mine, whole=True)
    table = CurvatureTable(problem, runtime, multiples)
    return table, form.value, parts


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
    there = runtime.piggyback(rows, whole=True)
    part = problem.restricted(owned) if problem.complete and not runtime.alone else problem
    declared = declare(part, runtime)
    flags = there.value
    limited = bool((flags >= 2).any())
    seen = np.atleast_1d((flags % 2 > 0).any(axis=0))
    if not problem.complete:
        held = {i: problem.agents[i] for i in owned}
        present = [k for k, found in zip(MATRICES, seen, strict=True) if found]
        part = declared[0].problem = problem.holding(held, present)
    return part, limited, declared
