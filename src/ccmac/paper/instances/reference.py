"""Dense reference solution of a quadratic problem, independent of channels and solvers.

On u = (x_1, ..., x_n, z), without copies, the constraints are G u = h with

    G = [A_1 .. A_n  sum B_i;  diag(C_i) 0;  0 D_1; ..; 0 D_n],   h = (sum b_i, c_1, .., e_n).

u = G^+ h + N y with N an orthonormal kernel basis and y the minimum-norm minimiser of the reduced
quadratic. Cost: one SVD of G, cubic in the total dimension, no ledger units: for tests, examples
and closed-form checks only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from ccmac.errors import InputError
from ccmac.inputs import Array
from ccmac.linalg import blocks
from ccmac.problem import Problem

CONSISTENT = 1e-9


@dataclass(frozen=True, eq=False)
class KKTSolution:
    """Minimum-norm minimiser and minimum-norm multipliers.

    Stationarity reads  grad f_i,x + A_i' coupled + C_i' local_i = 0  for every i, and
    sum_i (grad f_i,z + B_i' coupled + D_i' shared_i) = 0.
    """

    x: list[Array]
    z: Array
    coupled: Array
    local: list[Array]
    shared: list[Array]
    objective: float
    unique: bool

    @property
    def vector(self) -> Array:
        """(x_1, ..., x_n, z)."""
        return np.concatenate([*self.x, self.z])


def dense(block: Any, shape: tuple[int, int]) -> Array:
    """A block as an array; zeros if absent."""
    return np.zeros(shape) if block is None else blocks.dense(block)


def constraints(problem: Problem) -> tuple[Array, Array]:
    """(G, h) of all constraints on (x_1, ..., x_n, z)."""
    _needs_all(problem)
    agents = problem.agents
    d = problem.d
    q = problem.q
    m = problem.m
    C = la.block_diag(*(dense(a.C, (problem.p[i], d[i])) for i, a in agents.items()))
    D = np.vstack([dense(a.D, (problem.r[i], q)) for i, a in agents.items()])
    B = np.sum([dense(a.B, (m, q)) for a in agents.values()], axis=0)
    G = np.vstack(
        [
            np.hstack([*(dense(a.A, (m, d[i])) for i, a in agents.items()), B]),
            np.hstack([C, np.zeros((len(C), q))]),
            np.hstack([np.zeros((len(D), C.shape[1])), D]),
        ]
    )
    h = [np.sum([np.zeros(m) if a.b is None else a.b for a in agents.values()], axis=0)]
    for name, sizes in (("c", problem.p), ("e", problem.r)):
        given = ((getattr(a, name), sizes[i]) for i, a in agents.items())
        h += [np.zeros(size) if v is None else v for v, size in given]
    return G, np.concatenate(h)


def infeasibility(problem: Problem) -> float:
    """Distance of h from Range G, relative to max(1, ||h||): zero iff the problem is feasible."""
    G, h = constraints(problem)
    left, _, _, rank = _svd(G)
    range_basis = left[:, :rank]
    return float(np.linalg.norm(h - range_basis @ (range_basis.T @ h)) / max(1.0, _norm(h)))


def solve_kkt(problem: Problem) -> KKTSolution:
    """Solve a problem whose objectives are all quadratic (capability ``quadratic``).

    Raises InputError when the constraints contradict one another or the objective is unbounded.
    """
    G, h = constraints(problem)
    H, g, constant = _objective(problem)
    left, values, right, rank = _svd(G)
    particular = right[:rank].T @ ((left[:, :rank].T @ h) / values[:rank])
    if _norm(G @ particular - h) > CONSISTENT * max(1.0, _norm(h)):
        raise InputError(
            "problem: the constraints contradict one another; check b, c and e of all agents"
        )
    kernel = right[rank:].T
    reduced = kernel.T @ H @ kernel
    slope = kernel.T @ (g - H @ particular)
    y, _, curved, _ = np.linalg.lstsq(reduced, slope, rcond=None)
    if _norm(reduced @ y - slope) > CONSISTENT * max(1.0, _norm(slope)):
        raise InputError("problem: unbounded below on the feasible set; add strong convexity")
    u = particular + kernel @ y
    multipliers = left[:, :rank] @ ((right[:rank] @ (g - H @ u)) / values[:rank])
    value = float(0.5 * u @ H @ u - g @ u) + constant
    unique = int(curved) == kernel.shape[1]
    return _split(problem, u, multipliers, value, unique)


def _needs_all(problem: Problem) -> None:
    if not problem.complete:
        raise InputError(
            f"problem: {len(problem.agents)} of {problem.n} agents are here; "
            "the dense reference needs all of them"
        )


def _objective(problem: Problem) -> tuple[Array, Array, float]:
    """(H, g, constant) of sum_i f_i on (x_1, ..., x_n, z)."""
    q = problem.q
    total = sum(problem.d.values())
    H = np.zeros((total + q, total + q))
    g = np.zeros(total + q)
    constant = 0.0
    start = 0
    for i, agent in problem.agents.items():
        d = problem.d[i]
        if "quadratic" not in agent.objective.capabilities:
            raise InputError(
                f"agent {i}, objective: {type(agent.objective).__name__} is not quadratic; "
                "the dense reference solves quadratic problems only"
            )
        block, linear, shift = agent.objective.quadratic(d, q)
        at = np.concatenate([np.arange(start, start + d), np.arange(total, total + q)])
        H[np.ix_(at, at)] += dense(block, (d + q, d + q))
        g[at] += linear
        constant += shift
        start += d
    return H, g, constant


def _svd(G: Array) -> tuple[Array, Array, Array, int]:
    """Full SVD and numerical rank, the zero matrix and empty ones included."""
    left, values, right = np.linalg.svd(G, full_matrices=True)
    top = float(values[0]) if values.size else 0.0
    rank = int(np.sum(values > max(G.shape) * np.finfo(float).eps * top)) if top else 0
    return left, values, right, rank


def _norm(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _split(
    problem: Problem, u: Array, multipliers: Array, value: float, unique: bool
) -> KKTSolution:
    *x, z = np.split(u, np.cumsum(list(problem.d.values())))
    counts = [problem.m, *problem.p.values(), *problem.r.values()]
    coupled, *own = np.split(multipliers, np.cumsum(counts)[:-1])
    return KKTSolution(x, z, coupled, own[: problem.n], own[problem.n :], value, unique)
