"""The local minimisations of ADMM-type methods, all agents at once: the ledger unit ``argmins``.

    argmin_u  f'_i(u) + <h_i, u> + (c/2) ||A'_i u||^2 + (rho/2) ||u - u0_i||^2

under C_i x = c_i and D_i z = e_i. Quadratic f'_i: H + c A''A' + rho I is factorized once; a
diagonal z block is eliminated first, so that nothing of the size of z is ever dense. Other smooth
f'_i: Newton steps when f' acts entry by entry beyond its quadratic parts (second derivatives by
central differences of the slope, accurate enough for speed), else L-BFGS. Inner gradients
are counted in ``inner_gradients`` (the most over agents, summed over calls), never charged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.baselines.reductions import CoupledForm
from ccmac.objectives import Separable
from ccmac.objectives.base import Objective
from ccmac.objectives.function import Function
from ccmac.pipeline.local import LocalEquations
from ccmac.pipeline.shared import SharedEquations
from ccmac.solvers.local_inverse import Solve, constrained_inverse

Array = NDArray[np.float64]
DENSE = 3000
NEWTON_STEPS = 60
NEWTON_TOLERANCE = 1e-13


class LocalArgmin:
    """The minimisation above for fixed ``c`` and ``rho``; one call is one argmin."""

    def __init__(self, form: CoupledForm, c: float, rho: float = 0.0) -> None:
        self.form, self.rho, self.inner_gradients = form, rho, 0
        problem, runtime, space = form.problem, form.runtime, form.space
        local = LocalEquations(problem, runtime, "factor")
        shared = SharedEquations(problem, runtime, "factor")
        sides = np.split(shared.right, np.cumsum(shared.family.rows)[:-1])
        self._agents: list[_Agent] = []
        for k, f in enumerate(form.objectives):
            d, held = space.d[k], np.flatnonzero(form.held[k])
            K = form.local_matrix(k)
            V_C = np.zeros((0, d)) if local.empty else local.bases[k]
            V_D = np.zeros((0, len(held)))
            point = np.zeros(d + len(held))
            if not local.empty:
                point[:d] = local.point[space.offsets[k] : space.offsets[k + 1]]
            if not shared.empty:
                V_D = shared.family.blocks[k]
                point[d:] = V_D.T @ sides[k]
            E = scipy.linalg.block_diag(V_C, V_D) if len(V_C) + len(V_D) else _no_rows(point)
            penalty = sp.csr_array(c * (K.T @ K) + rho * sp.eye_array(len(point)))
            self._agents.append(_agent(_Piece(f, d, held, space.q, penalty, E, point)))

    def __call__(self, h: Array, u0: Array) -> Array:
        """All agents' minimisers for linear terms ``h`` and proximal centres (starts) ``u0``."""
        form, space = self.form, self.form.space
        form.runtime.ledger.charge(argmins=1)
        out, most = space.zeros(), 0
        for k, agent in enumerate(self._agents):
            held, d = form.held[k], space.d[k]
            centre = np.concatenate([space.x_of(u0, k), space.z(u0)[k][held]])
            linear = np.concatenate([space.x_of(h, k), space.z(h)[k][held]])
            u, inner = agent.minimise(linear - self.rho * centre, centre)
            space.x_of(out, k)[...] = u[:d]
            space.z(out)[k][held] = u[d:]
            most = max(most, inner)
        self.inner_gradients += most
        return out


def _no_rows(point: Array) -> Array:
    return np.zeros((0, len(point)))


@dataclass(frozen=True)
class _Piece:
    """f on (x, held z) with its penalty and equations; entries that are not held stay zero."""

    f: Objective
    d: int
    held: NDArray[np.intp]
    q: int
    penalty: sp.csr_array
    E: Array
    point: Array


def _agent(piece: _Piece) -> _Agent:
    f, d = piece.f, piece.d
    if "quadratic" in f.capabilities:
        H, g, _ = f.quadratic(d, piece.q)
        if len(piece.held) < piece.q:
            keep = np.concatenate([np.arange(d), d + piece.held])
            H, g = sp.csr_array(H)[keep][:, keep], g[keep]
        M = sp.csr_array(piece.penalty + sp.csr_array(H))
        inverse = constrained_inverse(block_solve(M, d), piece.E)
        return _QuadraticAgent(inverse, M, g, piece.point)
    if isinstance(f, Separable) and all(_entrywise(part) for part in (f.x_part, f.z_part)):
        return _NewtonAgent(piece)
    return _GeneralAgent(piece)


def _entrywise(part: Function | None) -> bool:
    return part is None or "quadratic" in part.capabilities or part.coordinatewise


class _Agent(ABC):
    @abstractmethod
    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """(minimiser, inner gradients)."""


@dataclass(frozen=True)
class _QuadraticAgent(_Agent):
    inverse: Solve
    matrix: Any
    g: Array
    point: Array

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        slope = self.g - linear - self.matrix @ self.point
        return np.asarray(self.point + self.inverse(slope)), 0


