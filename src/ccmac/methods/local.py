"""Each agent's own minimisations, at given multipliers and under its own equations.

With V_C, V_D orthonormal bases of the row spaces and E = diag(V_C, V_D), the minimiser of
u'Hu/2 - g'u + h'u on {E u = r} is  u = u_0 + T (g - H u_0 - h),  u_0 = E'r,  where

    T = M - M E'(E M E')^{-1} E M,     M = H^{-1},

vanishes on Range(E'). H is factorized once (diagonal, sparse LU or Cholesky), never inverted. Of
smooth strongly convex functions

    u_i(h) = argmin f_i(u) + (a_i/2) ||z||^2 + <h_i, u>   s.t.  C_i x = c_i,  D_i z = e_i

with the shifts a_i (sum 0) of :func:`curvature_shift`. x and z are minimised apart where f_i is
g(x) + h(z). A quadratic is factorized once; other functions with a Hessian take Newton steps, the
rest L-BFGS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.linalg
import scipy.sparse as sp

from ccmac.inputs import Array, is_sparse
from ccmac.linalg.symmetric import diagonal_matrix, factorized
from ccmac.objectives.base import Function, Objective
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.separable import Separable
from ccmac.workspace import Workspace
from ccmac.workspace.declared import CurvatureTable

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
    if not table.separable or not np.isfinite(h).all() or h.min() >= 0.25 * h.mean():
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
        V_C = local.family.blocks[k]
        V_D = shared.family.blocks[k]
        point = np.zeros(d + space.q)
        if len(V_C):
            point[:d] = local.point[space.offsets[k] : space.offsets[k + 1]]
        if len(V_D):
            point[d:] = V_D.T @ self._sides[k]
        return V_C, V_D, point


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


ARMIJO = 1e-4  # share of the fall that a slope promises which a step has to bring


class Smooth(ABC):
    """f with its equations: ``E`` has orthonormal rows, ``point`` satisfies them."""

    E: Array
    point: Array

    @abstractmethod
    def value(self, u: Array, linear: Array) -> float:
        """f(u) + <linear, u>."""

    @abstractmethod
    def gradient(self, u: Array, linear: Array) -> Array:
        """grad f(u) + linear."""

    def inverse(self, u: Array) -> Solve:
        """v -> T v, T the inverse of f''(u) along the equations."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    def feasible(self, u: Array) -> Array:
        """The point of {E u = r} nearest to u."""
        return np.asarray(u + self.E.T @ (self.E @ (self.point - u)))

    def tangent(self, v: Array) -> Array:
        """v without its components along the equations."""
        return np.asarray(v - self.E.T @ (self.E @ v))

    def newton(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, gradients spent, 3 a step) by Newton steps, halved until they descend."""
        u = self.feasible(start)
        gradient = self.gradient(u, linear)
        scale = float(np.linalg.norm(linear)) + float(np.linalg.norm(gradient))
        count = 1
        least = np.inf
        for _ in range(60):
            size = float(np.linalg.norm(self.tangent(gradient)))
            # Rounding may forbid the tolerance: near the end a step that gains nothing is last.
            if size <= 1e-13 * scale or (size >= 0.5 * least and size < 1e-8 * scale):
                break
            least = min(least, size)
            step = -self.inverse(u)(gradient)
            u, gradient = self._descend(u, gradient, step, linear)
            count += 3
        return u, count

    def _descend(
        self, u: Array, gradient: Array, step: Array, linear: Array
    ) -> tuple[Array, Array]:
        slope = float(gradient @ step)
        now = self.value(u, linear)
        t = 1.0
        while True:
            moved = u + t * step
            ahead = self.gradient(moved, linear)
            rise = self.value(moved, linear) - now
            # values closer than this (relative) do not decide
            flatter = rise <= 1e-12 * abs(now) and abs(float(ahead @ step)) <= 0.9 * abs(slope)
            if rise <= ARMIJO * t * slope or flatter or t < 1e-6:
                return moved, ahead
            t *= 0.5

    def quasi_newton(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, gradients spent) by L-BFGS along the equations."""
        base = self.feasible(start)

        def both(v: Array) -> tuple[float, Array]:
            u = base + self.tangent(v)
            return self.value(u, linear), self.tangent(self.gradient(u, linear))

        found = scipy.optimize.minimize(
            both,
            np.zeros_like(base),
            jac=True,
            method="L-BFGS-B",
            options={"maxcor": 30, "maxiter": 2000, "ftol": 1e-18, "gtol": 1e-12},
        )
        return np.asarray(base + self.tangent(found.x)), int(found.nfev)


class _Joined(Function):
    """f(x, z) as a function of (x, z) in one vector."""

    def __init__(self, f: Objective, d: int) -> None:
        self.f = f
        self.d = d
        self.capabilities = f.capabilities

    def constants(self, size: int) -> tuple[float, float]:
        found = self.f.curvature(self.d, size - self.d)
        return found.L, found.mu

    def value_at(self, v: Array) -> float:
        return self.f.value(v[: self.d], v[self.d :])

    def gradient_at(self, v: Array) -> Array:
        return np.concatenate(self.f.gradient(v[: self.d], v[self.d :]))

    def quadratic_at(self, size: int) -> tuple[Any, Array, float]:
        return self.f.quadratic(self.d, size - self.d)

    @property
    def has_hessian(self) -> bool:
        return self.f.has_hessian

    def hessian_at(self, v: Array) -> Any:
        return self.f.hessian(v[: self.d], v[self.d :])


