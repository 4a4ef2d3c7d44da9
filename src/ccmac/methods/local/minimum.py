"""Each agent's minimiser at given multipliers, for smooth strongly convex objectives.

    u_i(h) = argmin f_i(u) + (a_i/2) ||z||^2 + <h_i, u>   s.t.  C_i x = c_i,  D_i z = e_i

with the shifts a_i (sum 0) of :func:`curvature_shift`. x and z are minimised apart where f_i is
g(x) + h(z). A quadratic is factorized once; what acts entry by entry and has no equations is a
scalar root for every entry; other functions with a Hessian take Newton steps, the rest L-BFGS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg

from ccmac.inputs import Array
from ccmac.linalg.symmetric import factorized
from ccmac.methods.local.inverse import (
    OwnEquations,
    Solve,
    constrained_inverse,
    curvature_shift,
    plus_diagonal,
)
from ccmac.methods.local.newton import Smooth
from ccmac.objectives.base import Objective
from ccmac.objectives.basic import SquaredDistance
from ccmac.objectives.entrywise import increasing_root
from ccmac.objectives.function import Function
from ccmac.objectives.separable import Separable
from ccmac.workspace import Workspace
from ccmac.workspace.curvature import DENSE


class OfOneVector(Protocol):
    """A function of one vector."""

    def value_at(self, v: Array) -> float:
        """g(v)."""

    def gradient_at(self, v: Array) -> Array:
        """grad g(v)."""


@dataclass(frozen=True)
class _Joined:
    """f(x, z) as a function of (x, z) in one vector."""

    f: Objective
    d: int

    def value_at(self, v: Array) -> float:
        return self.f.value(v[: self.d], v[self.d :])

    def gradient_at(self, v: Array) -> Array:
        return np.concatenate(self.f.gradient(v[: self.d], v[self.d :]))


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


class Entrywise(Minimiser):
    """g = sum_j g_j(v_j) without equations: scalar roots."""

    def __init__(self, g: Function, shift: Array) -> None:
        self.g = g
        self.shift = shift
        self.mu = g.constants(len(shift))[1] + shift

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """Safeguarded Newton steps, all entries at once."""

        def slope(v: Array) -> Array:
            return self.g.gradient_at(v) + self.shift * v

        return increasing_root(slope, linear, self.mu, start)


class Descent(Minimiser, Smooth):
    """Newton steps, or L-BFGS where g has no Hessian."""

    def __init__(self, g: OfOneVector, shift: Array, E: Array, point: Array) -> None:
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
        assert isinstance(self.g, Function)
        H = self.g.hessian_at(u)
        return constrained_inverse(
            factorized(plus_diagonal(H, self.shift), np.zeros(len(u))), self.E
        )

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """Down to rounding (Newton) or to what L-BFGS reaches."""
        if isinstance(self.g, Function) and self.g.has_hessian:
            return self.newton(linear, start)
        return self.quasi_newton(linear, start)


def minimiser(g: OfOneVector, shift: Array, E: Array, point: Array) -> Minimiser:
    """The cheapest exact way to minimise g under its equations."""
    if isinstance(g, Function) and "quadratic" in g.capabilities:
        return Factorized(g, shift, E, point)
    if isinstance(g, Function) and g.coordinatewise and not len(E):
        return Entrywise(g, shift)
    return Descent(g, shift, E, point)


def pieces(f: Objective, d: int, q: int) -> list[tuple[slice, OfOneVector]]:
    """The parts of f that may be minimised apart, with their entries of (x, z)."""
    x = slice(0, d)
    z = slice(d, d + q)
    both = slice(0, d + q)
    if isinstance(f, Separable):
        zero = SquaredDistance(0.0)
        parts = ((x, f.x_part or zero), (z, f.z_part or zero))
        return [(where, part) for where, part in parts if where.stop > where.start]
    return [(both, f if isinstance(f, Function) else _Joined(f, d))]


def without_factorizations(work: Workspace) -> bool:
    """Whether every minimiser is found by entrywise roots or a factorization made once.

    About 20 gradients each then. One reduction.
    """
    problem = work.problem
    rows = []
    for i, agent in problem.agents.items():
        d = problem.d[i]
        equations = (problem.p[i], problem.r[i])
        cheap = True
        for where, g in pieces(agent.objective, d, problem.q):
            if not isinstance(g, Function):
                cheap = False
            elif "quadratic" in g.capabilities:
                cheap &= g.isotropic() is not None or where.stop - where.start <= DENSE
            else:
                touched = equations[int(where.start >= d) : 1 + int(where.stop > d)]
                cheap &= g.coordinatewise and not any(touched)
        rows.append([float(cheap)])
    return bool(work.runtime.gather(np.array(rows)).all())


class LocalMinimisers:
    """u_i(h) of the agents owned here; one call over all agents is one argmin.

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

    def values(self, h: Array, u: Array) -> Array:
        """f_i(u) + (a_i/2) ||z||^2 + <h_i, u>, one row an agent."""
        rows = np.zeros((self.space.count, 1))
        for k, (x, z) in enumerate(self.space.split(u)):
            linear = float(self.space.read(h, k) @ self.space.read(u, k))
            shift = 0.5 * float(self.shift[k]) * float(z @ z)
            rows[k] = self.objectives[k].value(x, z) + shift + linear
        return rows
