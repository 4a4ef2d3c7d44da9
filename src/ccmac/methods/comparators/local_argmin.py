"""The local minimisations of ADMM-type methods, all agents at once: the ledger unit ``argmins``.

    argmin_u  f'_i(u) + <h_i, u> + (c/2) ||A'_i u||^2 + (rho/2) ||u - u0_i||^2

under C_i x = c_i and D_i z = e_i. Quadratic f'_i: H + c A''A' + rho I is factorized once; a
diagonal z block is eliminated first, so that nothing of the size of z is ever dense. Other smooth
f'_i: Newton steps when f' acts entry by entry beyond its quadratic parts, else L-BFGS. Inner
gradients are counted in ``inner_gradients`` (the most over agents, summed over calls), never
charged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.methods.comparators.reductions import CoupledForm
from ccmac.methods.local.hessians import hessian_at
from ccmac.methods.local.inverse import Solve, constrained_inverse
from ccmac.methods.local.newton import Smooth
from ccmac.objectives import Separable
from ccmac.objectives.base import Objective
from ccmac.objectives.function import Function
from ccmac.workspace.local import LocalEquations
from ccmac.workspace.shared import SharedEquations

Array = NDArray[np.float64]
DENSE = 3000


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
        return _QuadraticAgent(inverse, g - M @ piece.point, piece.point)
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
    """Its minimiser is point + inverse(descent - linear), descent = -f'(point)."""

    inverse: Solve
    descent: Array
    point: Array

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        return np.asarray(self.point + self.inverse(self.descent - linear)), 0


class _SmoothAgent(_Agent, Smooth):
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


class _NewtonAgent(_SmoothAgent):
    def __init__(self, piece: _Piece) -> None:
        super().__init__(piece)
        assert isinstance(self.f, Separable)
        self._parts = (self.f.x_part, self.f.z_part)
        entrywise = self.f.z_part is None or self.f.z_part.coordinatewise
        self._arrow = Arrow.of(self.penalty, self.d) if entrywise else None

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        return self.newton(linear, start)

    def inverse(self, u: Array) -> Solve:
        """Only the diagonal of the z block moves where f acts on z entry by entry."""
        H_x, H_z = (
            sp.csr_array((len(v), len(v))) if part is None else sp.csr_array(hessian_at(part, v))
            for part, v in zip(self._parts, self._full(u), strict=True)
        )
        if self._arrow is not None:
            solve = self._arrow.solve(H_x.toarray(), H_z.diagonal()[self.held])
        else:
            blocks = sp.block_diag([H_x, H_z[self.held][:, self.held]], format="csr")
            solve = block_solve(sp.csr_array(self.penalty + blocks), self.d)
        return constrained_inverse(solve, self.E)


class _GeneralAgent(_SmoothAgent):
    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        return self.quasi_newton(linear, start)


def block_solve(M: sp.csr_array, d: int) -> Solve:
    """v -> M^{-1} v for M positive definite: a diagonal trailing block is eliminated first."""
    arrow = Arrow.of(M, d)
    if arrow is not None:
        return arrow.solve()
    if M.shape[0] <= DENSE:
        factor = scipy.linalg.cho_factor(M.toarray())
        return lambda v: np.asarray(scipy.linalg.cho_solve(factor, v))
    lu = spla.splu(sp.csc_array(M))
    return lambda v: np.asarray(lu.solve(v))


@dataclass(frozen=True)
class Arrow:
    """[X, S; S', diag(t)]: the trailing block is eliminated, X - S diag(1/t) S' factorized."""

    X: Array
    S: sp.csr_array
    across: sp.csr_array  # S'
    t: Array

    @classmethod
    def of(cls, M: sp.csr_array, d: int) -> Arrow | None:
        """M cut after d rows; None when it has another form or a leading block beyond dense."""
        trailing = M[d:, d:]
        t = trailing.diagonal()
        if M.shape[0] == d or d > DENSE or trailing.nnz != np.count_nonzero(t):
            return None
        S = sp.csr_array(M[:d, d:])
        return cls(M[:d, :d].toarray(), S, sp.csr_array(S.T), t)

    def solve(self, more_X: Array | float = 0.0, more_t: Array | float = 0.0) -> Solve:
        """v -> M^{-1} v with X + more_X and t + more_t."""
        S, across, t, d = self.S, self.across, self.t + more_t, len(self.X)
        if d == 0:
            return lambda v: np.asarray(v / t)
        scaled = sp.csr_array((S.data / t[S.indices], S.indices, S.indptr), shape=S.shape)
        factor = scipy.linalg.cho_factor(self.X + more_X - (scaled @ across).toarray())

        def apply(v: Array) -> Array:
            x = scipy.linalg.cho_solve(factor, v[:d] - scaled @ v[d:])
            return np.concatenate([x, (v[d:] - across @ x) / t])

        return apply