class Minimiser(ABC):
    """argmin g(v) + (1/2) <shift v, v> + <h, v> on {E v = E point}."""

    @abstractmethod
    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, gradients spent)."""


class Factorized(Minimiser):
    """A quadratic g: one factorization, then one solve a call."""

    def __init__(self, g: Function, shift: Array, E: Array, point: Array) -> None:
        H, linear, _ = g.quadratic_at(len(point))
        H = plus_diagonal(H, shift)
        self.inverse = constrained_inverse(factorized(H, np.zeros(len(point))), E)
        self.point, self.slope = point, np.asarray(linear - H @ point)

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """One solve, no gradient."""
        return self.point + self.inverse(self.slope - linear), 0


class Descent(Minimiser, Smooth):
    """Newton steps, or L-BFGS where g has no Hessian."""

    def __init__(self, g: Function, shift: Array, E: Array, point: Array) -> None:
        self.g = g
        self.shift = shift
        self.E = E
        self.point = point

    def value(self, u: Array, linear: Array) -> float:
        """g + shift + linear."""
        return float(self.g.value_at(u) + 0.5 * u @ (self.shift * u) + linear @ u)

    def gradient(self, u: Array, linear: Array) -> Array:
        """Its slope."""
        return np.asarray(self.g.gradient_at(u) + self.shift * u + linear)

    def inverse(self, u: Array) -> Solve:
        """The Hessian at u, factorized."""
        H = plus_diagonal(self.g.hessian_at(u), self.shift)
        return constrained_inverse(factorized(H, np.zeros(len(u))), self.E)

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """Down to rounding (Newton) or to what L-BFGS reaches."""
        solve = self.newton if self.g.has_hessian else self.quasi_newton
        return solve(linear, start)


def minimiser(g: Function, shift: Array, E: Array, point: Array) -> Minimiser:
    """The cheapest exact way to minimise g under its equations."""
    if "quadratic" in g.capabilities:
        return Factorized(g, shift, E, point)
    return Descent(g, shift, E, point)


def pieces(f: Objective, d: int, q: int) -> list[tuple[slice, Function]]:
    """The parts of f that may be minimised apart, with their entries of (x, z)."""
    x = slice(0, d)
    z = slice(d, d + q)
    both = slice(0, d + q)
    if isinstance(f, Separable):
        zero = SquaredDistance(0.0)
        parts = ((x, f.x_part or zero), (z, f.z_part or zero))
        return [(where, part) for where, part in parts if where.stop > where.start]
    return [(both, f if isinstance(f, Function) else _Joined(f, d))]


class LocalMinimisers:
    """u_i(h), and of quadratics T_i, of the agents owned here; a call over all is one argmin.

    ``minimise`` returns as well the gradients each agent spent inside, one row an agent: a count,
    never charged as gradients of the method.
    """

    def __init__(self, work: Workspace) -> None:
        problem = work.problem
        space = work.space
        self.space = space
        self.ledger = work.ledger
        self.objectives = [agent.objective for agent in problem.agents.values()]
        self.shift = curvature_shift(work.curvature)
        self.shifted = bool(self.shift.any())
        own = OwnEquations(work)
        self._pieces: list[list[tuple[slice, Minimiser]]] = []
        for k, f in enumerate(self.objectives):
            d = space.d[k]
            q = space.q
            V_C, V_D, point = own.of(k)
            E = scipy.linalg.block_diag(V_C, V_D)
            shift = np.repeat([0.0, self.shift[k]], [d, q])
            built = []
            for where, g in pieces(f, d, q):
                rows = E[:, where][np.any(E[:, where], axis=1)]
                built.append((where, minimiser(g, shift[where], rows, point[where])))
            self._pieces.append(built)

    def minimise(self, h: Array, start: Array) -> tuple[Array, Array]:
        """(u(h), gradients spent); ``start`` is where the searches begin. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        out = self.space.zeros()
        spent = np.zeros((self.space.count, 1))
        for k, built in enumerate(self._pieces):
            linear = self.space.read(h, k)
            near = self.space.read(start, k)
            u = np.empty_like(linear)
            for where, piece in built:
                u[where], count = piece.minimise(linear[where], near[where])
                spent[k] += count
            self.space.write(out, k, u)
        return out, spent

    def inverse(self, h: Array) -> Array:
        """T_i h_i of quadratics, all agents. Cost: 1 argmin."""
        self.ledger.charge(argmins=1)
        out = self.space.zeros()
        for k, built in enumerate(self._pieces):
            v = self.space.read(h, k)
            u = np.empty_like(v)
            for where, piece in built:
                assert isinstance(piece, Factorized)
                u[where] = piece.inverse(v[where])
            self.space.write(out, k, u)
        return out

    def values(self, h: Array, u: Array) -> Array:
        """f_i(u) + (a_i/2) ||z||^2 + <h_i, u>, one row an agent."""
        rows = np.zeros((self.space.count, 1))
        for k, (x, z) in enumerate(self.space.split(u)):
            linear = float(self.space.read(h, k) @ self.space.read(u, k))
            shift = 0.5 * float(self.shift[k]) * float(z @ z)
            rows[k] = self.objectives[k].value(x, z) + shift + linear
        return rows
