"""The local minimisations of ADMM-type methods, all agents at once: the ledger unit ``argmins``.

    argmin_u  f'_i(u) + <h_i, u> + (c/2) ||A'_i u||^2 + (rho/2) ||u - u0_i||^2

under C_i x = c_i and D_i z = e_i. Quadratic f'_i: H + c A''A' + rho I is factorized once, sparse.
Other smooth f'_i: Newton steps when f' acts entry by entry beyond its quadratic parts, else L-BFGS.
Inner gradients are counted in ``inner_gradients`` (the most over agents, summed over calls), never
charged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from ccmac.inputs import Array
from ccmac.methods.local import Minimiser, OwnEquations, Smooth, Solve, constrained_inverse
from ccmac.objectives import Separable
from ccmac.objectives.base import Function, Objective
from ccmac.paper.comparators.reductions import CoupledForm


class LocalArgmin:
    """The minimisation above for fixed ``c`` and ``rho``; one call is one argmin."""

    def __init__(self, form: CoupledForm, c: float, rho: float = 0.0) -> None:
        self.form = form
        self.rho = rho
        self.inner_gradients = 0
        space = form.space
        own = OwnEquations(form.work)
        # Entries of (x, z) that each agent holds; where not all are held there is no D.
        pairs = zip(space.d, form.held, strict=True)
        self._held = [np.concatenate([np.arange(d), d + np.flatnonzero(z)]) for d, z in pairs]
        self._agents: list[Minimiser] = []
        for k, (f, held) in enumerate(zip(form.objectives, self._held, strict=True)):
            V_C, V_D, point = own.of(k)
            E = np.take(scipy.linalg.block_diag(V_C, V_D), held, axis=1)
            K = form.local_matrix(k)
            penalty = sp.csr_array(c * (K.T @ K) + rho * sp.eye_array(len(held)))
            piece = _Piece(f, space.d[k], space.q, held, penalty, E, point[held])
            self._agents.append(_minimiser(piece))

    def __call__(self, h: Array, u0: Array) -> Array:
        """All agents' minimisers for linear terms ``h`` and proximal centres (starts) ``u0``."""
        space = self.form.space
        out = self.form.space.zeros()
        most = 0
        self.form.runtime.ledger.charge(argmins=1)
        for k, (agent, held) in enumerate(zip(self._agents, self._held, strict=True)):
            centre = space.read(u0, k)[held]
            linear = space.read(h, k)[held]
            u = np.zeros(space.d[k] + space.q)
            u[held], inner = agent.minimise(linear - self.rho * centre, centre)
            space.write(out, k, u)
            most = max(most, inner)
        self.inner_gradients += most
        return out


@dataclass(frozen=True)
class _Piece:
    """f on the entries ``held`` of (x, z), with its penalty and equations; others stay zero."""

    f: Objective
    d: int
    q: int
    held: NDArray[np.intp]
    penalty: sp.csr_array
    E: Array
    point: Array


def _minimiser(piece: _Piece) -> Minimiser:
    f = piece.f
    d = piece.d
    held = piece.held
    if "quadratic" not in f.capabilities:
        return _Descent(piece)
    H, g, _ = f.quadratic(d, piece.q)
    if len(held) < d + piece.q:
        H = sp.csr_array(H)[held][:, held]
        g = g[held]
    M = sp.csr_array(piece.penalty + sp.csr_array(H))
    inverse = constrained_inverse(_factorized(M), piece.E)
    return _Quadratic(inverse, g - M @ piece.point, piece.point)


@dataclass(frozen=True)
class _Quadratic(Minimiser):
    """Its minimiser is point + inverse(descent - linear), descent = -f'(point)."""

    inverse: Solve
    descent: Array
    point: Array

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        return np.asarray(self.point + self.inverse(self.descent - linear)), 0


class _Descent(Minimiser, Smooth):
    """Newton steps where each part of f is quadratic or acts entry by entry, else L-BFGS."""

    def __init__(self, piece: _Piece) -> None:
        self.f = piece.f
        self.d = piece.d
        self.held = piece.held
        self.size = piece.d + piece.q
        self.penalty = piece.penalty
        self.E = piece.E
        self.point = piece.point
        parts = (self.f.x_part, self.f.z_part) if isinstance(self.f, Separable) else ()
        self._parts = parts if all(_entrywise(part) for part in parts) else ()

    def minimise(self, linear: Array, start: Array) -> tuple[Array, int]:
        search = self.newton if self._parts else self.quasi_newton
        return search(linear, start)

    def _full(self, u: Array) -> tuple[Array, Array]:
        both = np.zeros(self.size)
        both[self.held] = u
        return both[: self.d], both[self.d :]

    def value(self, u: Array, linear: Array) -> float:
        """Up to the loss at the entries not held, a constant."""
        return float(self.f.value(*self._full(u)) + linear @ u + 0.5 * u @ (self.penalty @ u))

    def gradient(self, u: Array, linear: Array) -> Array:
        slope = np.concatenate(self.f.gradient(*self._full(u)))
        return np.asarray(slope[self.held] + linear + self.penalty @ u)

    def inverse(self, u: Array) -> Solve:
        """The Hessian is that of the parts, plus the penalty."""
        H = sp.block_diag(
            [
                sp.csr_array((len(v), len(v))) if part is None else part.hessian_at(v)
                for part, v in zip(self._parts, self._full(u), strict=True)
            ],
            format="csr",
        )
        return constrained_inverse(_factorized(self.penalty + H[self.held][:, self.held]), self.E)


def _entrywise(part: Function | None) -> bool:
    return part is None or "quadratic" in part.capabilities or part.coordinatewise


def _factorized(M: sp.csr_array) -> Solve:
    """v -> M^{-1} v for M positive definite, eliminated from its end: z is often diagonal."""
    lu = spla.splu(
        sp.csc_array(M[::-1, ::-1]),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda v: np.asarray(lu.solve(v[::-1])[::-1])
