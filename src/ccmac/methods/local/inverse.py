"""Exact minimisation of one agent's quadratic under its own equations C x = c, D z = e.

With V_C, V_D orthonormal bases of the row spaces and E = diag(V_C, V_D), the minimiser of
u'Hu/2 - g'u + h'u on {E u = r} is  u = u_0 + T (g - H u_0 - h),  u_0 = E'r,  where

    T = M - M E'(E M E')^{-1} E M,     M = H^{-1},

vanishes on Range(E'). H is factorized once (diagonal, sparse LU or Cholesky), never inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.symmetric import diagonal_matrix, factorized
from ccmac.objectives.separable import Separable
from ccmac.workspace import Workspace
from ccmac.workspace.curvature import CurvatureTable

LEAST_SHARE = 0.25
PROBES = 8


Solve = Callable[[Array], Array]


def constrained_inverse(solve: Solve, E: Array) -> Solve:
    """v -> T v for solve = H^{-1} and E with orthonormal rows (possibly none)."""
    if not len(E):
        return solve
    images = np.stack([solve(row) for row in E], axis=1)
    factor = scipy.linalg.cho_factor(E @ images)

    def apply(v: Array) -> Array:
        u = solve(v)
        return np.asarray(u - images @ scipy.linalg.cho_solve(factor, E @ u, check_finite=False))

    return apply


def curvature_shift(table: CurvatureTable) -> Array:
    """a_i of the agents here: f_i + (a_i/2) ||z_i||^2, sum a_i = 0, changes nothing where copies
    agree.

    Used when some agents have (nearly) no curvature in z, as when one agent owns the labels: every
    agent then gets the mean curvature. Zero for objectives that couple x and z.
    """
    h = table.mu_z
    if not table.separable or not np.isfinite(h).all() or h.min() >= LEAST_SHARE * h.mean():
        return np.zeros(len(table.own("mu_z")))
    return np.asarray(h.mean() - table.own("mu_z"))


class OwnEquations:
    """Of the agents owned here: orthonormal rows of C_i and D_i, a point that satisfies them."""

    def __init__(self, work: Workspace) -> None:
        self._space = work.space
        self._local = work.local
        self._shared = work.shared
        self._sides = np.split(self._shared.right, np.cumsum(self._shared.family.rows)[:-1])

    def of(self, k: int) -> tuple[Array, Array, Array]:
        """(V_C, V_D, point) of the k-th agent; no rows where there are no equations."""
        space = self._space
        local = self._local
        shared = self._shared
        d = space.d[k]
        q = space.q
        V_C = np.zeros((0, d)) if local.empty else local.bases[k]
        V_D = np.zeros((0, q)) if shared.empty else shared.family.blocks[k]
        point = np.zeros(d + q)
        if len(V_C):
            point[:d] = local.point[space.offsets[k] : space.offsets[k + 1]]
        if len(V_D):
            point[d:] = V_D.T @ self._sides[k]
        return V_C, V_D, point


class LocalInverses:
    """T_i and u_i(h) of the agents owned here; one call over all agents is one argmin."""

    def __init__(self, work: Workspace) -> None:
        problem = work.problem
        self.space = work.space
        self.ledger = work.ledger
        q = problem.q
        own = OwnEquations(work)
        shift = curvature_shift(work.curvature)
        self.shifted = bool(shift.any())
        self._plain = _multiples_of_identity(work, shift)
        if self._plain is not None:
            return
        self._apply: list[Solve] = []
        self._origin: list[tuple[Array, Array]] = []
        for k, (i, agent) in enumerate(problem.agents.items()):
            d = problem.d[i]
            H, g, _ = agent.objective.quadratic(d, q)
            H = plus_diagonal(H, np.repeat([0.0, shift[k]], [d, q]))
            V_C, V_D, point = own.of(k)
            E = scipy.linalg.block_diag(V_C, V_D)
            self._apply.append(constrained_inverse(factorized(H, np.zeros(d + q)), E))
            self._origin.append((point, np.asarray(g - H @ point)))

    def minimisers(self, h: Array) -> Array:
        """argmin f_i + <h_i, u> under the agent's equations, all agents. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        if self._plain is not None:
            weights, linear = self._plain
            return np.asarray((linear - h) / weights)
        out = self.space.zeros()
        for k, (point, slope) in enumerate(self._origin):
            self.space.write(out, k, point + self._apply[k](slope - self.space.read(h, k)))
        return out

    def apply(self, h: Array) -> Array:
        """T_i h_i, all agents. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        if self._plain is not None:
            return np.asarray(h / self._plain[0])
        out = self.space.zeros()
        for k, inverse in enumerate(self._apply):
            self.space.write(out, k, inverse(self.space.read(h, k)))
        return out


def _multiples_of_identity(work: Workspace, shift: Array) -> tuple[Array, Array] | None:
    """(diagonal, linear term) of all agents' quadratics as two vectors of the space.

    None unless every Hessian is a multiple of I in x_i and in z, and no agent has equations of its
    own: then nothing is factorized and no step loops over agents.
    """
    if not (work.local.empty and work.shared.empty):
        return None
    space = work.space
    weights = space.zeros()
    linear = space.zeros()
    for k, (i, agent) in enumerate(work.problem.agents.items()):
        f = agent.objective
        if not isinstance(f, Separable):
            return None
        on_x, on_z = (
            (0.0, None) if part is None else part.isotropic() for part in (f.x_part, f.z_part)
        )
        if on_x is None or on_z is None:
            return None
        (a_x, s_x), (a_z, s_z) = on_x, on_z
        space.x_of(weights, k)[...], space.z(weights)[k] = a_x, a_z + shift[i]
        space.x_of(linear, k)[...] = 0.0 if s_x is None else s_x
        space.z(linear)[k] = 0.0 if s_z is None else s_z
    return (weights, linear) if (weights > 0).all() else None


def plus_diagonal(H: Any, diagonal: Array) -> Any:
    """H + diag(diagonal), sparse where H is."""
    if not diagonal.any():
        return H
    if is_sparse(H):
        return sp.csr_array(H + diagonal_matrix(diagonal))
    return H + np.diag(diagonal)


# -- both channels of the dual on one scale --------------------------------------------------------
def channel_curvatures(
    work: Workspace, energies: Callable[[Array], Array], seed: int
) -> tuple[float, float]:
    """Mean curvature of the dual in the coupled and consensus multipliers; (1, 1) without both.

    tr sum_i K_i T_i K_i' / m with K_i = [A_i B_i], and mean_i tr (T_i)_zz / q, traces by random
    probes: their ratio omega brings both channels to one scale. ``energies(h)`` is <h_i, T_i h_i>,
    one number an agent. Cost: PROBES + 1 of them, one reduction; nothing where an earlier solve
    has paid.
    """
    known = work.plans.get(("curvatures", seed))
    found: tuple[float, float] = known[0] if known else _probed(work, energies, seed)
    if work.recycles:
        work.plans["curvatures", seed] = found, frozenset()
    return found


def _probed(work: Workspace, energies: Callable[[Array], Array], seed: int) -> tuple[float, float]:
    space = work.space
    coupling = work.coupling
    runtime = space.runtime
    width = coupling.width
    if coupling.empty or not space.q:
        return 1.0, 1.0
    common = np.random.default_rng(seed)
    traces = np.zeros((space.count, 2))
    for _ in range(PROBES):
        multiplier = common.choice([-1.0, 1.0], (1, width))
        traces[:, 0] += energies(space.joined(*coupling.adjoint(multiplier)))
    copies = np.stack(
        [np.random.default_rng([seed, i]).choice([-1.0, 1.0], space.q) for i in runtime.owned]
    )
    traces[:, 1] = energies(space.joined(np.zeros(space.x_size), copies))
    coupled, shared = runtime.total(traces)
    if min(coupled, shared) <= 0:
        return 1.0, 1.0
    return float(coupled / (PROBES * width)), float(shared / (runtime.n * space.q))
