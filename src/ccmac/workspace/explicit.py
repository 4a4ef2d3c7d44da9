"""Problems whose coupled rows give z: vertical learning and its like.

With B_i = beta_i I, beta = sum_i beta_i != 0, f_i = g_i(x_i) + h_i(z) and no equations on z alone,

    z(x) = -(sum_i A_i x_i - b_i) / beta,     F(x) = sum_i g_i(x_i) + h(z(x)),   h = sum_i h_i,

is all of the problem. Here g_i is a strongly convex quadratic and h_i smooth, entry by entry. Where
every agent holds the same share of h (their data have the same digest) each knows h = n h_i, and
its values and slopes cost nothing; else they are summed.
Cost of knowing: one reduction.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.blocks import has_entries
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.entrywise import rise
from ccmac.objectives.function import Function
from ccmac.objectives.separable import Separable
from ccmac.problem import Problem
from ccmac.runtime.base import Runtime
from ccmac.workspace.curvature import CurvatureTable

MIXES = 2.0
DENSE = 3000  # entries of an x_i whose Hessian may be factorized


class Explicit:
    """beta, and h of the agents owned here; ``common``: everybody knows the whole h.

    ``norms`` bounds |A_i|, for all agents.
    """

    def __init__(
        self, problem: Problem, runtime: Runtime, table: CurvatureTable, known: Array
    ) -> None:
        self.problem = problem
        self.runtime = runtime
        self.norms, self.common = known[:, 1], _alike(known)
        self.beta = math.fsum(table.multiple)
        self.rank = min(int(table.d.sum()), problem.m)  # of sum_i A_i (...) A_i'
        zero = SquaredDistance(0.0)
        self.x_parts, self.parts = (
            [getattr(agent.objective, name) or zero for agent in problem.agents.values()]
            for name in ("x_part", "z_part")
        )

    @classmethod
    def of(cls, problem: Problem, runtime: Runtime, table: CurvatureTable) -> Explicit | None:
        """Where the problem has the form of the module text."""
        if table.multiples is None or not (table.separable and table.smooth):
            return None
        if "D" in problem.present or not math.fsum(table.multiple):
            return None
        rows = np.array([_declared(problem, i) for i in problem.agents])
        if runtime.averaging.hides:
            known = _declared_openly(problem, rows, runtime)
        else:
            known = runtime.gather(rows)
        if not ((known[:, 0] != MIXES).all() or _alike(known)):
            return None  # what mixes entries is not summed
        if not known[:, 0].all() or not table.mu_x[table.d > 0].min(initial=math.inf) > 0:
            return None
        return cls(problem, runtime, table, known)

    def slopes(self, z: Array) -> Array:
        """grad h_i(z), one row an agent."""
        return np.stack([part.gradient_at(z) for part in self.parts])

    def bends(self, z: Array) -> Array:
        """h_i''(z), one row an agent."""
        return np.stack([rise(part.gradient_at, z) for part in self.parts])

    def values(self, points: Array) -> Array:
        """h_i at every row of ``points``, one row an agent."""
        return np.array([[part.value_at(z) for z in points] for part in self.parts])

    # -- where everybody knows h ------------------------------------------------------------------
    def value(self, z: Array) -> float:
        """h(z)."""
        return self.problem.n * self.parts[0].value_at(z)

    def slope(self, z: Array) -> Array:
        """grad h(z)."""
        return np.asarray(self.problem.n * self.parts[0].gradient_at(z))

    def gram(self, z: Array, E: Array) -> Array:
        """E h''(z) E'."""
        return self.problem.n * self.parts[0].gram(z, E)


def _declared_openly(problem: Problem, rows: Array, runtime: Runtime) -> Array:
    """The same where rows are hidden: of the norms the sum of squares, in place of the digest the
    name that a function has for all, if it has one and those here are the same.
    """
    names = np.zeros((len(rows), 3))
    names[:, 0] = list(problem.agents)
    for k, agent in enumerate(problem.agents.values()):
        part = getattr(agent.objective, "z_part", None)
        if isinstance(part, Function) and part.public_name is not None and _alike(rows):
            names[k] = [-1.0, part.public_name, 0.0]
    public = runtime.gather(np.hstack([rows[:, :1], names]))
    square = float(runtime.total(rows[:, 1:2] ** 2)[0])
    norms = np.full((runtime.n, 1), math.sqrt(square / runtime.n) * (1 + 1e-12))
    return np.hstack([public[:, :1], norms, public[:, 1:]])


def _alike(known: Array) -> bool:
    """Whether the digests of all h_i are equal."""
    return bool((known[:, 2:] == known[0, 2:]).all())


def _declared(problem: Problem, i: int) -> list[float]:
    """(has the agent the form, MIXES where h_i mixes entries; a bound on |A_i|; h_i's digest)."""
    objective = problem.agents[i].objective
    d = problem.d[i]
    if not isinstance(objective, Separable):
        return [0.0] * 5
    x = objective.x_part
    z = objective.z_part
    small = d <= DENSE or (x is not None and x.coordinatewise)
    quadratic = x is not None and "quadratic" in x.capabilities and small
    known = z is None or ("gradient" in z.capabilities and z.has_gram)
    A = problem.agents[i].A
    if (d and not quadratic) or not known or not (A is None or has_entries(A)):
        return [0.0] * 5
    return [1.0 if z is None or z.coordinatewise else MIXES, _norm(A), *digest(z)]


def digest(part: Any) -> list[float]:
    """Of a function's data, in three floats."""
    state = hashlib.sha256()
    add_to_digest(state, part)
    return [float(int(state.hexdigest()[k : k + 12], 16)) for k in (0, 12, 24)]


def _norm(block: Any) -> float:
    """A bound on the norm of |block|: that of Frobenius, or of rows and columns."""
    if block is None or 0 in block.shape:
        return 0.0
    entries = abs(block)
    rows, columns = (float(np.asarray(entries.sum(axis=k)).max()) for k in (1, 0))
    frobenius = float(np.linalg.norm(block.data if is_sparse(block) else np.ravel(block)))
    return min(frobenius, math.sqrt(rows * columns)) * (1 + 1e-12)


def add_to_digest(state: Any, value: Any) -> None:
    """Data of any kind to a digest, with their shapes, so that nothing runs into its neighbor."""
    if isinstance(value, Function):
        state.update(type(value).__name__.encode())
        value = value.state()
    if isinstance(value, Mapping):
        value = [item for pair in sorted(value.items()) for item in pair]
    if isinstance(value, list | tuple):
        state.update(b"[%d" % len(value))
        for item in value:
            add_to_digest(state, item)
    elif is_sparse(value):
        rows = value.tocsr()
        add_to_digest(state, [*rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr])
    elif isinstance(value, np.ndarray):
        state.update(str((value.dtype, value.shape)).encode() + value.tobytes())
    else:
        state.update(f"{value!r};".encode())