class _SmoothAgent(_Agent):
    def __init__(self, piece: _Piece) -> None:
        self.f, self.d, self.held, self.q = piece.f, piece.d, piece.held, piece.q
        self.penalty, self.E, self.point = piece.penalty, piece.E, piece.point

    def _full(self, u: Array) -> tuple[Array, Array]:
        z = np.zeros(self.q)
        z[self.held] = u[self.d :]
        return u[: self.d], z

    def value(self, u: Array, linear: Array) -> float:
        """Up to the loss at the entries not held, a constant."""
        return float(self.f.value(*self._full(u)) + linear @ u + 0.5 * u @ (self.penalty @ u))

    def gradient(self, u: Array, linear: Array) -> Array:
        gx, gz = self.f.gradient(*self._full(u))
        return np.asarray(np.concatenate([gx, gz[self.held]]) + linear + self.penalty @ u)

    def feasible(self, u: Array) -> Array:
        """The point of {E u = r} nearest to u."""
        return np.asarray(u + self.E.T @ (self.E @ (self.point - u)))

    def tangent(self, v: Array) -> Array:
        """v without its components along the equations."""
        return np.asarray(v - self.E.T @ (self.E @ v))


class _NewtonAgent(_SmoothAgent):
    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """Damped Newton steps (Armijo) down to rounding."""
        u = self.feasible(start)
        gradient = self.gradient(u, linear)
        scale = 1.0 + float(np.linalg.norm(linear)) + float(np.linalg.norm(gradient))
        count, least = 1, np.inf
        for _ in range(NEWTON_STEPS):
            size = float(np.linalg.norm(self.tangent(gradient)))
            # Rounding may forbid the tolerance: near the end a step that gains nothing is last.
            if size <= NEWTON_TOLERANCE * scale or (size >= 0.5 * least and size < 1e-8 * scale):
                break
            least = min(least, size)
            M = sp.csr_array(self.penalty + self._hessian(u))
            step = -constrained_inverse(block_solve(M, self.d), self.E)(gradient)
            slope, now, t = float(gradient @ step), self.value(u, linear), 1.0
            while t > 1e-6 and self.value(
                u + t * step, linear
            ) > now + 1e-4 * t * slope + 1e-15 * abs(now):
                t *= 0.5
            u = u + t * step
            gradient = self.gradient(u, linear)
            count += 3
        return u, count

    def _hessian(self, u: Array) -> sp.csr_array:
        assert isinstance(self.f, Separable)
        x, z = self._full(u)
        blocks = []
        for part, v in ((self.f.x_part, x), (self.f.z_part, z)):
            if part is None:
                blocks.append(sp.csr_array((len(v), len(v))))
            elif "quadratic" in part.capabilities:
                blocks.append(sp.csr_array(part.quadratic_at(len(v))[0]))
            else:
                h = 1e-5 * (1.0 + np.abs(v))
                rise = part.gradient_at(v + h) - part.gradient_at(v - h)
                blocks.append(sp.csr_array(sp.diags_array(np.maximum(rise / (2 * h), 0.0))))
        blocks[1] = blocks[1][self.held][:, self.held]
        return sp.csr_array(sp.block_diag(blocks, format="csr"))


class _GeneralAgent(_SmoothAgent):
    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        """L-BFGS along the equations."""
        base = self.feasible(start)

        def both(v: Array) -> tuple[float, Array]:
            u = base + self.tangent(v)
            return self.value(u, linear), self.tangent(self.gradient(u, linear))

        found = scipy.optimize.minimize(
            both, np.zeros_like(base), jac=True, method="L-BFGS-B",
            options={"maxcor": 30, "maxiter": 2000, "ftol": 1e-18, "gtol": 1e-12},
        )  # fmt: skip
        return np.asarray(base + self.tangent(found.x)), int(found.nfev)


def block_solve(M: sp.csr_array, d: int) -> Solve:
    """v -> M^{-1} v for M positive definite: a diagonal trailing block is eliminated first."""
    size = M.shape[0]
    trailing = M[d:, d:]
    diagonal = trailing.diagonal()
    if size > d and d <= DENSE and trailing.nnz == np.count_nonzero(diagonal):
        return _arrow_solve(M, d, diagonal)
    if size <= DENSE:
        factor = scipy.linalg.cho_factor(M.toarray())
        return lambda v: np.asarray(scipy.linalg.cho_solve(factor, v))
    lu = spla.splu(sp.csc_array(M))
    return lambda v: np.asarray(lu.solve(v))


def _arrow_solve(M: sp.csr_array, d: int, diagonal: Array) -> Solve:
    border = sp.csr_array(M[:d, d:])
    scaled = sp.csr_array(border @ sp.diags_array(1.0 / diagonal))
    factor = scipy.linalg.cho_factor((M[:d, :d] - scaled @ border.T).toarray()) if d else None

    def solve(v: Array) -> Array:
        if factor is None:
            return np.asarray(v / diagonal)
        x = scipy.linalg.cho_solve(factor, v[:d] - scaled @ v[d:])
        return np.concatenate([x, (v[d:] - border.T @ x) / diagonal])

    return solve
